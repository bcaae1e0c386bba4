"""The result of `evalharness verify` as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from evalharness.base.text import duration, printable
from evalharness.checks.verify.findings import Finding, FolderCheck

_KINDS = {
    "manifest": "the manifest says something else than its own configuration",
    "missing": "episodes are missing",
    "added": "episodes that the run does not have",
    "repeated": "episodes that are there twice",
    "damaged": "lines that are no record",
    "task": "records that do not fit their task",
    "reply": "turns that do not fit their reply",
    "replay": "turns that the environment answers otherwise",
    "score": "outcomes that the actions do not have",
    "summary": "numbers of summary.json that the episodes do not make",
    "table": "tables that do not hold the episodes",
    "option": "turns and files that say otherwise than the run's options",
}


def _line(console: Console, text: str, style: str | None = None) -> None:
    console.print(Text(printable(text, single_line=True), style=style or ""), soft_wrap=True)


def print_verdict(console: Console, verdict: FolderCheck, *, most: int) -> None:
    """`most`: largest number of findings of one kind that are shown."""
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
