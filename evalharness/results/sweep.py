"""Compare a model's runs on one family with and without perturbations. A model that has memorised the wording of
actions fails if a perturbation changes this wording. The table follows AgentRefine (ICLR 2025)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, pstdev, stdev
from typing import Any

import numpy as np

from evalharness import stats
from evalharness.base.errors import UserError
from evalharness.envs.base import EnvSpec, Perturbation
from evalharness.results.comparison import compare_runs
from evalharness.results.curves import UNPERTURBED
from evalharness.results.difference import Difference, columns_of
from evalharness.results.perturbation_losses import mean_change
from evalharness.results.score import MEASURES
from evalharness.results.scored_run import ScoredRun
from evalharness.results.trainings import average_interval, interval_of

SCHEMA = 1


def default_perturbations(spec: EnvSpec) -> list[str]:
    """Return the perturbations of a family that a paper has published, or else all perturbations of the family."""
    known: Mapping[str, Perturbation] = spec.actions.wording.perturbations
    published = [name for name, how in known.items() if how.published]
    names = published or list(known)
    if not names:
        raise UserError(f"{spec.title} has no perturbation (see: evalharness data perturbations list)")
    return names


@dataclass(frozen=True)
class Column:
    """A run of the sweep: one perturbation, or unperturbed. Rates are fractions 0..1."""

    name: str
    folder: str
    n: int
    """Number of tasks played."""
    expected: int
    """Number of tasks selected."""
    rates: Mapping[str, float]
    """`success` or `progress` -> rate."""
    ci95: Mapping[str, tuple[float, float]]
    differences: Mapping[str, Difference]
    """Measure -> difference between this run and the unperturbed run, paired by task; empty for the unperturbed run."""
    retention: Mapping[str, float | None]
    """Measure -> perturbed rate / unperturbed rate, over tasks in both runs; None if the unperturbed rate is 0."""
    recalled: bool = False
    """Whether the perturbation's wording is ours, because the paper does not print its wording."""


@dataclass(frozen=True)
class Sweep:
    family: str
    title: str
    model: str
    suite: str
    max_turns: int
    samples: int
    columns: tuple[Column, ...]
    """One column per run; the unperturbed run is the first."""
    average: Mapping[str, float]
    """Measure -> mean over all columns, including the unperturbed run, as in the paper."""
    first_average: Mapping[str, float] | None
    """Measure -> mean over `first_average_of`, the three ALFWorld perturbations that the paper's first version
    averages. None if the sweep lacks one of these perturbations."""
    first_average_of: tuple[str, ...]
    std_population: Mapping[str, float]
    """Measure -> population standard deviation over the columns."""
    average_ci95: Mapping[str, tuple[float, float]]
    """Measure -> 95 % interval of `average`, over the tasks in all columns (and over training seeds)."""
    std_ci95: Mapping[str, tuple[float, float] | None]
    """Measure -> 95 % interval of `std_population` for these perturbations and other tasks; None for several trainings.
    The interval may lie below `std_population`, because sampling error makes the measured deviation too large."""
    std_sample: Mapping[str, float | None]
    """Measure -> sample standard deviation over the columns (n - 1); None for a single column."""
    notes: tuple[str, ...]
    change: Difference | None = None
    """Difference in success between the mean of the perturbed columns and the unperturbed column, paired by task."""

    def to_json(self) -> dict[str, Any]:
        return {"schema": SCHEMA, **asdict(self)}

    def rows(self) -> list[dict[str, Any]]:
        """Return a flat row per column, then rows for the averages and the standard deviations."""
        rows = [_row(column) for column in self.columns]
        for name, values in (
            ("average", self.average),
            *([("first_average", self.first_average)] if self.first_average else []),
            ("std_population", self.std_population),
            ("std_sample", self.std_sample),
        ):
            rows.append(dict.fromkeys(rows[0]) | {"column": name, **values})
        return rows


def _row(column: Column) -> dict[str, Any]:
    row: dict[str, Any] = {"column": column.name, "n": column.n, "expected": column.expected}
    for measure in MEASURES:
        low, high = column.ci95[measure]
        row |= {
            measure: column.rates[measure],
            f"{measure}_ci95_low": low,
            f"{measure}_ci95_high": high,
            f"{measure}_retention": column.retention.get(measure),
        }
        row |= columns_of(measure, column.differences.get(measure))
    return row


