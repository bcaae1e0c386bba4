"""Compare the checkpoints of a training run: compute the scores by step, and choose the best checkpoint."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import fmean
from typing import Any

from evalharness import stats
from evalharness.base.errors import UserError
from evalharness.results.comparison import require_comparable, subset_pairs
from evalharness.results.difference import Difference, adjust_p_values, difference_of, estimate_difference
from evalharness.results.score import HELD_OUT, MEASURES, held_out_estimate, pooled_score
from evalharness.results.scored_run import ScoredRun, TaskScore, common_tasks

SCHEMA = 1
ALL = "all"
"""Name of the main score if there is no held-out score. If all runs have the same complete `--subset`, this score is
the estimate of the held-out score; otherwise it is the mean over all tasks."""
Rates = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class Point:
    """One checkpoint. Rates are fractions 0..1."""

    name: str
    x: float
    """Step, epoch, or value of another axis (`Training.axis`)."""
    folder: str
    n: int
    """Number of tasks played."""
    expected: int
    rates: Rates
    """Score (a family, `held_out` or `all`) -> measure (`success` or `progress`) -> rate."""
    ci95: Mapping[str, Mapping[str, tuple[float, float]]]
    against_first: Mapping[str, Difference] = field(default_factory=dict)
    """Measure -> difference in the main score between this checkpoint and the first checkpoint, paired by task."""


@dataclass(frozen=True)
class Training:
    model: str
    axis: str
    """Name of the x axis: `step`, `epoch`, or the name given with `--x`."""
    suite: str
    max_turns: int
    titles: Mapping[str, str]
    score: str
    """The main score: `held_out`, or `all` if a run has not finished all held-out tasks."""
    by: str
    """The measure that selects the best checkpoint."""
    points: tuple[Point, ...]
    best: str
    """Name of the best checkpoint; if several are equal, the earliest of them."""
    selected_on: str
    """The suite on which the best checkpoint was selected."""
    chosen_among: int
    """Number of checkpoints that have been played on the suite `selected_on`."""
    notes: tuple[str, ...]

    @property
    def winner(self) -> Point:
        return next(point for point in self.points if point.name == self.best)

    def to_json(self) -> dict[str, Any]:
        return {"schema": SCHEMA, **asdict(self)}

    def rows(self) -> list[dict[str, Any]]:
        """Return one flat row per checkpoint, score and measure."""
        return [
            {
                "checkpoint": point.name,
                self.axis: point.x,
                "family": column,
                "measure": measure,
                "tasks": point.n,
                "rate": point.rates[column][measure],
                "ci95_low": point.ci95[column][measure][0],
                "ci95_high": point.ci95[column][measure][1],
                **_tests(point.against_first.get(measure) if column == self.score else None),
                "best": point.name == self.best,
            }
            for point in self.points
            for column in point.rates
            for measure in MEASURES
        ]


def _tests(against_first: Difference | None) -> dict[str, Any]:
    names = ("difference", "p", "p_holm")
    return {f"{name}_first": getattr(against_first, name, None) for name in names}


def training_of(
    runs: Mapping[str, tuple[float, ScoredRun]],
    *,
    model: str,
    axis: str,
    by: str = "progress",
    select: Mapping[str, ScoredRun] | None = None,
) -> Training:
    """Compare the runs of the checkpoints. `runs`: checkpoint -> (value on the axis, run). `select`: checkpoint -> run
    on another suite, which chooses the best checkpoint; None if the same runs choose it.

    Raise UserError if the runs differ in protocol or tasks.
    """
    ordered = dict(sorted(runs.items(), key=lambda item: (item[1][0], item[0])))
    scored = {name: run for name, (_, run) in ordered.items()}
    first = next(iter(scored.values()))
    require_comparable(list(scored.values()))
    choosing = scored if select is None else {name: select[name] for name in scored if name in select}
    if not choosing:
        raise UserError("no checkpoint has been played on the suite that selects the best checkpoint")
    require_comparable(list(choosing.values()))
    best = _choose(choosing, by)
    score, stands_for = _score_column(scored), _stands_for(scored.values())
    tested = _test_against_first(scored, score, stands_for)
    points: list[Point] = []
    for name, (x, run) in ordered.items():
        points.append(_point(name, x, run, score, stands_for, tested.get(name, {})))
    return Training(
        model=model,
        axis=axis,
        suite=first.suite,
        max_turns=first.max_turns,
        titles={
            **first.titles,
            HELD_OUT: "held-out",
            ALL: _title_of_all(list(scored.values())),
        },
        score=score,
        by=by,
        points=tuple(points),
        best=best,
        selected_on=next(iter(choosing.values())).suite,
        chosen_among=len(choosing),
        notes=tuple(_notes(points, scored, choosing)),
    )


def _title_of_all(runs: Sequence[ScoredRun]) -> str:
    if _stands_for(runs):
        return "held-out, estimated"
    whole = all(run.manifest.counts == run.manifest.expected for run in runs)
    return "all tasks" if whole else "tasks played"


def _stands_for(runs: Collection[ScoredRun]) -> Mapping[str, int]:
    """Return task id -> number of tasks that it represents; empty unless all runs have the same complete `--subset`."""
    subset = dict(next(iter(runs)).manifest.subset)
    estimated = all(
        run.manifest.subset == subset and held_out_estimate(run.by_family, subset, run.samples)
        for run in runs
    )
    return subset if estimated else {}


def _score_column(runs: Mapping[str, ScoredRun]) -> str:
    return HELD_OUT if all(run.held_out[0] for run in runs.values()) else ALL


def _point(
    name: str,
    x: float,
    run: ScoredRun,
    score: str,
    stands_for: Mapping[str, int],
    against_first: Mapping[str, Difference],
) -> Point:
    rates: dict[str, dict[str, float]] = {}
    intervals: dict[str, dict[str, tuple[float, float]]] = {}
    for family, tasks in run.family_tasks.items():
        values = {measure: [getattr(task, measure) for task in tasks] for measure in MEASURES}
        rates[family] = {measure: fmean(listed) for measure, listed in values.items()}
        intervals[family] = {
            measure: stats.rate_interval(listed, binary=measure == "success")
            for measure, listed in values.items()
        }
    whole = (
        (run.held_out[0] if score == HELD_OUT else None)
        or held_out_estimate(run.by_family, stands_for, run.samples)
        or pooled_score(run.by_family)
    )
    rates[score] = {measure: getattr(whole, f"{measure}_rate") for measure in MEASURES}
    intervals[score] = {measure: getattr(whole, f"{measure}_rate_ci95") for measure in MEASURES}
    return Point(
        name=name,
        x=x,
        folder=str(run.folder),
        n=len(run.tasks),
        expected=sum(run.manifest.counts.values()),
        rates=rates,
        ci95=intervals,
        against_first=against_first,
    )


def _list_counted_tasks(run: ScoredRun, score: str, among: Collection[str]) -> dict[str, list[TaskScore]]:
    """Map each family that the score counts to its tasks in `among`."""
    return {
        family: counted
        for family, tasks in run.family_tasks.items()
        if score == ALL or family in run.manifest.held_out
        if (counted := [task for task in tasks if task.task_id in among])
    }


def _common(runs: Sequence[ScoredRun]) -> set[str]:
    """Return the tasks that every run has played. Raise UserError if the content of a task differs between runs."""
    common = set.intersection(*(set(common_tasks(runs[0], run)) for run in runs))
    if not common:
        raise UserError("the checkpoints have no task in common; repeat the command to finish their runs")
    return common


def _choose(runs: Mapping[str, ScoredRun], by: str) -> str:
    """Return the checkpoint with the best score over the tasks that all checkpoints have played."""
    common = _common(list(runs.values()))
    column, stands_for = _score_column(runs), _stands_for(runs.values())
    mean_weight = sum(stands_for.values()) / len(stands_for) if stands_for else 1.0
    totals: dict[str, float] = {}
    for name, run in runs.items():
        totals[name] = fmean(
            getattr(task, by) * stands_for.get(task.task_id, 1) / mean_weight
            for tasks in _list_counted_tasks(run, column, common).values()
            for task in tasks
        )
    highest = max(totals.values())
    return next(name for name, total in totals.items() if total > highest - 1e-12)


def _test_against_first(
    runs: Mapping[str, ScoredRun], score: str, stands_for: Mapping[str, int]
) -> dict[str, dict[str, Difference]]:
    """Test every checkpoint against the first, with Holm's correction. Return checkpoint -> measure -> test."""
    (_, first), *others = runs.items()
    tests_of_runs = []
    for _, run in others:
        common = _common([first, run])
        one, other = (_list_counted_tasks(each, score, common) for each in (first, run))
        pairs = {family: list(zip(one[family], other[family], strict=True)) for family in one}
        subset = subset_pairs(pairs, first, run) if stands_for else None
        tests_of_runs.append(
            [
                estimate_difference(score, measure, subset, stands_for)
                if subset
                else difference_of(score, measure, list(pairs.values()))
                for measure in MEASURES
            ]
        )
    return {
        name: {test.measure: test for test in tests}
        for (name, _), tests in zip(others, adjust_p_values(tests_of_runs), strict=True)
    }


def _notes(
    points: Sequence[Point], scored: Mapping[str, ScoredRun], choosing: Mapping[str, ScoredRun]
) -> list[str]:
    notes = next(iter(scored.values())).limit_notes
    missing = [f"{p.name} {p.n}/{p.expected}" for p in points if p.n != p.expected]
    if missing:
        notes.append(
            f"not every task was played: {', '.join(missing)}; tests use the tasks that both checkpoints have played"
        )
    unchosen = [name for name in scored if name not in choosing]
    if unchosen:
        notes.append(f"not played on the suite that selects the best checkpoint: {', '.join(unchosen)}")
    return notes
