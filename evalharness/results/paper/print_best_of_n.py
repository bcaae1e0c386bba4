"""Best-of-N, for a terminal 80 columns wide."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from evalharness.base.terminal import plain_table
from evalharness.base.text import printable
from evalharness.results.best_of_n import BestOfN, FamilyBest
from evalharness.results.html.document import percent
from evalharness.results.paper.table import Column
from evalharness.results.paper.table import Table as Exhibited
from evalharness.results.paper.table4 import decoding_rows
from evalharness.results.paper.text import print_table
from evalharness.results.score import HELD_OUT, MEASURES

_MOST_COLUMNS = 10
_CURVES = {"best_success": "pass@k", "best_progress": "best progress", "every_success": "pass^k"}


def _title(study: BestOfN, family: str) -> str:
    return "held-out" if family == HELD_OUT else study.titles.get(family, family)


def best_table(study: BestOfN) -> Exhibited:
    """Greedy, one sample, best of N and their difference, as the paper has them."""
    columns = (
        Column(f"{family.family}_{measure}", measure, _title(study, family.family))
        for family in study.families
        for measure in MEASURES
    )
    return Exhibited("", tuple(columns), tuple(decoding_rows(study, "")), "%")


def shown_ks(n: int) -> list[int]:
    """Every k up to ten; of more, about ten that double, and the last."""
    if n <= _MOST_COLUMNS:
        return list(range(1, n + 1))
    return sorted({1, 2, 3, 4, 6, 8, *(2**i for i in range(4, n.bit_length())), n} & set(range(1, n + 1)))


def curves_table(study: BestOfN) -> Table:
    ks = shown_ks(study.samples)
    table = plain_table("", *(f"k={k}" for k in ks))
    families = dict.fromkeys(str(row["family"]) for row in study.curves)
    for family in families:
        table.add_row(Text(_title(study, family), style="bold"))
        for curve, name in _CURVES.items():
            values = {
                row["k"]: row["rate"]
                for row in study.curves
                if (row["family"], row["curve"]) == (family, curve)
            }
            table.add_row(f"  {name}", *(percent(values[k]) for k in ks))
    return table


def _quality_row(study: BestOfN, family: FamilyBest) -> list[str]:
    return [
        _title(study, family.family),
        percent(family.duplicate_trajectories),
        f"{family.distinct_first_actions:.1f}",
        percent(family.covered_by_one),
        percent(family.covered_by_all),
    ]


def quality_table(study: BestOfN) -> Table:
    table = plain_table("", "duplicates %", "first actions", "subgoals by one %", "by any %")
    for family in study.families:
        table.add_row(*_quality_row(study, family))
    return table


def print_best_of_n(console: Console, study: BestOfN) -> None:
    console.print(
        Text(f"{printable(study.model, single_line=True)}, best of {study.samples}", style="bold"),
        soft_wrap=True,
    )
    about = f"suite {study.suite}, at most {study.max_turns} turns, temperature {study.temperature:g}"
    if study.perturbation:
        about += f", perturbation {study.perturbation}"
    console.print(Text(about), style="dim")
    for note in study.notes:
        console.print(Text(printable(note, single_line=True)), style="yellow")
    console.print()
    if study.families:
        counts = ", ".join(f"{_title(study, family.family)} {family.n}" for family in study.families)
        print_table(console, best_table(study))
        console.print(Text(f"tasks: {counts}"), style="dim")
        console.print(
            Text("delta: paired by task; its interval has a width even where no task differs", style="dim")
        )
        console.print()
    console.print(Text("k of the samples, every choice of k counted alike (%)", style="bold"))
    console.print(curves_table(study))
    console.print(Text("pass@k: one of k succeeds. pass^k: all k do.", style="dim"))
    console.print()
    if study.families:
        console.print(Text("how different the samples are", style="bold"))
        console.print(quality_table(study))
        console.print(
            Text(
                "duplicates: samples that did, turn for turn, what an earlier one did. first actions: different ones "
                f"among {study.samples} samples of a task. subgoals: completed by one sample, by any of them.",
                style="dim",
            )
        )
