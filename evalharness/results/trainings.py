"""Join runs of models that differ only in their training seed, and compute the mean over these trainings.

The intervals of the mean include the variance of seeds and of tasks (`evalharness.stats.trainings`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from evalharness.base.errors import UserError
from evalharness.records.manifest import Manifest
from evalharness.results.difference import Difference
from evalharness.results.repeats import join_attempts, join_repeats, list_differences
from evalharness.results.score import ESTIMATED, HELD_OUT, POOLED
from evalharness.results.scored_run import ScoredRun, load_scored_run
from evalharness.stats.intervals import Interval
from evalharness.stats.score_interval import rate_interval
from evalharness.stats.trainings import Scores, compare_trainings, mean_over_trainings

T = TypeVar("T")
SEED = "training_seed"
"""Key of the user's label that states the seed of a model's training: `--label training_seed=1`."""
_OF_WEIGHTS = ("model", "model_name", "lora")
"""Settings that may differ between the runs of a mean over trainings."""


def join_trainings(runs: Sequence[ScoredRun]) -> ScoredRun | None:
    """Return the mean over trainings as one run. Return None unless every run has a different label `training_seed`,
    and the runs differ only in the model's weights. The other labels (`--label mode=full`) name the mean."""
    seeds = [run.labels.get(SEED) for run in runs]
    if len(runs) < 2 or None in seeds or len(set(seeds)) < len(seeds):
        return None
    if any(
        key.partition(".")[0] not in _OF_WEIGHTS for run in runs[1:] for key in list_differences(runs[0], run)
    ):
        return None
    mean = join_attempts(runs)
    labels = [value for key, value in runs[0].labels.items() if key != SEED]
    update: dict[str, Any] = {"model_name": " ".join(labels) or mean.manifest.model_name}
    if len({run.manifest.run_name for run in runs}) > 1:  # the runs' names differ, so none names the mean
        update["sessions"] = [start.model_copy(update={"label": None}) for start in mean.manifest.sessions]
    manifest = mean.manifest.model_copy(update=update)
    return replace(mean, manifest=manifest, repeats=(), trainings=tuple(runs))


def join_runs(runs: Sequence[ScoredRun]) -> ScoredRun:
    """Join runs into a mean over trainings, or else as repeats. Raise UserError if neither is possible."""
    return join_trainings(runs) or join_repeats(runs)


def load_joined(text: str) -> ScoredRun:
    """Load the run in the folder `text`. If `text` is several folders with commas between them, join the runs."""
    folders = text.split(",") if "," in text and not _exists(text) else [text]
    if "" in folders:
        raise UserError(
            f"{text!r} has an empty part; write the run folders with commas between them: A1,A2,A3"
        )
    return join_runs([load_scored_run(Path(folder)) for folder in folders])


def _exists(text: str) -> bool:
    try:
        return Path(text).exists()
    except OSError:  # the text is too long for one path, so it lists several folders
        return False


def join_labelled(runs: Sequence[ScoredRun]) -> list[ScoredRun]:
    """Join the runs that differ only in the training seed; keep the order of the runs."""
    cells: dict[Any, list[ScoredRun]] = {}
    for run in runs:
        labels = {**run.labels}
        alike = SEED if labels.pop(SEED, None) is not None else str(run.folder)
        setting = (run.suite, run.agent, run.perturbation)
        cells.setdefault((alike, *sorted(labels.items()), setting), []).append(run)
    joined_cells = ((join_trainings(cell), cell) for cell in cells.values())
    return [run for trained, cell in joined_cells for run in ([trained] if trained else cell)]


def group_trainings(named: Iterable[tuple[Manifest, T]]) -> list[tuple[str | None, list[T]]]:
    """Group the runs of a training study: runs that differ only in training seed or perturbation are one group.

    Return (labels that distinguish the group from the other groups, its runs). A single group keeps all its labels.
    """
    cells: dict[tuple[tuple[str, str], ...], list[T]] = {}
    for manifest, run in named:
        labels = {key: value for key, value in manifest.user_labels.items() if key != SEED}
        key = (*sorted(labels.items()), ("suite", manifest.suite_name), ("agent", manifest.config.agent_text))
        cells.setdefault(key, []).append(run)
    shared = (
        set.intersection(*map(set, cells)) if len(cells) > 1 else {pair for key in cells for pair in key[-2:]}
    )
    return [
        (" ".join(value for name, value in key if (name, value) not in shared) or None, runs)
        for key, runs in cells.items()
    ]


