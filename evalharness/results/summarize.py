"""Compute the scores of a run folder from its episodes, and store them in `summary.json`."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from evalharness import stats
from evalharness.base.errors import DamageWarning
from evalharness.base.grouping import group_by_key
from evalharness.base.reading import read_bytes, read_object, sha256_of
from evalharness.envs.base import MAX_TURNS
from evalharness.records.episode import Episode
from evalharness.records.format_trouble import Replies
from evalharness.records.manifest import Manifest, ProtocolIdentity
from evalharness.records.outside import Outside
from evalharness.records.store import (
    EPISODES,
    MANIFEST,
    SUMMARY,
    read_episodes,
    read_failures,
    read_manifest,
    write_atomically,
)
from evalharness.records.summary import (
    SCHEMA,
    FamilyRow,
    OutsideAgent,
    ProtocolNumber,
    Summary,
    Timing,
    TokenCounts,
)
from evalharness.results.score import (
    EpisodeScore,
    family_score,
    group_by_family,
    held_out_estimate,
    held_out_score,
    pooled_score,
)
from evalharness.results.task_range import TaskRange, family_range, load_ranges, mark_changed


def protocol_number(protocol: ProtocolIdentity, scores: Sequence[EpisodeScore]) -> ProtocolNumber | None:
    """Return the score that another group's protocol reports, if any; samples of the same game are averaged."""
    if not scores or protocol.score == "none":
        return None
    games = group_by_key((score.task_id, float(getattr(score, protocol.score))) for score in scores)
    values = [fmean(tries) for tries in games.values()]
    rate = fmean(values)
    number: dict[str, Any] = {
        "score": protocol.score,
        "rate": rate,
        "ci95": stats.rate_interval(values, binary=protocol.score == "success"),
        "games": len(values),
    }
    if protocol.draw is not None:
        from scipy.stats import binom  # a slow import that few protocols need

        # Assume that the protocol draws games with replacement and that each game is solved with probability `rate`.
        ends = [float(binom.ppf(share, protocol.draw, rate)) / protocol.draw for share in (0.025, 0.975)]
        number |= {"drawn": protocol.draw, "drawn95": tuple(ends)}
    return ProtocolNumber.of(number)


NOT_TIMED = Timing()


def infrastructure_failures(folder: Path, done: set[tuple[str, int]]) -> dict[str, int]:
    """Map each family to the number of episodes that could not be played because of failures of simulator or server."""
    given_up = {(line["task_id"], line["sample"]) for line in read_failures(folder) if line.get("final")}
    return Counter(task_id.split("/")[0] for task_id, _ in given_up - done)


class SummaryBuilder:
    """Builds the summary of a run folder; the caller adds one episode after the other."""

    def __init__(self, folder: Path) -> None:
        """Read the manifest. Raise UserError if `folder` has no run."""
        self.folder = folder
        self.manifest = read_manifest(folder)
        self.scores: list[EpisodeScore] = []
        config = self.manifest.config
        self._outside: list[Outside] = []
        self._replies = Replies(config.max_tokens or 0, config.agent_name)

    def add(self, episode: Episode) -> None:
        self.scores.append(EpisodeScore.of(self._replies.count_episode(episode)))
        if episode.outside is not None:
            self._outside.append(episode.outside)

    def summary(self, timing: Timing = NOT_TIMED) -> Summary:
        """Return the summary of all added episodes. `timing`: durations that were measured while the run was played."""
        summary = summary_of(self.folder, self.manifest, self.scores, timing)
        more = {**self._replies.troubles(), "outside": sum_agent_reports(self._outside)}
        return summary.model_copy(update={name: value for name, value in more.items() if value})


def sum_agent_reports(episodes: Sequence[Outside]) -> OutsideAgent | None:
    """Sum what external agents reported about their episodes (tokens, cost); None if no external agent played."""
    if not episodes:
        return None

    def total(name: str) -> Any:
        values = [value for each in episodes if (value := getattr(each, name)) is not None]
        return sum(values) if values else None

    return OutsideAgent(
        stopped=dict(sorted(Counter(each.stopped for each in episodes if each.stopped).items())),
        handed_out_again=sum(each.handed_out > 1 for each in episodes),
        said_models=sorted({each.model for each in episodes if each.model}),
        said_prompt_tokens=total("prompt_tokens"),
        said_completion_tokens=total("completion_tokens"),
        said_cost=total("cost"),
    )


def summarize(folder: Path, timing: Timing = NOT_TIMED) -> Summary:
    """Compute the summary of a run folder. `timing`: durations that were measured while the run was played."""
    builder = SummaryBuilder(folder)
    for episode in read_episodes(folder):
        builder.add(episode)
    return builder.summary(timing)


