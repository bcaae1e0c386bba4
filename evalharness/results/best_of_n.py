"""Compute Best-of-N: compare the best of several samples of every task with one greedy attempt.

The table follows AgentRefine (ICLR 2025): greedy, best of N, and their difference, with two columns per family.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from evalharness import stats
from evalharness.base.errors import UserError
from evalharness.base.grouping import group_by_key
from evalharness.results.comparison import require_comparable
from evalharness.results.curves import best_of_k
from evalharness.results.score import HELD_OUT, MEASURES
from evalharness.results.scored_run import ScoredRun, TaskScore, common_tasks

SCHEMA = 1


@dataclass(frozen=True)
class TaskSamples:
    """The results of all samples of one task, and of its greedy episode. Rates are fractions 0..1."""

    task_id: str
    family: str
    samples: int
    successes: int
    """Number of samples that solved the task."""
    best_progress: float
    mean_progress: float
    greedy_success: bool | None
    """Whether the greedy episode succeeded; None if the greedy run has not played the task."""
    greedy_progress: float | None

    @property
    def any_success(self) -> bool:
        return self.successes > 0


@dataclass(frozen=True)
class FamilyBest:
    """The results of one family, or of the held-out score. Each mapping: `success` or `progress` -> fraction."""

    family: str
    n: int
    """Number of tasks that have every sample and the greedy episode."""
    greedy: Mapping[str, float]
    best: Mapping[str, float]
    delta: Mapping[str, float]
    delta_ci95: Mapping[str, tuple[float, float]]
    """The 95 % interval of `delta`, paired by task, as in a comparison of two runs (docs/statistics.md)."""
    one_sample: Mapping[str, float]
    """Mean over all samples. Its difference from `greedy` is the effect of the temperature."""


@dataclass(frozen=True)
class BestOfN:
    model: str
    suite: str
    max_turns: int
    samples: int
    temperature: float | None
    """Temperature of the samples; None if the run used the temperature that the model's authors recommend."""
    perturbation: str | None
    titles: Mapping[str, str]
    families: tuple[FamilyBest, ...]
    tasks: tuple[TaskSamples, ...]
    """Tasks that have all N samples, sorted by id."""
    curves: tuple[Mapping[str, Any], ...]
    """The rows that `curves.best_of_k` yields."""
    notes: tuple[str, ...]

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of the published table in percent: greedy, BoN and delta."""
        rows = []
        for decoding in ("greedy", "BoN", "delta"):
            row: dict[str, Any] = {"method": self.model, "decoding": decoding}
            for family in self.families:
                values = {"greedy": family.greedy, "BoN": family.best, "delta": family.delta}[decoding]
                row |= {f"{family.family}_{m}": round(100 * values[m], 4) for m in MEASURES}
            rows.append(row)
        return rows

    def task_rows(self) -> list[dict[str, Any]]:
        """Return one flat row per task."""
        return [{**asdict(task), "any_success": task.any_success} for task in self.tasks]

    def to_json(self) -> dict[str, Any]:
        return {"schema": SCHEMA, **asdict(self), "tasks": self.task_rows()}


def _task(task: TaskScore, greedy: ScoredRun) -> TaskSamples:
    attempt, progress = greedy.tasks.get(task.task_id), task.attempts["progress"]
    return TaskSamples(
        task_id=task.task_id,
        family=task.family,
        samples=task.samples,
        successes=int(sum(task.attempts["success"])),
        best_progress=max(progress),
        mean_progress=fmean(sorted(progress)),
        greedy_success=None if attempt is None else attempt.success == 1.0,
        greedy_progress=None if attempt is None else attempt.progress,
    )


def best_of_n(greedy: ScoredRun, samples: ScoredRun) -> BestOfN:
    """Compare the samples with the greedy run. Raise UserError if the runs differ in tasks, protocol or model."""
    _require_pair(greedy, samples)
    n = samples.samples
    tasks = [_task(each, greedy) for each in samples.tasks.values() if each.samples == n]
    tasks.sort(key=lambda task: task.task_id)
    if not tasks:
        raise UserError(
            f"no task in {samples.folder} has all its {n} samples yet; run the same command again to continue"
        )
    groups = group_by_key((task.family, task) for task in tasks if task.greedy_progress is not None)
    families = [_family(family, [listed]) for family, listed in sorted(groups.items())]
    sizes = samples.manifest.held_out
    if sizes and all(len(groups.get(family, ())) == size for family, size in sizes.items()):
        families.append(_family(HELD_OUT, [groups[family] for family in sorted(sizes)]))
    return BestOfN(
        model=samples.name,
        suite=samples.suite,
        max_turns=samples.max_turns,
        samples=n,
        temperature=samples.config["temperature"],
        perturbation=samples.perturbation,
        titles=samples.titles,
        families=tuple(families),
        tasks=tuple(tasks),
        curves=tuple(best_of_k(samples.name, samples)),
        notes=tuple(_notes(samples, tasks, n)),
    )


_MAY_DIFFER = frozenset({"model", "model_name", "temperature", "top_p", "samples", "seed", "tasks", "limit"})
"""Options that may differ between the greedy run and the samples. Other checks compare the model (`Identity.model`) and
the content of each task. Tasks that only one run has played are left out."""
_NAMES = {
    "suite_seed": "suite seed",
    "max_turns": "turn limit",
    "max_tokens": "tokens a reply",
    "perturb": "perturbation",
}


def require_greedy(
    greedy: ScoredRun, config: Mapping[str, Any], model: Mapping[str, Any], prompts: Mapping[str, str]
) -> None:
    """Raise UserError if `greedy` is not a greedy run with the model and protocol of the samples.

    `config`, `model` and `prompts` (family -> hash) describe the samples. The message names every difference.
    """
    if greedy.manifest.identity.model != model:
        raise UserError(f"{greedy.folder} is a run of another model ({greedy.name})")
    differences = [
        f"{_NAMES.get(key, key)} {_option_text(greedy.config.get(key))} there, {_option_text(config.get(key))} here"
        for key in sorted(greedy.config.keys() | config.keys())
        if key not in _MAY_DIFFER
        and _without_free_options(greedy.config.get(key)) != _without_free_options(config.get(key))
    ]
    others = [
        greedy.titles.get(family, family)
        for family, sha in sorted(greedy.manifest.identity.prompts_sha256.items())
        if prompts.get(family, sha) != sha
    ]
    if others:
        differences.append(f"other prompts for {', '.join(others)}")
    if differences:
        raise UserError(
            f"{greedy.folder} does not follow the protocol of the samples: {'; '.join(differences)}; without --greedy "
            "the command plays a greedy run"
        )
    if greedy.config["temperature"] != 0 or greedy.config["samples"] != 1:
        raise UserError(
            f"{greedy.folder} is not a greedy run (temperature {greedy.config['temperature']}, "
            f"{greedy.config['samples']} samples per task)"
        )


def _without_free_options(option: Any) -> Any:
    """Remove `_MAY_DIFFER` from the options that a user changed in a protocol. Return any other option unchanged."""
    if not isinstance(option, Mapping) or "changed" not in option:
        return option
    return {**option, "changed": {k: v for k, v in option["changed"].items() if k not in _MAY_DIFFER}}


def _option_text(value: object) -> str:
    return "none" if value in (None, "") else str(value)


def _require_pair(greedy: ScoredRun, samples: ScoredRun) -> None:
    identity = samples.manifest.identity
    require_greedy(greedy, samples.config, identity.model, identity.prompts_sha256)
    require_comparable([greedy, samples])
    common_tasks(greedy, samples)


def _values(task: TaskSamples, decoding: str, measure: str) -> float:
    assert task.greedy_success is not None
    assert task.greedy_progress is not None
    return float(
        {
            ("greedy", "success"): task.greedy_success,
            ("greedy", "progress"): task.greedy_progress,
            ("best", "success"): task.any_success,
            ("best", "progress"): task.best_progress,
            ("one", "success"): task.successes / task.samples,
            ("one", "progress"): task.mean_progress,
        }[decoding, measure]
    )


def _family(family: str, strata: Sequence[Sequence[TaskSamples]]) -> FamilyBest:
    tasks = [task for stratum in strata for task in stratum]
    rates = {
        decoding: {m: fmean(_values(task, decoding, m) for task in tasks) for m in MEASURES}
        for decoding in ("greedy", "best", "one")
    }
    intervals = {}
    for measure in MEASURES:
        pairs = [[(_values(t, "greedy", measure), _values(t, "best", measure)) for t in s] for s in strata]
        intervals[measure] = _interval(pairs)
    return FamilyBest(
        family=family,
        n=len(tasks),
        greedy=rates["greedy"],
        best=rates["best"],
        delta={m: rates["best"][m] - rates["greedy"][m] for m in MEASURES},
        delta_ci95=intervals,
        one_sample=rates["one"],
    )


def _interval(strata: Sequence[Sequence[tuple[float, float]]]) -> tuple[float, float]:
    """Return the 95 % interval of (best - greedy), paired by task."""
    deltas = [[best - greedy for greedy, best in pairs] for pairs in strata]
    return stats.paired_interval(deltas, stats.permutation_test([d for stratum in deltas for d in stratum]))


def _notes(samples: ScoredRun, tasks: Sequence[TaskSamples], n: int) -> list[str]:
    notes = samples.limit_notes
    selected = sum(samples.manifest.counts.values())
    if len(tasks) < selected:
        notes.append(
            f"{selected - len(tasks)} of {selected} tasks do not have all {n} samples yet and are left out"
        )
    if alone := sum(task.greedy_progress is None for task in tasks):
        notes.append(f"{alone} tasks that the greedy run has not played are left out of the table")
    return notes
