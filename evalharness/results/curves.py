"""Compute the numbers of the plots as flat rows with fractions 0..1. The same rows are written as CSV."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from evalharness import stats
from evalharness.records.store import read_episodes
from evalharness.results.checkpoints import Training
from evalharness.results.score import MEASURES
from evalharness.results.scored_run import ScoredRun

Row = dict[str, Any]
DIFFICULTIES = ("easy", "hard")


def progress_by_turn(label: str, folder: Path, max_turns: int) -> Iterator[Row]:
    """Yield the mean progress after each turn (AgentBoard's long-range curve). An ended episode keeps its progress.

    The samples of one task are averaged first, so that the intervals are over tasks.
    """
    paths: dict[str, dict[str, list[list[float]]]] = {}
    for episode in read_episodes(folder):
        path = [*(turn.progress for turn in episode.turns[: max_turns - 1]), episode.progress]
        paths.setdefault(episode.family, {}).setdefault(episode.task_id, []).append(path)
    for family, tasks in sorted(paths.items()):
        row: Row = {}
        longest = max(len(path) for tries in tasks.values() for path in tries)
        for turn in range(max_turns):
            if turn < longest:  # the curve is flat after the longest episode
                means = [
                    fmean(path[min(turn, len(path) - 1)] for path in tasks[task_id])
                    for task_id in sorted(tasks)
                ]
                row_of_turn = rate_row(means, run=label, family=family, turn=turn + 1)
                row = {"progress" if key == "rate" else key: value for key, value in row_of_turn.items()}
            yield row | {"turn": turn + 1}


def by_difficulty(label: str, run: ScoredRun) -> Iterator[Row]:
    """Yield success and progress in the easy and the hard tasks of each family, with 95 % intervals over tasks."""
    difficulty = {score.task_id: score.difficulty for score in run.scores}
    for family, tasks in run.family_tasks.items():
        for level in DIFFICULTIES:
            for measure in MEASURES:
                values = [getattr(task, measure) for task in tasks if difficulty[task.task_id] == level]
                if values:
                    yield rate_row(values, run=label, family=family, difficulty=level, measure=measure)


def rate_row(values: Sequence[float], **names: Any) -> Row:
    """Return a row with the mean of `values` (one per task), its 95 % interval, and the columns `names`."""
    low, high = stats.rate_interval(values, binary=names.get("measure") == "success")
    return {
        **names,
        "tasks": len(values),
        "rate": float(np.mean(values)),
        "ci95_low": low,
        "ci95_high": high,
    }


CURVE_NAMES = {
    "best_success": "any of k succeeds (pass@k)",
    "best_progress": "best progress of k",
    "every_success": "all k succeed (pass^k)",
}


def best_of_k(label: str, run: ScoredRun) -> Iterator[Row]:
    """Yield unbiased estimates of pass@k, pass^k and the best progress of k, over the tasks that have all N samples."""
    for family, tasks in run.family_tasks.items():
        complete = [task.attempts for task in tasks if task.samples == run.samples]
        if not complete:
            continue
        solved = np.array([sum(attempts["success"]) for attempts in complete])
        progress = np.array([attempts["progress"] for attempts in complete])
        estimates: dict[str, Callable[[int], Any]] = {
            "best_success": partial(stats.pass_at_k, run.samples, solved),
            "best_progress": partial(stats.expected_best_of_k, progress),
            "every_success": partial(stats.pass_hat_k, run.samples, solved),
        }
        for curve, estimate in estimates.items():
            for k in range(1, run.samples + 1):
                yield rate_row(estimate(k).tolist(), run=label, family=family, curve=curve, k=k)


def curve_point(
    series: str,
    run: str,
    axis: str,
    x: float,
    family: str,
    measure: str,
    rate: float,
    ends: tuple[float | None, float | None],
) -> Row:
    """Return one point of a curve as a table row."""
    return {
        "series": series,
        "run": run,
        "axis": axis,
        "x": x,
        "family": family,
        "measure": measure,
        "rate": rate,
        "ci95_low": ends[0],
        "ci95_high": ends[1],
    }


def by_checkpoint(training: Training) -> Iterator[Row]:
    """Yield the rates of each family and of the main score for every checkpoint, in the order of training."""
    for point in training.points:
        for column, rates in point.rates.items():
            for measure, rate in rates.items():
                ends = point.ci95[column][measure]
                yield curve_point(
                    training.model, point.name, training.axis, point.x, column, measure, rate, ends
                )


UNPERTURBED = "unperturbed"
