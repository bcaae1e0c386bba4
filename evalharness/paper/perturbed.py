"""Table 3 and figure 3: a family's scores under each rewording of its actions (perturbation), with their average."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from evalharness.base.errors import UserError
from evalharness.base.grouping import group_by_key
from evalharness.envs.base import EnvSpec
from evalharness.paper import plots
from evalharness.paper.exhibit import Entry, Exhibit, Filled, Given
from evalharness.paper.family_table import difference_cell, legend, protocol_lines
from evalharness.paper.protocol import describe_aspects, differ, list_aspects
from evalharness.results.leaderboard.marked_rows import DIFFERS, PART
from evalharness.results.leaderboard.standing_rows import Benchmark
from evalharness.results.published import load_table
from evalharness.results.run_labels import labels_of, short_name
from evalharness.results.score import MEASURES
from evalharness.results.scored_run import ScoredRun, of_family
from evalharness.results.sweep import UNPERTURBED, Sweep, list_recalled, sweep_of
from evalharness.results.tabular.table import Cell, Column, Row, Table, percent_cell
from evalharness.results.trainings import join_trainings

_TABLE = "table 3: perturbation of the action surface"
FIRST = "first_average"
Groups = Mapping[str, Mapping[str, ScoredRun]]
"""Model's label -> perturbation -> run. The unperturbed run comes first."""


def find_perturbed_family(specs: Mapping[str, EnvSpec]) -> EnvSpec:
    """Return the environment family for which the paper publishes perturbations."""
    return next(
        spec
        for spec in specs.values()
        if any(how.published for how in spec.actions.wording.perturbations.values())
    )


def choose_label(entry: Entry, run: ScoredRun) -> str:
    """Return the entry's label if the entry has several runs of one model; otherwise the model's short name."""
    several, models = len(entry.runs) > 1, {each.name for each in entry.runs}
    return entry.label if several and len(models) == 1 else short_name(run.name)


def _join_means(entry: Entry) -> list[tuple[str, ScoredRun]]:
    """Return (label, run) for each run. Runs that differ only in the training seed are averaged into one."""
    by_words = group_by_key((run.perturbation, run) for run in entry.runs)
    joined = [join_trainings(runs) for runs in by_words.values()]
    if means := [run for run in joined if run is not None]:
        return [(entry.label, run) for run in means]
    return [(choose_label(entry, run), run) for run in entry.runs]


def group_runs(given: Given, family: str) -> Groups:
    """Group runs by entry, and entries of one run by model. Of two runs with one perturbation, use the first."""
    groups: dict[tuple[str, str], dict[str, ScoredRun]] = {}
    for entry in given.entries:
        for label, run in _join_means(entry):
            if family in run.manifest.counts:
                which = "" if len(entry.runs) > 1 else run.model_key
                groups.setdefault((label, which), {}).setdefault(
                    run.perturbation or UNPERTURBED, of_family(run, family)
                )
    ordered = {
        key: dict(sorted(runs.items(), key=lambda item: (item[0] != UNPERTURBED, item[0])))
        for key, runs in groups.items()
        if runs.keys() - {UNPERTURBED}
    }
    named = [label for label, _ in ordered]
    own = labels_of([next(iter(runs.values())) for runs in ordered.values()])
    return {
        label if named.count(label) == 1 else other: runs
        for label, other, runs in zip(named, own, ordered.values(), strict=True)
    }


def columns_of(family: str, title: str, names: Sequence[str], *, first: str = "") -> tuple[Column, ...]:
    """Return the columns of success and progress: unperturbed, under each perturbation of `names`, average, deviation.
    If `first` is given, it is the title of the average over the first preprint's perturbations."""
    groups = [(family, title), *((name.lower(), name) for name in names), ("average", "Average")]
    columns = [Column(f"{key}_{m}", m, group) for key, group in groups for m in MEASURES]
    columns += [Column(f"std_{m}", m, "Std", decimals=2) for m in MEASURES]
    return (*columns, *(Column(f"{FIRST}_{m}", m, first) for m in MEASURES if first))


def make_cells(sweep: Sweep, *, whole: bool, partial: Collection[str]) -> dict[str, Cell]:
    """Return the cells of a row. `whole`: all perturbations were played, so average and deviation are comparable with
    the published ones. `partial`: perturbations under which only some tasks were played."""
    cells = {}
    of_all = (PART if partial else "") + (DIFFERS if any(c.recalled for c in sweep.columns) else "")
    for column in sweep.columns:
        key = sweep.family if column.name == UNPERTURBED else column.name.lower()
        mark = (PART if column.name in partial else "") + (DIFFERS if column.recalled else "")
        for m in MEASURES:
            cells[f"{key}_{m}"] = percent_cell(column.rates[m], column.ci95[m], mark)
    for m in MEASURES:
        if whole:
            cells[f"average_{m}"] = percent_cell(sweep.average[m], sweep.average_ci95[m], of_all)
            cells[f"std_{m}"] = percent_cell(sweep.std_population[m], sweep.std_ci95[m], of_all)
        if sweep.first_average:
            cells[f"{FIRST}_{m}"] = percent_cell(sweep.first_average[m], marks=PART if partial else "")
    return cells


def make_published_rows() -> list[Row]:
    first = {row.names["method"]: row.numbers for row in load_table("perturbation_preprint_average")}
    rows = []
    for row in load_table("perturbation"):
        cells = {column: Cell(printed.value) for column, printed in row.numbers.items()}
        for m in MEASURES:
            if printed := first.get(row.names["method"], {}).get(f"average_{m}"):
                cells[f"{FIRST}_{m}"] = Cell(printed.value)
        rows.append(Row(row.names["method"], cells))
    return rows


