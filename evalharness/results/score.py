"""Episodes -> success rate, progress rate, grounding accuracy, held-out score. Pure.

Definitions as AgentBoard's (unweighted means over the episodes of a family; progress of the last turn); the
held-out score is AgentRefine's (ICLR 2025): families weighted by their number of tasks.
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
"""The row of all played tasks, if there is no held-out score."""
ESTIMATED = "held_out_estimate"
"""The held-out score estimated from a part of its tasks (`--subset`)."""
HELD_OUT = "held_out"
"""The column of the held-out score beside those of families."""


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
    kind: str = ""
    opening: str = ""
    """A digest of goal and first observation: tasks that look alike at the first turn share it."""
    figures: Mapping[str, float] = field(default_factory=dict)
    """A family's own numbers about an episode, 0..1."""
    reasoning_tokens: int = 0
    reasoning_truncated: int = 0
    """Turns that were cut off inside their reasoning."""
    context_full: bool = False
    content_filter: bool = False
    """Whether the server's content filter ended the episode."""
    cut_from: int = 0
    """The first turn whose prompt had lost its beginning at the server; 0: none."""
    halted: bool = False
    """Whether the last action halted the simulator."""
    trials: int = 1
    """Played at the task, one after the other; the scores are those of the last."""
    format_error_kinds: Mapping[str, int] = field(default_factory=dict)
    """Kind -> turns that have it; a turn can have several."""

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


def halted_line(count: int) -> str:
    """What stands below a table with episodes whose last action halted the simulator."""
    those = "1 episode was" if count == 1 else f"{count} episodes were"
    return f"{those} ended by an action that halted the simulator (simulator_halted), with the progress until then"


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
    """The values of each task's attempts."""
    return list(group_by_key((e.task_id, float(getattr(e, of))) for e in episodes).values())


def _task_means(episodes: Sequence[EpisodeScore], of: str) -> list[float]:
    """Return one value per task: samples of one task are not independent, so intervals are over tasks."""
    return [_mean(listed) for listed in _attempts(episodes, of)]


def _task_kinds(episodes: Sequence[EpisodeScore]) -> list[str]:
    """In the order of `_task_means`."""
    return list({episode.task_id: episode.kind for episode in episodes}.values())


def _beside(
    strata: Sequence[Sequence[EpisodeScore]], measure: str, ci95: tuple[float, float]
) -> dict[str, Any]:
    """Of a rate over whole families: its interval by kinds (`ci95` where every task is a kind of its own), and how
    much of its error is the attempts'."""
    found = stats.variance_components([_attempts(episodes, measure) for episodes in strata])
    kinds = [_task_kinds(episodes) for episodes in strata]
    own = all(len(set(listed)) == len(listed) for listed in kinds)
    means = [_task_means(episodes, measure) for episodes in strata]
    return {
        f"{measure}_rate_ci95_by_kind": ci95 if own else stats.score_mean_by_kind(means, kinds),
        f"{measure}_rate_variance": Variance(**asdict(found)) if found else None,
    }


def family_score(episodes: Sequence[EpisodeScore]) -> FamilyScore:
    """Rates of one family, fractions 0..1, each with a 95 % interval over its `n` tasks. `episodes` is not empty."""
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
        **_beside([episodes], "success", success_ci95),
        **_beside([episodes], "progress", progress_ci95),
        easy=_rates([e for e in episodes if e.difficulty == "easy"]),
        hard=_rates([e for e in episodes if e.difficulty == "hard"]),
        **_figures(episodes),
    )


def kind_scores(episodes: Iterable[EpisodeScore]) -> dict[str, KindScore]:
    """The rates of each kind of task of a family, by name."""
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
    """Means of the family's own figures over the episodes that have them, each with its interval over tasks."""
    found: dict[str, dict[str, list[float]]] = {}
    for episode in episodes:
        for name, value in episode.figures.items():
            found.setdefault(name, {}).setdefault(episode.task_id, []).append(float(value))
    means = {name: [_mean(values) for values in tasks.values()] for name, tasks in sorted(found.items())}
    figures = {
        name: Figure(n=len(values), mean=_mean(values), ci95=stats.score_mean(values))
        for name, values in means.items()
    }
    return {"figures": figures} if figures else {}


