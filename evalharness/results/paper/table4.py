"""Table 4: greedy, the best of N samples, and their difference."""

from __future__ import annotations

from collections.abc import Mapping

from evalharness.base.errors import UserError
from evalharness.results.best_of_n import BestOfN, best_of_n
from evalharness.results.paper.exhibit import Exhibit, Filled
from evalharness.results.paper.family_table import DIFFERS, MARKS, columns_of, empty_board, legend, row_of
from evalharness.results.paper.given import Given, is_sampled
from evalharness.results.paper.protocol import Aspect, aspects, differ, phrases
from evalharness.results.paper.published import MAIN, load_table
from evalharness.results.paper.standing_rows import Benchmark, published_row
from evalharness.results.paper.table import Row, Table, percent_cell
from evalharness.results.paper.table3 import label_of
from evalharness.results.score import MEASURES
from evalharness.results.scored_run import ScoredRun

TITLE = "table 4: Best-of-N"
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


def pairs(given: Given) -> dict[str, tuple[ScoredRun | None, ScoredRun | None]]:
    """Model -> (greedy run, samples): the runs of one entry, and single runs of one model."""
    found: dict[str, dict[bool, ScoredRun]] = {}
    for entry in given.entries:
        for run in entry.runs:
            if run.perturbation is None:
                found.setdefault(label_of(entry, run), {}).setdefault(is_sampled(run), run)
    return {label: (runs.get(False), runs.get(True)) for label, runs in found.items() if True in runs}


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
        printed = row_of(
            board, published_row(row, benchmark)
        )  # the held-out mean of differences is one as well
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
            Aspect("temperature", f"{study.temperature:g}", f"{TEMPERATURE:g}"),
        ]
        marks = DIFFERS if differ(found) else ""
        left |= {DIFFERS} if marks else set()
        own = decoding_rows(study, f"{label}{marks} (ours)")
        rows += own
        notes.append(f"{label}: {'; '.join(phrases(found))}")
        problems += [f"{label}: {note}" for note in study.notes]
    notes[1:1] = [*legend(rows), *(MARKS[mark] for mark in left)]
    table = Table(TITLE, columns, tuple(rows), "%", tuple(notes))
    return Filled((table,), (*given.left_out, *problems, *_missing(given)))


EXHIBIT = Exhibit(
    "table4",
    TITLE,
    "greedy, best of ten samples at temperature 1, and the gain",
    "evalharness bon --model CKPT --tasks all",
    lambda given: list(pairs(given)),
    _fill,
    _missing,
)