def _list_published_names(spec: EnvSpec) -> tuple[list[str], list[str]]:
    """Return the perturbations of the paper, and those of its first preprint."""
    known = spec.actions.wording.perturbations
    return (
        [name for name, how in known.items() if how.published],
        [name for name, how in known.items() if how.in_first_average],
    )


def _list_missing(given: Given) -> list[str]:
    spec = find_perturbed_family(given.specs)
    names, _ = _list_published_names(spec)
    return [
        f"{label}: no run {'unperturbed' if name == UNPERTURBED else f'under {name}'}"
        for label, runs in group_runs(given, spec.family).items()
        for name in (UNPERTURBED, *names)
        if name not in runs
    ]


def _fill(given: Given) -> Filled:
    spec, benchmark = find_perturbed_family(given.specs), Benchmark.of(given.specs)
    names, first = _list_published_names(spec)
    columns = columns_of(spec.family, spec.title, names, first=f"Avg {first[0]}-{first[-1]}")
    recalled = {name for name, how in spec.actions.wording.perturbations.items() if how.recalled}
    rows, paired, problems = make_published_rows(), [], []
    for label, runs in group_runs(given, spec.family).items():
        whole = {UNPERTURBED, *names} <= runs.keys()
        chosen = {name: run for name, run in runs.items() if name in (UNPERTURBED, *names)}
        try:
            sweep = sweep_of(chosen, first, recalled)
        except UserError as error:
            problems.append(f"{label}: {error}")
            continue
        partial = {name for name, run in chosen.items() if not run.played[spec.family].complete}
        protocols = [
            each for run in chosen.values() for each in list_aspects(run, benchmark, perturbation=False)
        ]
        differs = differ(protocols)
        about = tuple(dict.fromkeys(describe_aspects(protocols)))
        rows.append(
            Row(
                label,
                make_cells(sweep, whole=whole, partial=partial),
                "ours",
                "run",
                DIFFERS if differs else "",
                about,
            )
        )
        if UNPERTURBED in chosen and len(chosen) > 1:
            paired.append(_make_paired_row(label, sweep, chosen))
    notes = (
        "Average and Std (population) are over the unperturbed column and all perturbations; "
        f"the last column averages {', '.join(first)} alone, as the first preprint does",
        *legend(rows),
        *(list_recalled(names, recalled) if any(row.ours for row in rows) else ()),
        *protocol_lines(rows),
    )
    tables = [Table(_TABLE, columns, tuple(rows), "%", notes)]
    if paired:
        used = tuple(
            Column(c.key, c.name, c.group, signed=True)
            for c in columns
            if any(c.key in row.cells for row in paired)
        )
        note = "perturbed - unperturbed, paired by task, points"
        tables.append(Table("differences between runs of ours", used, tuple(paired), notes=(note,)))
    return Filled(tuple(tables), (*given.left_out, *problems, *_list_missing(given)))


def _make_paired_row(label: str, sweep: Sweep, runs: Mapping[str, ScoredRun]) -> Row:
    cells = {
        f"{column.name.lower()}_{m}": difference_cell(d, runs[UNPERTURBED], runs[column.name])
        for column in sweep.columns
        for m, d in column.differences.items()
    }
    return Row(label, cells, source="difference")


TABLE3 = Exhibit(
    "table3",
    _TABLE,
    "success and progress of one family in its own words and under each published perturbation",
    "evalharness sweep --tasks alfworld --model CKPT",
    lambda given: list(group_runs(given, find_perturbed_family(given.specs).family)),
    _fill,
    _list_missing,
)


_FIGURE = "figure 3: success without and with each perturbation"


def _make_points(table: Table, family: str, names: list[str]) -> list[dict[str, Any]]:
    points = []
    for row in table.rows:
        for column in table.columns:
            key, _, measure = column.key.rpartition("_")
            cell = row.cell(column)
            low, high = (end / 100 for end in cell.ci95) if cell.ci95 else (None, None)
            if column.group in names and cell.value is not None:
                perturbation = UNPERTURBED if key == family else column.group
                points.append(
                    {
                        "run": f"{row.name} {'(ours)' if row.ours else '(published)'}",
                        "family": family,
                        "perturbation": perturbation,
                        "measure": measure,
                        "rate": cell.value / 100,
                        "ci95_low": low,
                        "ci95_high": high,
                    }
                )
    return points


def _fill_figure(given: Given) -> Filled:
    filled = TABLE3.fill(given)
    whole = filled.tables[0]
    spec = find_perturbed_family(given.specs)
    groups = [g for g in whole.groups if not g.startswith(("Average", "Std", "Avg"))]
    columns = tuple(c for c in whole.columns if c.group in groups and c.name == "success")
    notes = ("the published numbers are those of table 3", *whole.notes[1:])
    table = Table(_FIGURE, columns, whole.rows, "%", notes)
    points = _make_points(table, spec.family, groups)
    titles = {spec.family: spec.title}
    return Filled(
        (table, *filled.tables[1:]), filled.missing, lambda: plots.draw_perturbations(points, titles)
    )


FIGURE3 = Exhibit(
    "figure3",
    _FIGURE,
    "how far success falls where actions are worded otherwise",
    TABLE3.command,
    TABLE3.takes,
    _fill_figure,
    TABLE3.needs,
)
