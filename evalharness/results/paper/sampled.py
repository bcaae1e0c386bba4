"""Best-of-N: table 4 (greedy, the best of N samples, their difference), and a study of it for a terminal."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console
from rich.table import Table as Drawn
from rich.text import Text

from evalharness.base.errors import UserError
from evalharness.base.terminal import plain_table, remark
from evalharness.results.best_of_n import BestOfN, best_of_n
from evalharness.results.html.document import percent
from evalharness.results.paper.exhibit import Exhibit, Filled, Given, is_sampled
from evalharness.results.paper.family_table import DIFFERS, MARKS, columns_of, empty_board, legend, row_of
from evalharness.results.paper.perturbed import label_of
from evalharness.results.paper.protocol import Aspect, aspects, differ, phrases
from evalharness.results.paper.published import MAIN, load_table
from evalharness.results.paper.standing_rows import Benchmark, published_row
from evalharness.results.paper.table import Column, Row, Table, percent_cell
from evalharness.results.paper.text import print_table
from evalharness.results.report.comparison import print_head
from evalharness.results.run_labels import labels_of
from evalharness.results.score import HELD_OUT, MEASURES
from evalharness.results.scored_run import ScoredRun

_TITLE = "table 4: Best-of-N"
N, TEMPERATURE = 10, 1.0
"""Of the published rows."""


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


def _temperature(study: BestOfN) -> str:
    return "as the model recommends" if study.temperature is None else f"{study.temperature:g}"


def pairs(given: Given) -> dict[str, tuple[ScoredRun | None, ScoredRun | None]]:
    """Model -> (greedy run, samples): the runs of one entry, and single runs of one model. Of two alike the first."""
    found: dict[tuple[str, str], dict[bool, ScoredRun]] = {}
    for entry in given.entries:
        for run in entry.runs:
            if run.perturbation is None:
                which = "" if len(entry.runs) > 1 else run.model_key
                found.setdefault((label_of(entry, run), which), {}).setdefault(is_sampled(run), run)
    sampled = {key: runs for key, runs in found.items() if True in runs}
    named = [label for label, _ in sampled]
    own = labels_of([runs[True] for runs in sampled.values()])
    return {
        label if named.count(label) == 1 else other: (runs.get(False), runs[True])
        for label, other, runs in zip(named, own, sampled.values(), strict=True)
    }


def _missing(given: Given) -> list[str]:
    return [
        f"{label}: no greedy run beside its samples"
        for label, (greedy, _) in pairs(given).items()
        if not greedy
    ]


def _fill(given: Given) -> Filled:
    benchmark = Benchmark.of(given.specs)
    board = empty_board(benchmark, load_table(MAIN))
    columns = columns_of(board)
    rows, left = [], set[str]()
    for row in load_table("best_of_n"):
        printed = row_of(board, published_row(row, benchmark))  # the mean of differences is one as well
        rows.append(Row(row.names["decoding"], printed.cells, row.names["method"]))
    notes, problems = ["delta is paired by task; its interval has a width even where no task differs"], []
    for label, (greedy, samples) in pairs(given).items():
        if greedy is None or samples is None:
            continue
        try:
            study = best_of_n(greedy, samples)
        except UserError as error:
            problems.append(f"{label}: {error}")
            continue
        found = list(aspects(greedy, benchmark))
        found += [
            Aspect("samples", str(study.samples), str(N)),
            Aspect("temperature", _temperature(study), f"{TEMPERATURE:g}"),
        ]
        marks = DIFFERS if differ(found) else ""
        left |= {DIFFERS} if marks else set()
        own = decoding_rows(study, f"{label}{marks} (ours)")
        rows += own
        notes.append(f"{label}: {'; '.join(phrases(found))}")
        problems += [f"{label}: {note}" for note in study.notes]
    notes[1:1] = [*legend(rows), *(MARKS[mark] for mark in left)]
    table = Table(_TITLE, columns, tuple(rows), "%", tuple(notes))
    return Filled((table,), (*given.left_out, *problems, *_missing(given)))


TABLE4 = Exhibit(
    "table4",
    _TITLE,
    "greedy, best of ten samples at temperature 1, and the gain",
    "evalharness bon --model CKPT --tasks all",
    lambda given: list(pairs(given)),
    _fill,
    _missing,
)


_MOST_COLUMNS = 10
_CURVES = {"best_success": "pass@k", "best_progress": "best progress", "every_success": "pass^k"}


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


def quality_table(study: BestOfN) -> Drawn:
    table = plain_table("", "duplicates %", "first actions", "subgoals by one %", "by any %")
    for family in study.families:
        table.add_row(
            _called(study, family.family),
            percent(family.duplicate_trajectories),
            f"{family.distinct_first_actions:.1f}",
            percent(family.covered_by_one),
            percent(family.covered_by_all),
        )
    return table


def print_best_of_n(console: Console, study: BestOfN) -> None:
    about = f"suite {study.suite}, at most {study.max_turns} turns, temperature {_temperature(study)}"
    if study.perturbation:
        about += f", perturbation {study.perturbation}"
    print_head(console, f"{study.model}, best of {study.samples}", about, study.notes)
    if study.families:
        counts = ", ".join(f"{_called(study, family.family)} {family.n}" for family in study.families)
        print_table(console, best_table(study))
        remark(console, f"tasks: {counts}")
        remark(console, "delta: paired by task; its interval has a width even where no task differs")
        console.print()
    console.print(Text("k of the samples, every choice of k counted alike (%)", style="bold"))
    console.print(curves_table(study))
    remark(console, "pass@k: one of k succeeds. pass^k: all k do.")
    console.print()
    if study.families:
        console.print(Text("how different the samples are", style="bold"))
        console.print(quality_table(study))
        remark(
            console,
            "duplicates: samples that did, turn for turn, what an earlier one did. first actions: different ones "
            f"among {study.samples} samples of a task. subgoals: completed by one sample, by any of them.",
        )