def sweep_of(
    runs: Mapping[str, ScoredRun],
    first_average: Sequence[str] = (),
    recalled: Collection[str] = (),
) -> Sweep:
    """Build a sweep. `runs`: perturbation -> run, beginning with `UNPERTURBED`. `first_average`: the perturbations that
    `Sweep.first_average` averages. `recalled`: the perturbations whose wording is ours (`Column.recalled`).

    Raise UserError if the runs differ in model or protocol.
    """
    first = next(iter(runs.values()))
    for run in runs.values():
        if run.model_key != first.model_key:
            raise UserError(
                f"{run.folder} and {first.folder} are runs of two models; a sweep has one model. Compare them with: "
                f"evalharness compare {first.folder} {run.folder}"
            )
    family = next(iter(first.manifest.counts))
    comparisons = compare_runs(list(runs.values())) if len(runs) > 1 else []
    differences: dict[str, dict[str, Difference]] = {name: {} for name in runs}
    for name, comparison in zip(list(runs)[1:], comparisons, strict=True):
        differences[name] = {d.measure: d for d in comparison.differences if d.family == family}
    columns = tuple(_column(name, run, differences[name], name in recalled) for name, run in runs.items())
    shared = set.intersection(*(set(run.tasks) for run in runs.values()))
    rates = {measure: [column.rates[measure] for column in columns] for measure in MEASURES}
    return Sweep(
        family=family,
        title=first.titles.get(family, family),
        model=first.name,
        suite=first.suite,
        max_turns=first.max_turns,
        samples=first.samples,
        columns=columns,
        average={measure: fmean(values) for measure, values in rates.items()},
        first_average=_mean_of(columns, first_average),
        first_average_of=tuple(first_average),
        std_population={measure: pstdev(values) for measure, values in rates.items()},
        average_ci95={m: average_interval(list(runs.values()), m, sorted(shared)) for m in MEASURES},
        std_ci95={m: _std_interval(list(runs.values()), m, sorted(shared)) for m in MEASURES},
        std_sample={m: stdev(values) if len(values) > 1 else None for m, values in rates.items()},
        notes=(*first.limit_notes, *list_recalled(runs, recalled), *_notes(columns)),
        change=mean_change(runs),
    )


def list_recalled(played: Iterable[str], recalled: Collection[str]) -> list[str]:
    names = [name for name in played if name in recalled]
    if not names:
        return []
    return [
        f"\u2021 {', '.join(names)}: our wording, the paper's is not published; so Average and Std are not the "
        "paper's either"
    ]


def _std_interval(
    runs: Sequence[ScoredRun], measure: str, tasks: Sequence[str]
) -> tuple[float, float] | None:
    if len(runs) < 2 or len(tasks) < 2 or any(run.trainings for run in runs):
        return None
    return stats.spread_interval(np.array([[getattr(r.tasks[t], measure) for r in runs] for t in tasks]))


def _mean_of(columns: Sequence[Column], names: Sequence[str]) -> dict[str, float] | None:
    chosen = [column for column in columns if column.name in names]
    if not names or len(chosen) < len(names):
        return None
    return {measure: fmean(column.rates[measure] for column in chosen) for measure in MEASURES}


def _column(name: str, run: ScoredRun, differences: Mapping[str, Difference], recalled: bool) -> Column:
    tasks = list(run.tasks.values())
    rates, intervals = {}, {}
    for measure in MEASURES:
        values = [getattr(task, measure) for task in tasks]
        rates[measure] = fmean(values)
        ends = stats.rate_interval(values, binary=measure == "success")
        intervals[measure] = interval_of(run, tasks[0].family, measure, rates[measure], ends)
    return Column(
        name=name,
        folder=str(run.folder),
        n=len(tasks),
        expected=sum(run.manifest.counts.values()),
        rates=rates,
        ci95=intervals,
        differences=differences,
        retention={m: d.run / d.baseline if d.baseline else None for m, d in differences.items()},
        recalled=recalled,
    )


def _notes(columns: Sequence[Column]) -> list[str]:
    notes = []
    missing = [f"{c.name} {c.n}/{c.expected}" for c in columns if c.n != c.expected]
    if missing:
        notes.append(f"not every task was played: {', '.join(missing)}; average and Std use the played tasks")
    return notes


__all__ = ["SCHEMA", "UNPERTURBED", "Column", "Sweep", "default_perturbations", "sweep_of"]
