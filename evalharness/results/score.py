"""Compute success rate, progress rate, grounding accuracy and held-out score from episodes.

As in AgentBoard, a rate is the unweighted mean over a family's episodes, and progress is that after the last turn. As
in AgentRefine (ICLR 2025), the held-out score weights families by their numbers of tasks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from typing import Any

from evalharness import stats
from evalharness.base.grouping import group_by_key
from evalharness.records.summary import (
    Estimate,
    FamilyScore,
    Figure,
    HeldOut,
    KindScore,
    Rates,
    Scores,
    Variance,
)
from evalharness.results.completeness import Played

MEASURES = ("success", "progress")
POOLED = "pooled"
"""Name of the score over all tasks of several families. It is computed only if the held-out score is not known."""
ESTIMATED = "held_out_estimate"
"""Name of the held-out score that is estimated from a part of its tasks (`--subset`)."""
HELD_OUT = "held_out"
"""Name of the held-out score in rows and columns."""


@dataclass(frozen=True)
class EpisodeScore:
    """The numbers of an episode that the scores need. They let a run be scored without keeping its texts in memory."""

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
    kind: str = ""
    opening: str = ""
    """Digest of goal and first observation, to count how many different tasks an agent can see at the start."""
    figures: Mapping[str, float] = field(default_factory=dict)
    """Name -> value 0..1 of measures that only this family has, for example HotpotQA's F1."""
    reasoning_tokens: int = 0
    reasoning_truncated: int = 0
    """Number of turns whose reply reached the token limit during its reasoning."""
    context_full: bool = False
    content_filter: bool = False
    """Whether the server's content filter ended the episode."""
    cut_from: int = 0
    """Number of the first turn whose prompt the server cut at its beginning; 0 if the server cut no prompt."""
    halted: bool = False
    """Whether the last action halted the simulator."""
    trials: int = 1
    """Number of successive trials at the task; the other scores are those of the last trial."""
    format_error_kinds: Mapping[str, int] = field(default_factory=dict)
    """Kind of format error -> number of turns that have it; a turn can have several kinds."""

    @classmethod
    def of(cls, episode: Any) -> EpisodeScore:
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
            grounding_accuracy=episode.grounding_accuracy,
            turns=turns,
            prompt_tokens=episode.prompt_tokens,
            completion_tokens=episode.completion_tokens,
            format_errors=episode.format_error_turns,
            trimmed=bool(episode.trims),
            kind=episode.kind,
            opening=_digest(f"{episode.goal}\0{episode.first_observation}"),
            figures=dict(episode.figures),
            reasoning_tokens=episode.reasoning_tokens,
            reasoning_truncated=sum("reasoning_truncated" in turn.format_errors for turn in episode.turns),
            context_full=episode.ended_by == "context_full",
            content_filter=episode.ended_by == "content_filter",
            cut_from=next((turn.turn for turn in episode.all_turns if turn.prompt_cut), 0),
            halted=episode.ended_by == "simulator_halted",
            trials=1 + len(episode.earlier),
            format_error_kinds=Counter(
                str(kind) for turn in episode.turns for kind in set(turn.format_errors)
            ),
        )


def make_halted_line(count: int) -> str:
    """Return the note for episodes whose last action halted the simulator."""
    those = "1 episode was" if count == 1 else f"{count} episodes were"
    return f"{those} ended by an action that halted the simulator (simulator_halted); the progress before it counts"


def _digest(text: str) -> str:
    return blake2b(text.encode(errors="surrogatepass"), digest_size=8).hexdigest()


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _rates(episodes: Sequence[EpisodeScore]) -> Rates:
    if not episodes:
        return Rates(success_rate=None, progress_rate=None)
    return Rates(
        success_rate=_mean([e.success for e in episodes]),
        progress_rate=_mean([e.progress for e in episodes]),
    )


def _attempts(episodes: Sequence[EpisodeScore], of: str) -> list[list[float]]:
    """Return, for each task, the list of its attempts' values of the attribute `of`."""
    return list(group_by_key((e.task_id, float(getattr(e, of))) for e in episodes).values())


def _task_means(episodes: Sequence[EpisodeScore], of: str) -> list[float]:
    """Return the mean per task. Intervals use these means, because samples of one task are not independent."""
    return [_mean(listed) for listed in _attempts(episodes, of)]