def summary_of(
    folder: Path, manifest: Manifest, scores: Sequence[EpisodeScore], timing: Timing = NOT_TIMED
) -> Summary:
    """Compute the summary from scores, without reading episodes and without the warnings about the model's replies."""
    config = manifest.config
    groups = group_by_family(scores)
    failures = infrastructure_failures(folder, {(s.task_id, s.sample) for s in scores})
    limits = manifest.turn_limits
    ranges = load_ranges(manifest.suite, config.suite_seed)
    hashes = {(score.task_id, score.task_hash) for score in scores}
    families = {
        family: _family_row(manifest, family, groups.get(family, ()), failures.get(family, 0), ranges)
        for family in manifest.counts
    }
    held_out, withheld = held_out_score(groups, manifest.held_out, config.samples)
    own_names = manifest.scores.keys()
    usual = {family: listed for family, listed in groups.items() if family not in own_names}
    whole = all(families[f].episodes == families[f].episodes_selected for f in families if f not in own_names)
    some: dict[str, Any] = {
        "turn_limits": limits if len(set(limits.values())) > 1 else None,
        "scores": manifest.scores,
        "draw": manifest.draw,
        "first_tasks_only": config.limit,
        "agent": None if config.agent_text == "react" else config.agent_text,
        "protocol": config.protocol_text,
        "protocol_number": config.protocol and protocol_number(config.protocol, scores),
        "held_out_estimate": held_out_estimate(groups, manifest.subset, config.samples),
        "repeat_check": manifest.repeat_check,
        "content_filter_episodes": sum(s.content_filter for s in scores),
        "cut_from": min((s.cut_from for s in scores if s.cut_from), default=None),
        "simulator_halted_episodes": sum(s.halted for s in scores),
        "halting_families": [f for f, own in groups.items() if len(own) > 1 and all(s.halted for s in own)],
        "pooled": pooled_score(usual) if whole and held_out is None and len(usual) > 1 else None,
    }
    drawn: dict[str, Any] = (
        {"sample": config.sample, "sample_seed": config.suite_seed} if config.sample else {}
    )
    if config.subset:
        drawn["subset"] = config.subset
    return Summary(
        schema=SCHEMA,
        run=str(folder),
        suite=manifest.suite,
        labels={f: who for f, who in mark_changed(manifest.labels, hashes).items() if who != "official"},
        model={
            "name": manifest.model_name,
            **({"run_name": manifest.run_name} if manifest.run_name else {}),
            **manifest.identity.model,
        },
        max_turns=max(limits.values(), default=config.max_turns),
        max_tokens=config.max_tokens,
        perturbation=config.perturb,
        samples=config.samples,
        families=families,
        held_out=held_out,
        held_out_withheld=withheld,
        turns=sum(s.turns for s in scores),
        format_error_turns=sum(s.format_errors for s in scores),
        format_error_kinds=_error_kinds(scores),
        tells_stop=manifest.tells_stop,
        trimmed_episodes=sum(s.trimmed for s in scores),
        context_full_episodes=sum(s.context_full for s in scores),
        reasoning_truncated_turns=sum(s.reasoning_truncated for s in scores),
        tokens=TokenCounts(
            prompt=sum(s.prompt_tokens for s in scores),
            completion=sum(s.completion_tokens for s in scores),
            reasoning=sum(s.reasoning_tokens for s in scores),
        ),
        **{key: value for key, value in some.items() if value},
        **drawn,
        **timing.list_given_fields(),
    )


def _family_row(
    manifest: Manifest,
    family: str,
    scores: Sequence[EpisodeScore],
    failures: int,
    ranges: Sequence[TaskRange],
) -> FamilyRow:
    count, limit = manifest.counts[family], manifest.turn_limits[family]
    rates: dict[str, Any] = {"n": 0, "episodes": 0}
    if scores:
        score = family_score(scores)
        rates = score.list_given_fields()
        if family in manifest.scores:
            rates["mean_turns"] = fmean(s.turns for s in scores)
        reference = family_range([(s.task_id, s.task_hash) for s in scores], ranges, rates, limit)
        if reference or limit == MAX_TURNS:
            rates["reference"] = reference
    if cut := sum(score.cut_from > 0 for score in scores):
        rates["cut_episodes"] = cut
    return FamilyRow(
        selected=count,
        expected=manifest.expected[family],
        episodes_selected=count * manifest.config.samples,
        infrastructure_failures=failures,
        **rates,
    )


def _error_kinds(scores: Iterable[EpisodeScore]) -> dict[str, int]:
    """Map each kind of format error to the number of turns that have this error, sorted by kind."""
    counts: Counter[str] = Counter()
    for score in scores:
        counts.update(score.format_error_kinds)
    return dict(sorted(counts.items()))


def write_summary(folder: Path, timing: Timing) -> Summary:
    summary = summarize(folder, timing)
    stored = summary.to_json()
    stored["made_from"] = hash_sources(folder, stored)
    write_atomically(folder / SUMMARY, json.dumps(stored, indent=2, sort_keys=False) + "\n")
    return summary


def hash_sources(folder: Path, summary: Mapping[str, Any]) -> str:
    """Return a SHA-256 of the run's files and of `summary` without its key `made_from`. If a stored summary has this
    hash under `made_from`, run and summary are unchanged since. Raise OSError if a file cannot be read."""
    files = [sha256_of(path) for name in (MANIFEST, EPISODES) if (path := folder / name).exists()]
    own = {key: value for key, value in summary.items() if key != "made_from"}
    return hashlib.sha256(json.dumps([files, own], sort_keys=True).encode()).hexdigest()


def earlier_timing(folder: Path) -> Timing:
    """Read the durations in the stored summary, because they cannot be computed from the episodes."""
    path = folder / SUMMARY
    try:
        summary = read_object(read_bytes(path))
        return Timing.of({key: summary[key] for key in Timing.model_fields if key in summary})
    except OSError:
        return NOT_TIMED
    except ValueError as error:
        warnings.warn(f"{path} is damaged ({error}); its times are left out", DamageWarning, stacklevel=2)
        return NOT_TIMED
