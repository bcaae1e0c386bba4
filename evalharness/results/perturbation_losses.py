"""Test whether perturbations lower the scores of one model less than those of another model, paired by task. This is a
test of the interaction of model and perturbation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean

from evalharness.base.errors import UserError
from evalharness.base.grouping import group_by_key
from evalharness.results.comparison import Comparison, require_comparable
from evalharness.results.curves import UNPERTURBED
from evalharness.results.difference import Difference, Pair, adjust_p_values, difference_of
from evalharness.results.run_labels import letter
from evalharness.results.score import MEASURES
from evalharness.results.scored_run import ScoredRun, TaskScore, common_tasks

ALL = "all perturbations"
Runs = Mapping[str, ScoredRun]
"""Perturbation (or `unperturbed`) -> the model's run under this perturbation."""


def mean_change(runs: Runs, measure: str = MEASURES[0]) -> Difference | None:
    """Test the mean of the perturbed runs against the unperturbed run, over the tasks that all runs have. Return None
    if there is no perturbed run, or if a run is a mean over several trainings."""
    plain, *perturbed = (runs[name] for name in runs)
    shared = set.intersection(*(set(run.tasks) for run in runs.values()))
    if not perturbed or not shared or any(run.trainings for run in runs.values()):
        return None
    pairs = [(plain.tasks[task], _mean([run.tasks[task] for run in perturbed])) for task in sorted(shared)]
    return difference_of(ALL, measure, list(group_by_key((a.family, (a, b)) for a, b in pairs).values()))


def compare_losses(sweeps: Sequence[tuple[Path, Runs]]) -> list[Comparison]:
    """Compare every sweep with the first, for each perturbation in both sweeps, and for the mean of these
    perturbations. Rates are changes from the unperturbed run. Raise UserError if the sweeps are not comparable."""
    for folder, runs in sweeps:
        if UNPERTURBED not in runs:
            raise UserError(f"{folder} has no unperturbed run yet; repeat the command of the sweep")
    tests = [_differences(sweeps[0], other) for other in sweeps[1:]]
    baselines = [replace(runs[UNPERTURBED], folder=folder) for folder, runs in sweeps]
    return [
        Comparison(
            baseline=baselines[0],
            run=baselines[i],
            differences=tuple(differences),
            gained=(),
            lost=(),
            notes=tuple(_list_left_out(sweeps[0][1], sweeps[i][1])),
            letters=(letter(0), letter(i)),
            of_losses=True,
        )
        for i, differences in enumerate(adjust_p_values(tests), start=1)
    ]


def _list_left_out(first: Runs, second: Runs) -> list[str]:
    """Return notes about what is left out: perturbations in only one sweep, and tasks that not every run has played."""
    common = first.keys() & second.keys()
    tasks = [set(runs[name].tasks) for runs in (first, second) for name in common]
    missing = len(set.union(*tasks)) - len(set.intersection(*tasks))
    lines = []
    if alone := sorted(first.keys() ^ second.keys()):
        lines.append(f"left out, in one sweep only: {', '.join(alone)}")
    if missing:
        lines.append(f"left out: {missing} tasks that only some of the runs have")
    return lines


def _differences(first: tuple[Path, Runs], second: tuple[Path, Runs]) -> list[Difference]:
    names = [name for name in first[1] if name in second[1] and name != UNPERTURBED]
    if not names:
        raise UserError(f"{first[0]} and {second[0]} have no perturbation in common")
    chosen = [{name: runs[name] for name in (UNPERTURBED, *names)} for _, runs in (first, second)]
    every = [run for runs in chosen for run in runs.values()]
    require_comparable(every)
    shared = set.intersection(*(set(common_tasks(every[0], run)) for run in every))
    if not shared:
        raise UserError(f"{first[0]} and {second[0]} have no task that all of their runs have played")
    columns = {ALL: names} if len(names) > 1 else {}
    columns |= {name: [name] for name in names}
    differences = []
    for measure in MEASURES:
        for title, of in columns.items():
            pairs: list[Pair] = [
                (_loss(chosen[0], of, task), _loss(chosen[1], of, task)) for task in sorted(shared)
            ]
            strata = list(group_by_key((pair[0].family, pair) for pair in pairs).values())
            differences.append(_as_change(difference_of(title, measure, strata)))
    return differences


def _mean(scores: Sequence[TaskScore]) -> TaskScore:
    success, progress = (fmean(getattr(score, measure) for score in scores) for measure in MEASURES)
    return _with_values(scores[0], success, progress)


def _with_values(score: TaskScore, success: float, progress: float) -> TaskScore:
    attempts = {"success": (success,), "progress": (progress,)}
    return replace(score, success=success, progress=progress, attempts=attempts)


def _loss(runs: Runs, names: Sequence[str], task: str) -> TaskScore:
    """Return the change of a task's score from the unperturbed run, scaled to 0..1, because the tests need 0..1."""
    plain, mean = runs[UNPERTURBED].tasks[task], _mean([runs[name].tasks[task] for name in names])
    success, progress = ((1 + getattr(mean, m) - getattr(plain, m)) / 2 for m in MEASURES)
    return replace(_with_values(mean, success, progress), samples=1)


def _as_change(d: Difference) -> Difference:
    """Scale the differences of `_loss` values from 0..1 back to changes -1..1."""
    return replace(
        d,
        baseline=2 * d.baseline - 1,
        run=2 * d.run - 1,
        difference=2 * d.difference,
        ci95=(2 * d.ci95[0], 2 * d.ci95[1]),
        detectable=None if d.detectable is None else 2 * d.detectable,
        ci95_by_kind=None if d.ci95_by_kind is None else (2 * d.ci95_by_kind[0], 2 * d.ci95_by_kind[1]),
        test="permutation",
    )
