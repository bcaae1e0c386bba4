"""Print a Best-of-N study: the best of N samples, and curves over k."""

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
    """Return the rows `greedy`, `one sample` (mean of single samples), `best of N` and `delta` (best of N - greedy)."""
    kinds: dict[str, Mapping[str, Mapping[str, float]]] = {
        "greedy": {f.family: f.greedy for f in study.families},
        "one sample": {f.family: f.one_sample for f in study.families},
        f"best of {study.samples}": {f.family: f.best for f in study.families},
    }
    rows = [
        Row(
            name,
            {f"{family}_{m}": percent_cell(rates[m]) for family, rates in listed.items() for m in MEASURES},
            group,
            "run",
        )
        for name, listed in kinds.items()
    ]
    delta = {
        f"{f.family}_{m}": percent_cell(f.delta[m], f.delta_ci95[m]) for f in study.families for m in MEASURES
    }
    return [*rows, Row("delta", delta, group, "run")]


def temperature_text(study: BestOfN) -> str:
    return "as the model recommends" if study.temperature is None else f"{study.temperature:g}"


def _title(study: BestOfN, family: str) -> str:
    return "held-out" if family == HELD_OUT else study.titles.get(family, family)


def best_table(study: BestOfN) -> Table:
    """Return the table of `decoding_rows` in the layout of the AgentRefine paper."""
    columns = (
        Column(f"{family.family}_{measure}", measure, _title(study, family.family))
        for family in study.families
        for measure in MEASURES
    )
    return Table("", tuple(columns), tuple(decoding_rows(study, "")), "%")


def select_ks(n: int) -> list[int]:
    """Return the values of k in the table: 1 to n if n is at most ten; otherwise about ten values from 1 to n."""
    if n <= _MOST_COLUMNS:
        return list(range(1, n + 1))
    return sorted({1, 2, 3, 4, 6, 8, *(2**i for i in range(4, n.bit_length())), n} & set(range(1, n + 1)))


def curves_table(study: BestOfN) -> Drawn:
    ks = select_ks(study.samples)
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


def answer(study: BestOfN) -> str:
    """Return a sentence with the gain in success of the best of N samples over one greedy attempt."""
    total = next((f for f in study.families if f.family == HELD_OUT), study.families[0])
    low, high = (100 * end for end in total.delta_ci95["success"])
    greedy, best = percent(total.greedy["success"]), percent(total.best["success"])
    return (
        f"best of {study.samples} solves {best} % instead of {greedy} % (greedy): "
        f"{_title(study, total.family)} success "
        f"{100 * total.delta['success']:+.1f} points [{low:.1f}, {high:.1f}], {total.n} tasks"
    )


def print_best_of_n(console: Console, study: BestOfN, *, verbose: bool = False) -> None:
    """Print the study. `verbose` has no effect, because every number is always printed."""
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
        counts = ", ".join(f"{_title(study, family.family)} {family.n}" for family in study.families)
        print_table(console, best_table(study))
        remark(console, f"tasks: {counts}")
        remark(console, "delta: paired by task; its interval always has a width")
        console.print()
    console.print(Text("mean over all choices of k samples (%)", style="bold"))
    console.print(curves_table(study))
    remark(console, "pass@k: at least one of k succeeds. pass^k: all k succeed.")
