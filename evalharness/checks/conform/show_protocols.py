"""The conformance of protocols, for a person."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console
from rich.text import Text

from evalharness.base.terminal import plain_table
from evalharness.checks.conform.protocol_runs import ProtocolConformance
from evalharness.checks.conform.protocols import CHECKS
from evalharness.checks.conform.show import mismatch_text


def show_protocols(
    console: Console, results: Mapping[str, ProtocolConformance], *, max_differences: int
) -> None:
    table = plain_table("equal / all", *results)

    def cell(equal: int, total: int) -> Text:
        if not total:
            return Text("-", style="dim")
        return Text(f"{equal}/{total}", style="" if equal == total else "red")

    for check in CHECKS:
        table.add_row(check, *(cell(r.agent.equal[check], r.agent.compared[check]) for r in results.values()))
    for family in sorted({family for result in results.values() for family in result.worlds}):
        worlds = [result.worlds.get(family) for result in results.values()]
        steps = [cell(w.steps_matched, w.steps_replayed) if w else cell(0, 0) for w in worlds]
        table.add_row(f"world, {family}: steps", *steps)
        ends = [w.tallies["success"] if w else None for w in worlds]
        table.add_row(
            f"world, {family}: outcome",
            *(cell(t.equal + t.excepted, t.compared) if t else cell(0, 0) for t in ends),
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
            where = f"  {mismatch.source} step {mismatch.step}: {mismatch.check}"
            told = f": recorded {repr(mismatch.recorded)[:200]}, ours {repr(mismatch.ours)[-300:]}"
            console.print(Text(where + told), soft_wrap=True)
        for world in result.worlds.values():
            for difference in world.mismatches()[: max(0, max_differences - shown)]:
                console.print(mismatch_text(difference), soft_wrap=True)
