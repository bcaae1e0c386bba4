"""Episodes -> success rate, progress rate, grounding accuracy, held-out score. Pure.

Definitions as AgentBoard's (unweighted means over the episodes of a family; progress of the last turn); the
held-out score is AgentRefine's (ICLR 2025): families weighted by their number of tasks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from evalharness import stats


class Scored(Protocol):
    """What a score needs of an episode."""

    @property
    def task_id(self) -> str: ...
    @property
    def family(self) -> str: ...
    @property
    def difficulty(self) -> str: ...
    @property
    def success(self) -> bool: ...
    @property
    def solved(self) -> bool: ...
    @property
    def progress(self) -> float: ...
    @property
    def grounding_accuracy(self) -> float: ...
    @property
    def figures(self) -> Mapping[str, float]: ...


@dataclass(frozen=True)
class EpisodeScore:
    """The few numbers of an episode that scores are made of, so that a long run's episodes need not stay in memory."""

    task_id: str
    task_hash: str
    sample: int
    family: str
    difficulty: str
    success: bool
    solved: bool
    progress: float
    grounding_accuracy: float
    """Valid turns / turns, 0..1; 0 for an episode without turns."""
    turns: int
    prompt_tokens: int
    completion_tokens: int
    format_errors: int
    trimmed: bool
    figures: Mapping[str, float] = field(default_factory=dict)
    """A family's own numbers about an episode, 0..1."""

    @classmethod
    def of(cls, episode: Any) -> EpisodeScore:
        """From an `Episode`."""
        turns = len(episode.turns)
        return cls(
            task_id=episode.task_id,
            task_hash=episode.task_hash,
            sample=episode.sample,
            family=episode.family,
            difficulty=episode.difficulty,
            success=episode.success,
            solved=episode.solved,
            progress=episode.progress,
            grounding_accuracy=episode.valid_turns / turns if turns else 0.0,
            turns=turns,
            prompt_tokens=sum(turn.prompt_tokens or 0 for turn in episode.turns),
            completion_tokens=sum(turn.completion_tokens or 0 for turn in episode.turns),
            format_errors=sum(bool(turn.format_errors) for turn in episode.turns),
            trimmed=bool(episode.trims),
            figures=dict(episode.figures),
        )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _rates(episodes: Sequence[Scored]) -> dict[str, float | None]:
    if not episodes:
        return {"success_rate": None, "progress_rate": None}
    return {
        "success_rate": _mean([e.success for e in episodes]),
        "progress_rate": _mean([e.progress for e in episodes]),
    }


def _task_means(episodes: Sequence[Scored], of: str) -> list[float]:
    """A value a task: samples of one task are no independent evidence, so intervals are over tasks."""
    values: dict[str, list[float]] = {}
    for episode in episodes:
        values.setdefault(episode.task_id, []).append(float(getattr(episode, of)))
    return [_mean(listed) for listed in values.values()]


def family_score(episodes: Sequence[Scored]) -> dict[str, Any]:
    """Rates of one family, fractions 0..1, each with a 95 % interval over its tasks. `episodes` may not be empty."""
    progress, grounding = (_task_means(episodes, of) for of in ("progress", "grounding_accuracy"))
    return {
        "n": len(episodes),
        **_rates(episodes),
        "success_rate_ci95": stats.rate_interval(_task_means(episodes, "success"), binary=True),
        "progress_rate_ci95": stats.score_mean(progress),
        "progress_rate_bootstrap95": stats.bootstrap_mean(progress),
        "grounding_accuracy": _mean([e.grounding_accuracy for e in episodes]),
        "grounding_accuracy_ci95": stats.score_mean(grounding),
        "solved_rate": _mean([e.solved for e in episodes]),
        "easy": _rates([e for e in episodes if e.difficulty == "easy"]),
        "hard": _rates([e for e in episodes if e.difficulty == "hard"]),
        **_figures(episodes),
    }


def _figures(episodes: Sequence[Scored]) -> dict[str, Any]:
    """Means of the family's own figures over the episodes that have them, each with its interval over tasks."""
    found: dict[str, dict[str, list[float]]] = {}
    for episode in episodes:
        for name, value in episode.figures.items():
            found.setdefault(name, {}).setdefault(episode.task_id, []).append(float(value))
    means = {name: [_mean(values) for values in tasks.values()] for name, tasks in sorted(found.items())}
    told = {
        name: {"n": len(values), "mean": _mean(values), "ci95": stats.score_mean(values)}
        for name, values in means.items()
    }
    return {"figures": told} if told else {}


def held_out_score(
    by_family: Mapping[str, Sequence[Scored]], weights: Mapping[str, int]
) -> tuple[dict[str, Any] | None, str | None]:
    """(score, None), or (None, why it is withheld). `weights`: held-out family -> its number of tasks.

    A score is given only when every task of every held-out family was played: what is left of an incomplete
    family is no sample of it.
    """
    missing = [
        f"{f} ({len(by_family.get(f, ()))}/{n})" for f, n in weights.items() if len(by_family.get(f, ())) != n
    ]
    if missing or not weights:
        return None, f"incomplete: {', '.join(missing)}" if missing else "no held-out family"
    families = sorted(weights)
    sizes = [weights[f] for f in families]
    score: dict[str, Any] = {"n": sum(sizes)}
    for measure in ("success", "progress"):
        rate, values = f"{measure}_rate", [_task_means(by_family[f], measure) for f in families]
        score[rate] = sum(n * _mean(v) for n, v in zip(sizes, values, strict=True)) / sum(sizes)
        score[f"{rate}_ci95"] = stats.bootstrap_weighted_mean(values, sizes)
    return score, None


def group_by_family(episodes: Iterable[EpisodeScore]) -> dict[str, list[EpisodeScore]]:
    """Families sorted by name, episodes by task and sample: no sum depends on the order in which they finished."""
    groups: dict[str, list[EpisodeScore]] = {}
    for episode in sorted(episodes, key=lambda e: (e.family, e.task_id, e.sample)):
        groups.setdefault(episode.family, []).append(episode)
    return groups
