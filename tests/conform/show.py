"""The conformance report for a person: a table, the reasons, and the first differences."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from evalharness.base.terminal import plain_table
from tests.conform.compare import FIELDS, FamilyResult, Mismatch
from tests.conform.protocol_runs import ProtocolConformance
from tests.conform.protocols import CHECKS
from tests.conform.rules import Tolerance

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
            console.print(_mismatch_text(difference), soft_wrap=True)


def _cell(equal: int, total: int) -> Text:
    """How much is equal, of all that was compared."""
    if not total:
        return Text("-", style="dim")
    return Text(f"{equal}/{total}", style="" if equal == total else "red")


def _table(results: Mapping[str, FamilyResult]) -> Table:
    table = plain_table("matched / all", *results)
    table.add_row("transcripts", *(_cell(r.transcripts_matched, len(r.checks)) for r in results.values()))
    table.add_row("steps", *(_cell(r.steps_matched, r.steps_replayed) for r in results.values()))
    for name in FIELDS:
        tallies = [result.tallies[name] for result in results.values()]
        table.add_row(
            name.replace("_", " "),
            *(_cell(tally.equal + tally.excepted, tally.compared) for tally in tallies),
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


def _mismatch_text(mismatch: Mismatch) -> Text:
    transcript = mismatch.transcript
    where = f"{transcript.source} (id {transcript.index}, {transcript.script})"
    at = "" if mismatch.step is None else f" step {mismatch.step}, action {_safe(mismatch.action)}"
    text = Text(f"  {where}{at}: {mismatch.field.replace('_', ' ')}\n")
    if mismatch.only_recorded or mismatch.only_ours:
        recorded, ours = (
            Text(f"only here {_safe(list(items))[:1000]}")
            for items in (mismatch.only_recorded, mismatch.only_ours)
        )
        return text.append_text(_both(recorded, ours))
    if mismatch.field == "crash":
        return text.append(f"    ours:     {_safe(mismatch.ours)}")
    return text.append_text(_both(mismatch.recorded, mismatch.ours))


def _both(recorded: Any, ours: Any) -> Text:
    """Two lines; of two texts their differing words are marked."""
    if isinstance(recorded, str) and isinstance(ours, str):
        recorded, ours = _marked(recorded, ours)
    lines = [value if isinstance(value, Text) else Text(_safe(value)) for value in (recorded, ours)]
    return Text.assemble(("    recorded: ", "dim"), lines[0], ("\n    ours:     ", "dim"), lines[1])


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


def show_protocols(
    console: Console, results: Mapping[str, ProtocolConformance], *, max_differences: int
) -> None:
    table = plain_table("equal / all", *results)
    for check in CHECKS:
        table.add_row(
            check, *(_cell(r.agent.equal[check], r.agent.compared[check]) for r in results.values())
        )
    for family in sorted({family for result in results.values() for family in result.worlds}):
        worlds = [result.worlds.get(family) for result in results.values()]
        steps = [_cell(w.steps_matched, w.steps_replayed) if w else _cell(0, 0) for w in worlds]
        table.add_row(f"world, {family}: steps", *steps)
        ends = [w.tallies["success"] if w else None for w in worlds]
        table.add_row(
            f"world, {family}: outcome",
            *(_cell(t.equal + t.excepted, t.compared) if t else _cell(0, 0) for t in ends),
        )
    console.print(table)
    for name, result in results.items():
        for what, count in sorted(result.left_out.items()):
            console.print(Text(f"{name}: {count} records left out: {what}", style="dim"))
        for family, world in result.worlds.items():
            for (field, because), count in sorted(world.excepted().items()):
                console.print(
                    Text(f"{name}, {family}: {count} x excepted ({field}): {because}", style="dim"),
                    soft_wrap=True,
                )
        shown = 0
        for mismatch in result.agent.mismatches[: max(0, max_differences)]:
            shown += 1
            text = Text(f"  {mismatch.source} step {mismatch.step}: {mismatch.check}\n")
            console.print(text.append_text(_both(mismatch.recorded, mismatch.ours)), soft_wrap=True)
        for world in result.worlds.values():
            for difference in world.mismatches()[: max(0, max_differences - shown)]:
                console.print(_mismatch_text(difference), soft_wrap=True)