def _task_kinds(episodes: Sequence[EpisodeScore]) -> list[str]:
    """Return the kind of each task, in the order of `_task_means`."""
    return list({episode.task_id: episode.kind for episode in episodes}.values())


def _estimate_errors(
    strata: Sequence[Sequence[EpisodeScore]], measure: str, ci95: tuple[float, float]
) -> dict[str, Any]:
    """Return two fields about a rate: its interval with kinds of tasks as units, and its variance components. The
    interval is `ci95` if every task is the only one of its kind."""
    components = stats.variance_components([_attempts(episodes, measure) for episodes in strata])
    kinds = [_task_kinds(episodes) for episodes in strata]
    own = all(len(set(listed)) == len(listed) for listed in kinds)
    means = [_task_means(episodes, measure) for episodes in strata]
    return {
        f"{measure}_rate_ci95_by_kind": ci95 if own else stats.score_mean_by_kind(means, kinds),
        f"{measure}_rate_variance": Variance(**asdict(components)) if components else None,
    }


def family_score(episodes: Sequence[EpisodeScore]) -> FamilyScore:
    """Return the rates of one family (0..1) with 95 % intervals over its `n` tasks. `episodes` must not be empty."""
    progress, grounding = (_task_means(episodes, of) for of in ("progress", "grounding_accuracy"))
    success_ci95 = stats.rate_interval(_task_means(episodes, "success"), binary=True)
    progress_ci95 = stats.score_mean(progress)
    rates, kinds = _rates(episodes), kind_scores(episodes)
    several_kinds: dict[str, Any] = {"by_kind": kinds} if len(kinds) > 1 else {}
    return FamilyScore(
        n=len({episode.task_id for episode in episodes}),
        episodes=len(episodes),
        success_rate=rates.success_rate,
        progress_rate=rates.progress_rate,
        success_rate_ci95=success_ci95,
        progress_rate_ci95=progress_ci95,
        progress_rate_bootstrap95=stats.bootstrap_mean(progress),
        grounding_accuracy=_mean([e.grounding_accuracy for e in episodes]),
        grounding_accuracy_ci95=stats.score_mean(grounding),
        solved_rate=_mean([e.solved for e in episodes]),
        kinds=len(kinds),
        openings=len({e.opening for e in episodes}),
        **_by_trial(episodes),
        **several_kinds,
        **_estimate_errors([episodes], "success", success_ci95),
        **_estimate_errors([episodes], "progress", progress_ci95),
        easy=_rates([e for e in episodes if e.difficulty == "easy"]),
        hard=_rates([e for e in episodes if e.difficulty == "hard"]),
        **_figures(episodes),
    )


def kind_scores(episodes: Iterable[EpisodeScore]) -> dict[str, KindScore]:
    """Return the rates of each kind of task in a family, sorted by kind."""
    kinds = group_by_key((episode.kind, episode) for episode in episodes)
    return {
        kind: KindScore(
            n=len(_task_kinds(listed)),
            success_rate=_mean([episode.success for episode in listed]),
            success_rate_ci95=stats.rate_interval(_task_means(listed, "success"), binary=True),
            progress_rate=_mean([episode.progress for episode in listed]),
        )
        for kind, listed in sorted(kinds.items())
    }


def _by_trial(episodes: Sequence[EpisodeScore]) -> dict[str, Any]:
    most = max(episode.trials for episode in episodes)
    if most == 1:
        return {}
    within = [_mean([e.success and e.trials <= trial for e in episodes]) for trial in range(1, most + 1)]
    return {"success_by_trial": within}


def _figures(episodes: Sequence[EpisodeScore]) -> dict[str, Any]:
    """Return the mean of each measure that only this family has (`EpisodeScore.figures`), with intervals over tasks."""
    values_by_task: dict[str, dict[str, list[float]]] = {}
    for episode in episodes:
        for name, value in episode.figures.items():
            values_by_task.setdefault(name, {}).setdefault(episode.task_id, []).append(float(value))
    means = {
        name: [_mean(values) for values in tasks.values()] for name, tasks in sorted(values_by_task.items())
    }
    figures = {
        name: Figure(n=len(values), mean=_mean(values), ci95=stats.score_mean(values))
        for name, values in means.items()
    }
    return {"figures": figures} if figures else {}


