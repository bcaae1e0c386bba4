"""Print the result of `evalharness verify`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from evalharness.base.text import duration, printable
from evalharness.checks.verify.findings import Finding, FolderCheck

_KINDS = {
    "manifest": "values of the manifest that contradict its configuration",
    "missing": "episodes are missing",
    "added": "episodes that do not belong to the run",
    "repeated": "episodes that are stored twice",
    "damaged": "lines that are not valid records",
    "task": "records that do not fit their task",
    "reply": "turns that do not fit their reply",
    "replay": "turns in which the environment answers differently",
    "score": "outcomes that do not follow from the actions",
    "summary": "numbers of summary.json that do not follow from the episodes",
    "table": "values in tables that differ from the episodes",
    "option": "turns and files that contradict the run's options",
}


def _line(console: Console, text: str, style: str | None = None) -> None:
    console.print(Text(printable(text, single_line=True), style=style or ""), soft_wrap=True)


def print_verdict(console: Console, verdict: FolderCheck, *, most: int) -> None:
    """Print the result. `most`: maximum number of findings of each kind to print."""
    played = f"{verdict.episodes} episodes and {verdict.turns} turns replayed in {duration(verdict.seconds)}"
    if verdict.verified:
        _line(console, f"{verdict.folder}: verified; {played}, every number follows from the actions", "bold")
    elif verdict.findings:
        _line(console, f"{verdict.folder}: NOT verified; {played}", "bold")
    else:
        _line(console, f"{verdict.folder}: not verified, a simulator failed here; {played}", "bold")
    counts = Counter[str](finding.kind for finding in verdict.findings)
    for kind, what in _KINDS.items():
        if counts[kind]:
            _line(console, f"{what}: {counts[kind]}")
            _print_some(console, [f for f in verdict.findings if f.kind == kind], most)
    for failure in verdict.failures[:most]:
        _line(console, f"could not be replayed: {failure}")
    if len(verdict.failures) > most:
        _line(console, f"and {len(verdict.failures) - most} more could not be replayed")
    for note in verdict.notes:
        _line(console, f"note: {note}", "dim")


def _print_some(console: Console, findings: Sequence[Finding], most: int) -> None:
    for finding in findings[:most]:
        _line(console, f"  {finding}")
    if len(findings) > most:
        _line(console, f"  and {len(findings) - most} more (all of them: --json FILE)", "dim")
