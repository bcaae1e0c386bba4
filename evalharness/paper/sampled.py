"""Best-of-N: table 4 (greedy, best of N samples, and the difference)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from evalharness.base.errors import UserError
from evalharness.paper.exhibit import Exhibit, Filled, Given, is_sampled
from evalharness.paper.family_table import empty_board, legend
from evalharness.paper.perturbed import choose_label
from evalharness.paper.protocol import Aspect, describe_aspects, differ, list_aspects
from evalharness.results.best_of_n import best_of_n
from evalharness.results.leaderboard.marked_rows import DIFFERS, MARKS, PART, columns_of, row_of
from evalharness.results.leaderboard.standing_rows import Benchmark, make_published_row
from evalharness.results.published import MAIN, load_table
from evalharness.results.run_labels import labels_of
from evalharness.results.scored_run import ScoredRun
from evalharness.results.tabular.table import Row, Table
from evalharness.results.terminal.best_of_n import decoding_rows, temperature_text

_TITLE = "table 4: Best-of-N"
N, TEMPERATURE = 10, 1.0
"""Number of samples and temperature in the published rows."""


def pairs(given: Given) -> dict[str, tuple[ScoredRun | None, ScoredRun | None]]:
    """Map each model with samples to (greedy run or None, run with samples). Runs are grouped by entry, and entries of
    one run by model. If several runs are greedy or sampled, use the first of them."""
    runs_by_model: dict[tuple[str, str], dict[bool, ScoredRun]] = {}
    for entry in given.entries:
        for run in entry.runs:
            if run.perturbation is None:
                which = "" if len(entry.runs) > 1 else run.model_key
                runs_by_model.setdefault((choose_label(entry, run), which), {}).setdefault(
                    is_sampled(run), run
                )
    sampled = {key: runs for key, runs in runs_by_model.items() if True in runs}
    named = [label for label, _ in sampled]
    own = labels_of([runs[True] for runs in sampled.values()])
    return {
        label if named.count(label) == 1 else other: (runs.get(False), runs[True])
        for label, other, runs in zip(named, own, sampled.values(), strict=True)
    }


def _list_missing(given: Given) -> list[str]:
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
        # the delta row's mean is the mean of its cells
        printed = row_of(board, make_published_row(row, benchmark))
        rows.append(Row(row.names["decoding"], printed.cells, row.names["method"]))
    notes, problems = ["delta is paired by task; its interval always has a width"], []
    for label, (greedy, samples) in pairs(given).items():
        if greedy is None or samples is None:
            continue
        try:
            study = best_of_n(greedy, samples)
        except UserError as error:
            problems.append(f"{label}: {error}")
            continue
        protocol = list(list_aspects(greedy, benchmark))
        protocol += [
            Aspect("samples", str(study.samples), str(N)),
            Aspect("temperature", temperature_text(study), f"{TEMPERATURE:g}"),
        ]
        marks = DIFFERS if differ(protocol) else ""
        left |= {DIFFERS} if marks else set()
        own = decoding_rows(study, f"{label}{marks} (ours)")
        partial = {f.family for f in study.families if f.n < benchmark.sizes.get(f.family, 0)}
        rows += [_mark_partial(row, partial) for row in own]
        notes.append(f"{label}: {'; '.join(describe_aspects(protocol))}")
        problems += [f"{label}: {note}" for note in study.notes]
    notes[1:1] = [*legend(rows), *(MARKS[mark] for mark in left)]
    table = Table(_TITLE, columns, tuple(rows), "%", tuple(notes))
    return Filled((table,), (*given.left_out, *problems, *_list_missing(given)))


def _mark_partial(row: Row, families: Collection[str]) -> Row:
    cells = {
        key: replace(cell, marks=cell.marks + PART) if key.rpartition("_")[0] in families else cell
        for key, cell in row.cells.items()
    }
    return replace(row, cells=cells)


TABLE4 = Exhibit(
    "table4",
    _TITLE,
    "greedy, best of ten samples at temperature 1, and the gain",
    "evalharness bon --model CKPT --tasks all",
    lambda given: list(pairs(given)),
    _fill,
    _list_missing,
)
