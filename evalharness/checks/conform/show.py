"""The conformance report for a person: a table, the reasons, and the first differences."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from evalharness.base.terminal import plain_table
from evalharness.checks.conform.compare import FIELDS, FamilyResult, Mismatch
from evalharness.checks.conform.rules import Tolerance

CONTEXT = 60
"""Characters of equal text shown on each side of a change."""


def show(
    console: Console,
    results: Mapping[str, FamilyResult],
    tolerances: Mapping[str, Tolerance],
    *,
    max_differences: int,
) -> None:
    console.print(_table(results))
    _reasons(console, results, tolerances)
    for family, result in results.items():
        firsts = [check.failures()[0] for check in result.checks if not check.matched]
        if not firsts:
            continue
        shown = firsts[: max(0, max_differences)]
        console.print()
        title = f"{family}: {len(firsts)} of {len(result.checks)} transcripts differ"
        console.print(
            Text(title + (f"; the first difference of {len(shown)} of them:" if shown else ""), style="bold")
        )
        for difference in shown:
            console.print(mismatch_text(difference), soft_wrap=True)


def _table(results: Mapping[str, FamilyResult]) -> Table:
    table = plain_table("matched / all", *results)

    def cell(matched: int, total: int, *, dim: bool = False) -> Text:
        if not total:
            return Text("-", style="dim")
        return Text(f"{matched}/{total}", style="" if matched == total else "red")

    table.add_row("transcripts", *(cell(r.transcripts_matched, len(r.checks)) for r in results.values()))
    table.add_row("steps", *(cell(r.steps_matched, r.steps_replayed) for r in results.values()))
    for name in FIELDS:
        tallies = [result.tallies[name] for result in results.values()]
        table.add_row(
            name.replace("_", " "), *(cell(tally.equal + tally.excepted, tally.compared) for tally in tallies)
        )
    if any(result.excepted() for result in results.values()):
        table.add_row(
            "excepted",
            *(Text(str(sum(r.excepted().values()) or "-"), style="yellow") for r in results.values()),
        )
    if any(result.steps_replayed < result.steps for result in results.values()):
        table.add_row(
            "not replayed", *(Text(str(r.steps - r.steps_replayed or "-")) for r in results.values())
        )
    return table


def _reasons(
    console: Console, results: Mapping[str, FamilyResult], tolerances: Mapping[str, Tolerance]
) -> None:
    """Which rules of comparison a family has, and which exceptions really covered something."""
    lines = []
    for family, result in results.items():
        for rule in tolerances[family].comparison:
            lines.append(f"{family}: {_names(rule.fields)} {rule.how}: {rule.because}")
        excepted: dict[str, dict[str, int]] = {}
        for (name, because), count in sorted(result.excepted().items()):
            excepted.setdefault(because, {})[name] = count
        for because, counts in excepted.items():
            lines.append(f"{family}: {sum(counts.values())} x excepted ({_names(counts)}): {because}")
    if lines:
        console.print()
        for line in lines:
            console.print(Text(line, style="dim"))


def _names(fields: Iterable[str]) -> str:
    return ", ".join(fields).replace("_", " ")


def mismatch_text(mismatch: Mismatch) -> Text:
    transcript = mismatch.transcript
    where = f"{transcript.source} (id {transcript.index}, {transcript.script})"
    at = "" if mismatch.step is None else f" step {mismatch.step}, action {_safe(mismatch.action)}"
    text = Text(f"  {where}{at}: {mismatch.field.replace('_', ' ')}\n")
    if mismatch.only_recorded or mismatch.only_ours:
        recorded, ours = (
            Text(f"only here {_safe(list(items))[:1000]}")
            for items in (mismatch.only_recorded, mismatch.only_ours)
        )
    elif isinstance(mismatch.recorded, str) and isinstance(mismatch.ours, str):
        recorded, ours = _marked(mismatch.recorded, mismatch.ours)
    else:
        recorded, ours = Text(_safe(mismatch.recorded)), Text(_safe(mismatch.ours))
    if mismatch.field != "crash":
        text.append("    recorded: ", style="dim").append_text(recorded).append("\n")
    return text.append("    ours:     ", style="dim").append_text(ours)


def _safe(value: Any) -> str:
    """Quoted, with control characters escaped, so that no recorded text reaches the terminal raw."""
    return repr(value).encode("ascii", "backslashreplace").decode() if value is not None else "-"


def _marked(recorded: str, ours: str) -> tuple[Text, Text]:
    """Both texts around their first differing words, the differing words marked."""
    left, right = _words(recorded), _words(ours)
    marked = Text(), Text()
    for tag, a, b, c, d in difflib.SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        for text, words in ((marked[0], left[a:b]), (marked[1], right[c:d])):
            plain = _safe("".join(words))[1:-1]
            if tag == "equal":
                if len(plain) > 2 * CONTEXT:
                    plain = f"{plain[:CONTEXT]} ... {plain[-CONTEXT:]}"
                text.append(plain)
            else:
                text.append(plain[:300], style="bold red")
    for text in marked:
        text.truncate(1000, overflow="ellipsis")
    return marked


def _words(text: str) -> list[str]:
    return [piece for word in text[:20_000].split(" ") for piece in (word, " ")][:-1]
