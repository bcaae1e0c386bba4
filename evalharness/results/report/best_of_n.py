"""A study of Best-of-N for a terminal: the best of N samples, and curves over k."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console
from rich.table import Table as Drawn
from rich.text import Text

from evalharness.base.terminal import line, plain_table, remark
from evalharness.results.best_of_n import BestOfN
from evalharness.results.html.document import percent
from evalharness.results.score import HELD_OUT, MEASURES
from evalharness.results.tabular.table import Column, Row, Table, percent_cell
from evalharness.results.tabular.text import print_table

_MOST_COLUMNS = 10
_CURVES = {"best_success": "pass@k", "best_progress": "best progress", "every_success": "pass^k"}


def decoding_rows(study: BestOfN, group: str) -> list[Row]:
    """Greedy, best of N and delta; between them what one sample does, which the paper does not have."""
    kinds: dict[str, Mapping[str, Mapping[str, float]]] = {
        "greedy": {f.family: f.greedy for f in study.families},
        "one sample": {f.family: f.one_sample for f in study.families},
        f"best of {study.samples}": {f.family: f.best for f in study.families},
    }
    rows = [
        Row(
            name,
            {f"{family}_{m}": percent_cell(rates[m]) for family, rates in found.items() for m in MEASURES},
            group,
            "run",
        )
        for name, found in kinds.items()
    ]
    delta = {
        f"{f.family}_{m}": percent_cell(f.delta[m], f.delta_ci95[m]) for f in study.families for m in MEASURES
    }
    return [*rows, Row("delta", delta, group, "run")]


def temperature_text(study: BestOfN) -> str:
    return "as the model recommends" if study.temperature is None else f"{study.temperature:g}"


def _called(study: BestOfN, family: str) -> str:
    return "held-out" if family == HELD_OUT else study.titles.get(family, family)


def best_table(study: BestOfN) -> Table:
    """Greedy, one sample, best of N and their difference, as the paper has them."""
    columns = (
        Column(f"{family.family}_{measure}", measure, _called(study, family.family))
        for family in study.families
        for measure in MEASURES
    )
    return Table("", tuple(columns), tuple(decoding_rows(study, "")), "%")


def shown_ks(n: int) -> list[int]:
    """Every k up to ten; of more, about ten that double, and the last."""
    if n <= _MOST_COLUMNS:
        return list(range(1, n + 1))
    return sorted({1, 2, 3, 4, 6, 8, *(2**i for i in range(4, n.bit_length())), n} & set(range(1, n + 1)))


def curves_table(study: BestOfN) -> Drawn:
    ks = shown_ks(study.samples)
    table = plain_table("", *(f"k={k}" for k in ks))
    families = dict.fromkeys(str(row["family"]) for row in study.curves)
    for family in families:
        table.add_row(Text(_called(study, family), style="bold"))
        for curve, name in _CURVES.items():
            values = {
                row["k"]: row["rate"]
                for row in study.curves
                if (row["family"], row["curve"]) == (family, curve)
            }
            table.add_row(f"  {name}", *(percent(values[k]) for k in ks))
    return table


def answer(study: BestOfN) -> str:
    """What sampling gains over one greedy attempt, on what counts most."""
    total = next((f for f in study.families if f.family == HELD_OUT), study.families[0])
    low, high = (100 * end for end in total.delta_ci95["success"])
    greedy, best = percent(total.greedy["success"]), percent(total.best["success"])
    return (
        f"best of {study.samples} solves {best} % instead of {greedy} % (greedy): "
        f"{_called(study, total.family)} success "
        f"{100 * total.delta['success']:+.1f} points [{low:.1f}, {high:.1f}], {total.n} tasks"
    )


def print_best_of_n(console: Console, study: BestOfN, *, verbose: bool = False) -> None:
    """`verbose` changes nothing: every number is shown."""
    about = f"suite {study.suite}, at most {study.max_turns} turns, temperature {temperature_text(study)}"
    if study.perturbation:
        about += f", perturbation {study.perturbation}"
    if study.families:
        console.print(line(answer(study), "bold"))
    remark(console, f"{study.model}, best of {study.samples}; {about}")
    for note in study.notes:
        console.print(line(note, "yellow"))
    console.print()
    if study.families:
        counts = ", ".join(f"{_called(study, family.family)} {family.n}" for family in study.families)
        print_table(console, best_table(study))
        remark(console, f"tasks: {counts}")
        remark(console, "delta: paired by task; never zero-width")
        console.print()
    console.print(Text("k of the samples, every choice of k counted alike (%)", style="bold"))
    console.print(curves_table(study))
    remark(console, "pass@k: one of k succeeds. pass^k: all k do.")