def played(attempts: Iterable[EpisodeScore], of: int, samples: int) -> Played:
    """`of`: tasks of the whole family. An attempt that is there twice counts once."""
    keys = {(a.task_id, a.sample) for a in attempts if a.sample < samples}
    return Played(len({task_id for task_id, _ in keys}), of, len(keys), samples)


def held_out_score(
    by_family: Mapping[str, Sequence[EpisodeScore]], weights: Mapping[str, int], samples: int = 1
) -> tuple[HeldOut | None, str | None]:
    """(score, None), or (None, why it is withheld). `weights`: held-out family -> its number of tasks.

    A score is given only when every one of `samples` attempts at every task of every held-out family is there, each
    counted once: what is left of an incomplete family is no sample of it.
    """
    found = {family: played(by_family.get(family, ()), n, samples) for family, n in weights.items()}
    missing = [f"{family} ({_share(each)})" for family, each in found.items() if not each.complete]
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
        score |= _beside([by_family[f] for f in families], measure, score[f"{rate}_ci95"])
    return HeldOut(**score), None


def held_out_estimate(
    by_family: Mapping[str, Sequence[EpisodeScore]], subset: Mapping[str, int], samples: int = 1
) -> Estimate | None:
    """Of the whole held-out score, from every attempt at every task of `subset` (task id -> how many it stands for,
    family by family in the order of difficulty); None before all are there."""
    attempts = group_by_key((e.task_id, e) for episodes in by_family.values() for e in episodes)
    if not subset or any(len(attempts.get(task_id, ())) < samples for task_id in subset):
        return None
    of, found = sum(subset.values()), dict[str, Any]()
    for measure in MEASURES:
        families: dict[str, list[float]] = {}
        total = 0.0
        for task_id, stands_for in subset.items():
            value = _mean([float(getattr(episode, measure)) for episode in attempts[task_id]])
            families.setdefault(task_id.partition("/")[0], []).append(value)
            total += stands_for * value
        rate = total / of
        low, high = stats.subset_interval(list(families.values()), of)
        found[f"{measure}_rate"] = rate
        found[f"{measure}_rate_ci95"] = (min(low, rate), max(high, rate))
    return Estimate(n=len(subset), stands_for=of, **found)


def pooled_score(by_family: Mapping[str, Sequence[EpisodeScore]]) -> Scores:
    """Return the rates over all tasks of several families, each task once."""
    strata = list(by_family.values())
    found: dict[str, Any] = {}
    for measure in MEASURES:
        values = [_task_means(episodes, measure) for episodes in strata]
        binary = measure == "success"
        ci95 = stats.pooled_interval(
            [(len(listed), _mean(listed), stats.rate_interval(listed, binary=binary)) for listed in values]
        )
        rate = _mean([value for listed in values for value in listed])
        found |= {f"{measure}_rate": rate, f"{measure}_rate_ci95": ci95}
        found |= _beside(strata, measure, ci95)
    kinds = sum(len(set(_task_kinds(episodes))) for episodes in strata)
    return Scores(n=sum(len(_task_kinds(episodes)) for episodes in strata), kinds=kinds, **found)


def _share(part: Played) -> str:
    """`59/60`; where tasks have several attempts each, `238/240 attempts`."""
    if part.samples == 1:
        return f"{part.tasks}/{part.of}"
    return f"{part.episodes}/{part.of * part.samples} attempts"


def group_by_family(episodes: Iterable[EpisodeScore]) -> dict[str, list[EpisodeScore]]:
    """Families sorted by name, episodes by task and sample: no sum depends on the order in which they finished."""
    ordered = sorted(episodes, key=lambda e: (e.family, e.task_id, e.sample))
    return group_by_key((episode.family, episode) for episode in ordered)