def count_played(attempts: Iterable[EpisodeScore], of: int, samples: int) -> Played:
    """Count the played tasks and attempts; a duplicate attempt counts once. `of`: number of tasks in the family."""
    keys = {(a.task_id, a.sample) for a in attempts if a.sample < samples}
    return Played(len({task_id for task_id, _ in keys}), of, len(keys), samples)


def held_out_score(
    by_family: Mapping[str, Sequence[EpisodeScore]], weights: Mapping[str, int], samples: int = 1
) -> tuple[HeldOut | None, str | None]:
    """Return (held-out score, None), or (None, reason why there is no score). `weights`: family -> number of tasks.

    The score needs all `samples` attempts at every task of every held-out family, because the finished tasks of an
    incomplete family are not a random sample of its tasks.
    """
    parts = {family: count_played(by_family.get(family, ()), n, samples) for family, n in weights.items()}
    missing = [f"{family} ({_share(each)})" for family, each in parts.items() if not each.complete]
    if missing or not weights:
        return None, f"incomplete: {', '.join(missing)}" if missing else "no held-out family"
    families = sorted(weights)
    sizes = [weights[f] for f in families]
    kinds = sum(len(set(_task_kinds(by_family[f]))) for f in families)
    score: dict[str, Any] = {"n": sum(sizes), "kinds": kinds}
    for measure in ("success", "progress"):
        rate, values = f"{measure}_rate", [_task_means(by_family[f], measure) for f in families]
        score[rate] = sum(n * _mean(v) for n, v in zip(sizes, values, strict=True)) / sum(sizes)
        score[f"{rate}_ci95"] = stats.stratified_score(values)
        score |= _estimate_errors([by_family[f] for f in families], measure, score[f"{rate}_ci95"])
    return HeldOut(**score), None


def held_out_estimate(
    by_family: Mapping[str, Sequence[EpisodeScore]], subset: Mapping[str, int], samples: int = 1
) -> Estimate | None:
    """Estimate the held-out score from the tasks of `subset`; return None if an attempt at these tasks is missing.
    `subset`: task id -> number of tasks that it represents, family by family, ordered by difficulty."""
    attempts = group_by_key((e.task_id, e) for episodes in by_family.values() for e in episodes)
    if not subset or any(len(attempts.get(task_id, ())) < samples for task_id in subset):
        return None
    of, rates = sum(subset.values()), dict[str, Any]()
    for measure in MEASURES:
        families: dict[str, list[float]] = {}
        total = 0.0
        for task_id, stands_for in subset.items():
            value = _mean([float(getattr(episode, measure)) for episode in attempts[task_id]])
            families.setdefault(task_id.partition("/")[0], []).append(value)
            total += stands_for * value
        rate = total / of
        low, high = stats.subset_interval(list(families.values()), of)
        rates[f"{measure}_rate"] = rate
        rates[f"{measure}_rate_ci95"] = (min(low, rate), max(high, rate))
    return Estimate(n=len(subset), stands_for=of, **rates)


def pooled_score(by_family: Mapping[str, Sequence[EpisodeScore]]) -> Scores:
    """Return the rates over all tasks of several families; each task counts once."""
    strata = list(by_family.values())
    rates: dict[str, Any] = {}
    for measure in MEASURES:
        values = [_task_means(episodes, measure) for episodes in strata]
        binary = measure == "success"
        ci95 = stats.pooled_interval(
            [(len(listed), _mean(listed), stats.rate_interval(listed, binary=binary)) for listed in values]
        )
        rate = _mean([value for listed in values for value in listed])
        rates |= {f"{measure}_rate": rate, f"{measure}_rate_ci95": ci95}
        rates |= _estimate_errors(strata, measure, ci95)
    kinds = sum(len(set(_task_kinds(episodes))) for episodes in strata)
    return Scores(n=sum(len(_task_kinds(episodes)) for episodes in strata), kinds=kinds, **rates)


def _share(part: Played) -> str:
    """Return for example `59/60`, or `238/240 attempts` if tasks have several attempts each."""
    if part.samples == 1:
        return f"{part.tasks}/{part.of}"
    return f"{part.episodes}/{part.of * part.samples} attempts"


def group_by_family(episodes: Iterable[EpisodeScore]) -> dict[str, list[EpisodeScore]]:
    """Return family -> episodes, sorted by family, task and sample, so that sums do not depend on the playing order."""
    ordered = sorted(episodes, key=lambda e: (e.family, e.task_id, e.sample))
    return group_by_key((episode.family, episode) for episode in ordered)
