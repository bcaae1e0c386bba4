"""Join repeats (runs that differ only in seed and number of samples) into one run with more attempts per task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from evalharness.base.errors import UserError
from evalharness.base.paths import real_path
from evalharness.results.scored_run import ScoredRun

_MAY_DIFFER = ("seed", "samples")
"""Options that may differ between repeats."""


def join_repeats(runs: Sequence[ScoredRun]) -> ScoredRun:
    """Return one run with the attempts of all runs. Raise UserError if the runs are not repeats of each other."""
    first = runs[0]
    if len(runs) == 1:
        return first
    folders = [real_path(run.folder) for run in runs]
    for i, run in enumerate(runs):
        if folders[i] in folders[:i]:
            raise UserError(f"{run.folder} is given twice: a run is not a repeat of itself")
    for run in runs[1:]:
        if unlike := list_differences(first, run):
            raise UserError(
                f"{first.folder} and {run.folder} are not repeats of each other: they differ in "
                f"{', '.join(unlike)}; compare them as A and B: evalharness compare {first.folder} {run.folder}"
            )
    return join_attempts(runs)


def join_attempts(runs: Sequence[ScoredRun]) -> ScoredRun:
    """Return one run with the attempts of all runs, without checking that the runs are repeats of each other."""
    first = runs[0]
    samples = [run.samples for run in runs]
    scores = [
        replace(score, sample=score.sample + sum(samples[:i]))
        for i, run in enumerate(runs)
        for score in run.scores
    ]
    scores.sort(key=lambda s: (s.family, s.task_id, s.sample))
    identity = first.manifest.identity
    config = identity.config.model_copy(update={"samples": sum(samples)})
    manifest = first.manifest.model_copy(update={"identity": identity.model_copy(update={"config": config})})
    return ScoredRun(first.folder, manifest, tuple(scores), repeats=tuple(runs))


def _identity(run: ScoredRun) -> Mapping[str, Any]:
    """Map the name of each setting that repeats must share, for example `max_turns` or `model.root`, to its value."""
    identity = run.manifest.identity
    flat = {key: value for key, value in identity.config.to_json().items() if key not in _MAY_DIFFER}
    for part in ("model", "tasks_sha256", "prompts_sha256", "turn_limits"):
        flat |= {f"{part}.{key}": value for key, value in getattr(identity, part).items()}
    return flat


def list_differences(one: ScoredRun, other: ScoredRun) -> list[str]:
    """Return the names of the differing settings that repeats must share, for example `max_turns` or `model.root`."""
    first, second = _identity(one), _identity(other)
    return sorted(key for key in first.keys() | second.keys() if first.get(key) != second.get(key))
