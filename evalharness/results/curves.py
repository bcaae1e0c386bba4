"""The numbers behind the plots, as flat rows (fractions 0..1): each plot is written as CSV too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalharness import stats
from evalharness.records.store import read_episodes
from evalharness.results.checkpoints import Training
from evalharness.results.score import group_by_family, held_out_score
from evalharness.results.scored_run import ScoredRun
from evalharness.results.training_log import REWARD
from evalharness.results.trainings import interval_of

Row = dict[str, Any]
DIFFICULTIES = ("easy", "hard")


def progress_by_turn(label: str, folder: Path, max_turns: int) -> Iterator[Row]:
    """Mean progress after each turn: the long-range curve of AgentBoard. An episode that ended keeps its progress.

    Episodes of one task (samples) are averaged first, so that bands are over tasks.
    """
    paths: dict[str, dict[str, list[NDArray[np.float64]]]] = {}
    for episode in read_episodes(folder):
        path = np.full(max_turns, episode.progress)
        reached = [turn.progress for turn in episode.turns[:max_turns]]
        path[: len(reached)] = reached
        paths.setdefault(episode.family, {}).setdefault(episode.task_id, []).append(path)
    for family, tasks in sorted(paths.items()):
        means = np.array([np.mean(tasks[task_id], axis=0) for task_id in sorted(tasks)])
        for turn in range(max_turns):
            column = means[:, turn]
            yield {
                "run": label,
                "family": family,
                "turn": turn + 1,
                "tasks": len(column),
                "progress": float(column.mean()),
                **_rate_interval("progress", column.tolist()),
            }


def by_difficulty(label: str, run: ScoredRun) -> Iterator[Row]:
    """Success and progress of the easy and the hard tasks of each family, with 95 % intervals over tasks."""
    difficulty = {score.task_id: score.difficulty for score in run.scores}
    for family in dict.fromkeys(task.family for task in run.tasks.values()):
        for level in DIFFICULTIES:
            tasks = [t for t in run.tasks.values() if t.family == family and difficulty[t.task_id] == level]
            for measure in ("success", "progress"):
                values = [getattr(task, measure) for task in tasks]
                if values:
                    yield {
                        "run": label,
                        "family": family,
                        "difficulty": level,
                        "measure": measure,
                        "tasks": len(values),
                        "rate": float(np.mean(values)),
                        **_rate_interval(measure, values),
                    }


def _rate_interval(measure: str, values: Sequence[float]) -> Row:
    """Over tasks; also where all are at 0 or at 1."""
    low, high = stats.rate_interval(values, binary=measure == "success")
    return {"ci95_low": low, "ci95_high": high}


CURVE_NAMES = {
    "best_success": "any of k succeeds (pass@k)",
    "best_progress": "best progress of k",
    "every_success": "all k succeed (pass^k)",
}


def best_of_k(label: str, run: ScoredRun) -> Iterator[Row]:
    """For k = 1..N, by the unbiased estimators, over the tasks whose N samples are all there."""
    samples = int(run.config["samples"])
    groups: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for score in run.scores:
        tasks = groups.setdefault(score.family, {})
        tasks.setdefault(score.task_id, []).append((float(score.success), score.progress))
    for family, tasks in groups.items():
        complete = np.array([values for values in tasks.values() if len(values) == samples])
        if not complete.size:
            continue
        solved, progress = complete[:, :, 0].sum(axis=1), complete[:, :, 1]
        for curve in CURVE_NAMES:
            for k in range(1, samples + 1):
                values = _estimate(curve, solved, progress, k)
                yield {
                    "run": label,
                    "family": family,
                    "curve": curve,
                    "k": k,
                    "tasks": len(values),
                    "rate": float(np.mean(values)),
                    **_rate_interval(curve, values.tolist()),
                }


def _estimate(
    curve: str, solved: NDArray[np.float64], progress: NDArray[np.float64], k: int
) -> NDArray[np.float64]:
    """A value a task. `solved`: successes of each task; `progress`: tasks x samples."""
    if curve == "best_progress":
        values = stats.expected_best_of_k(progress, k)
    else:
        estimator = stats.pass_at_k if curve == "best_success" else stats.pass_hat_k
        values = estimator(progress.shape[1], solved, k)
    return np.asarray(values)


def curve_point(
    series: str,
    run: str,
    axis: str,
    x: float,
    family: str,
    measure: str,
    rate: float,
    ends: tuple[float, float],
) -> Row:
    """Of a curve over a number."""
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
    """Each family and the score of a training run's checkpoints, by step, and the training's own reward."""
    for point in training.points:
        for column, rates in point.rates.items():
            for measure, rate in rates.items():
                ends = point.ci95[column][measure]
                yield curve_point(
                    training.model, point.name, training.axis, point.x, column, measure, rate, ends
                )
    for window in training.windows:
        yield {
            "series": training.model,
            "run": "training",
            "axis": training.axis,
            "x": window.x,
            "family": REWARD,
            "measure": REWARD,
            "rate": window.reward,
            "ci95_low": None,
            "ci95_high": None,
        }


def over_x(axis: str, runs: Sequence[tuple[str, float, str, ScoredRun]]) -> Iterator[Row]:
    """`runs`: (series, x, label, run). Success and progress of each family, and of the held-out score."""
    for series, x, label, run in sorted(runs, key=lambda item: item[:3]):
        tasks = list(run.tasks.values())
        scores = {
            (family, measure): [getattr(task, measure) for task in tasks if task.family == family]
            for family in sorted({task.family for task in tasks})
            for measure in ("success", "progress")
        }
        found = {
            (family, measure): (float(np.mean(values)), _rate_interval(measure, values))
            for (family, measure), values in scores.items()
        }
        groups = group_by_family(run.scores)
        held, _ = held_out_score(groups, run.manifest.held_out, int(run.config["samples"]))
        for measure in ("success", "progress") if held else ():
            low, high = getattr(held, f"{measure}_rate_ci95")
            found["held_out", measure] = (
                getattr(held, f"{measure}_rate"),
                {"ci95_low": low, "ci95_high": high},
            )
        for (family, measure), (rate, interval) in found.items():
            ends = interval["ci95_low"], interval["ci95_high"]
            ends = interval_of(run, family, measure, rate, ends)
            yield curve_point(series, label, axis, x, family, measure, rate, ends)


UNPERTURBED = "unperturbed"


def by_perturbation(label: str, runs: Sequence[ScoredRun]) -> Iterator[Row]:
    """Success and progress of one model's runs under perturbations, the unperturbed one first."""
    ordered = sorted(runs, key=lambda run: run.perturbation is not None)
    for family in sorted({family for run in runs for family in run.manifest.counts}):
        for measure in ("success", "progress"):
            for run in ordered:
                values = [getattr(t, measure) for t in run.tasks.values() if t.family == family]
                if values:
                    yield {
                        "run": label,
                        "family": family,
                        "perturbation": run.perturbation or UNPERTURBED,
                        "measure": measure,
                        "tasks": len(values),
                        "rate": float(np.mean(values)),
                        **_rate_interval(measure, values),
                    }