def trainings_line(run: ScoredRun) -> str | None:
    """Return a note that the row is a mean over trainings, or one training; None for a run without a training seed."""
    if run.trainings:
        seeds = ", ".join(each.labels[SEED] for each in run.trainings)
        return f"mean of trainings with seeds {seeds}; the interval includes the variance of seeds and tasks"
    return "one training: the interval covers tasks only" if SEED in run.labels else None


def _scores(run: ScoredRun, family: str, measure: str, tasks: set[str]) -> list[Scores]:
    """Return the scores of `tasks` for each family that the score `family` covers, as arrays (trainings x tasks)."""
    families = [family]
    if family in (HELD_OUT, ESTIMATED, POOLED):
        every = run.manifest.held_out if family == HELD_OUT else {run.tasks[task].family for task in tasks}
        families = sorted(every)
    scores = []
    for name in families:
        listed = sorted(task for task in tasks if run.tasks[task].family == name)
        if listed:
            scores.append(np.array([[getattr(r.tasks[t], measure) for t in listed] for r in run.trainings]))
    return scores


def _list_played_tasks(run: ScoredRun) -> set[str]:
    """Return the tasks that every training has played."""
    return set.intersection(*(set(each.tasks) for each in run.trainings))


def interval_of(run: ScoredRun, family: str, measure: str, rate: float, ends: Interval) -> Interval:
    """Return the interval of a rate over trainings and tasks. `ends`: the interval of the rate over tasks, which is
    returned if the run is not a mean over trainings."""
    if not run.trainings or not (scores := _scores(run, family, measure, _list_played_tasks(run))):
        return ends
    return mean_over_trainings(ends, rate, scores)


def average_interval(runs: Sequence[ScoredRun], measure: str, tasks: Sequence[str]) -> Interval:
    """Return the interval of the mean over several runs of the same tasks. If all runs are means over the same number
    of trainings, the interval includes the variance of seeds."""
    rows = [
        np.array([[getattr(each.tasks[task], measure) for task in tasks] for each in run.trainings or (run,)])
        for run in runs
    ]
    by_task = np.mean([scores.mean(axis=0) for scores in rows], axis=0)
    ends = rate_interval(list(by_task), binary=False)
    if {len(scores) for scores in rows} != {len(runs[0].trainings)}:
        return ends
    return mean_over_trainings(ends, float(by_task.mean()), [np.mean(rows, axis=0)])


def over_trainings(d: Difference, first: ScoredRun, second: ScoredRun) -> Difference:
    """Return the difference second - first with an interval and p over trainings and tasks. If neither run is a mean
    over trainings, return `d` unchanged.

    If both runs use the same trainings (for example with and without a perturbation), trainings are paired, too.
    """
    if not (first.trainings or second.trainings):
        return d
    pair = [run if run.trainings else replace(run, trainings=(run,)) for run in (first, second)]
    tasks = _list_played_tasks(pair[0]) & _list_played_tasks(pair[1])
    scores = [_scores(run, d.family, d.measure, tasks) for run in pair]
    test = compare_trainings(
        scores[0],
        scores[1],
        paired=_models(pair[0]) == _models(pair[1]),
        alone=all(SEED in run.labels for run in (first, second)),
    )
    test = replace(test, difference=d.difference)  # `d.difference` may weight the tasks (subset)
    by_kind = d.ci95_by_kind
    return replace(
        d,
        ci95=test.interval(d.ci95),
        p=test.p(d.ci95),
        p_holm=test.p(d.ci95),
        test="trainings",
        detectable=test.detectable(d.ci95),
        ci95_by_kind=by_kind and test.interval(by_kind),
        p_by_kind=by_kind and test.p(by_kind),
        smallest_p_by_kind=None,
        standard_error_tasks=None,
        standard_error_attempts_baseline=None,
        standard_error_attempts_run=None,
    )


def _models(run: ScoredRun) -> list[Mapping[str, Any]]:
    return [each.manifest.identity.model for each in run.trainings]
