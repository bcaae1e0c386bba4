"""`summary.json`: the scores of a run folder, recomputed from its episodes whenever asked."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from envs.base import MAX_TURNS
from evalharness.analysis.cost import Prices, Tokens, cost_of
from evalharness.analysis.format_trouble import Replies
from evalharness.analysis.score import EpisodeScore, family_score, group_by_family, held_out_score
from evalharness.analysis.task_range import family_range, load_ranges
from evalharness.errors import DamageWarning
from evalharness.records.episode import Episode
from evalharness.records.manifest import turn_limits
from evalharness.records.shapes import check_timing, read_object
from evalharness.records.store import (
    SUMMARY,
    read_episodes,
    read_failures,
    read_manifest,
    tells_stop,
    write_atomically,
)

SCHEMA = 1
TIMING = ("wall_s", "sessions", "efficiency", "performance", "prices", "unfinished_tokens", "stopped")
"""Keys that only the run itself knows."""


def infrastructure_failures(folder: Path, done: set[tuple[str, int]]) -> dict[str, int]:
    """Family -> episodes that were given up and have not been played since."""
    given_up = {(line["task_id"], line["sample"]) for line in read_failures(folder) if line.get("final")}
    counts: dict[str, int] = {}
    for task_id, _ in given_up - done:
        family = task_id.split("/")[0]
        counts[family] = counts.get(family, 0) + 1
    return counts


FORMAT_TROUBLE = "format_trouble"
"""Key of what is said where nearly every reply is a format error."""


class Summing:
    """The summary of a run folder, made of its episodes as somebody reads them."""

    def __init__(self, folder: Path) -> None:
        """Raises UserError when `folder` holds no run."""
        self.folder = folder
        self.manifest = read_manifest(folder)
        self.scores: list[EpisodeScore] = []
        config = self.manifest["identity"]["config"]
        self._replies = Replies(config.get("max_tokens") or 0, config.get("action_interface") == "tools")

    def add(self, episode: Episode) -> None:
        self.scores.append(EpisodeScore.of(self._replies.seen(episode)))

    def summary(self, timing: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Of all that were added. `timing` holds what only the running session knows (`wall_s`)."""
        found = summary_of(self.folder, self.manifest, self.scores, timing)
        return found | ({FORMAT_TROUBLE: trouble} if (trouble := self._replies.to_json()) else {})


def summarize(folder: Path, timing: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Compute the summary of a run folder. `timing` holds what only the running session knows (`wall_s`)."""
    summing = Summing(folder)
    for episode in read_episodes(folder):
        summing.add(episode)
    return summing.summary(timing)


def summary_of(
    folder: Path,
    manifest: Mapping[str, Any],
    scores: Sequence[EpisodeScore],
    timing: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The summary that these scores make, whatever the folder's own episodes are; without what only replies show."""
    config = manifest["identity"]["config"]
    groups = group_by_family(scores)
    failures = infrastructure_failures(folder, {(s.task_id, s.sample) for s in scores})
    samples = config["samples"]
    limits = turn_limits(manifest)
    ranges = load_ranges(manifest["suite"], config["suite_seed"])
    families: dict[str, Any] = {}
    for family, count in manifest["counts"].items():
        families[family] = {
            "n": 0,
            "selected": count,
            "expected": manifest["expected"][family],
            "episodes": 0,
            "episodes_selected": count * samples,
            "infrastructure_failures": failures.get(family, 0),
        }
        if family in groups:
            families[family] |= family_score(groups[family])
            played = [(s.task_id, s.task_hash) for s in groups[family]]
            if family in manifest.get("scores", {}):
                families[family]["mean_turns"] = fmean(s.turns for s in groups[family])
            found = family_range(played, ranges, families[family], limits[family])
            if found or limits[family] == MAX_TURNS:
                families[family]["reference"] = found
    held_out, withheld = held_out_score(groups, manifest["held_out"], samples)
    return {
        "schema": SCHEMA,
        "run": str(folder),
        "suite": manifest["suite"],
        "labels": {f: who for f, who in manifest["labels"].items() if who != "official"},
        "model": {"name": manifest["model_name"], **manifest["identity"]["model"]},
        "max_turns": max(limits.values()),
        **({"turn_limits": limits} if len(set(limits.values())) > 1 else {}),
        **({"scores": manifest["scores"]} if "scores" in manifest else {}),
        **({"draw": manifest["draw"]} if manifest.get("draw") else {}),
        "max_tokens": config.get("max_tokens"),
        "perturbation": config.get("perturb"),
        "samples": samples,
        "families": families,
        "held_out": held_out,
        "held_out_withheld": withheld,
        "turns": sum(s.turns for s in scores),
        "format_error_turns": sum(s.format_errors for s in scores),
        "format_error_kinds": _error_kinds(scores),
        **({"first_tasks_only": config["limit"]} if config.get("limit") else {}),
        **({"sample": config["sample"], "sample_seed": config["suite_seed"]} if config.get("sample") else {}),
        "tells_stop": tells_stop(manifest),
        "trimmed_episodes": sum(s.trimmed for s in scores),
        "context_full_episodes": sum(s.context_full for s in scores),
        "reasoning_truncated_turns": sum(s.reasoning_truncated for s in scores),
        "tokens": {
            "prompt": sum(s.prompt_tokens for s in scores),
            "completion": sum(s.completion_tokens for s in scores),
            "reasoning": sum(s.reasoning_tokens for s in scores),
        },
        **(timing or {}),
        **_cost(groups, timing or {}),
    }


def _error_kinds(scores: Iterable[EpisodeScore]) -> dict[str, int]:
    """Kind of format error -> turns that have it, by name."""
    counts: Counter[str] = Counter()
    for score in scores:
        counts.update(score.format_error_kinds)
    return dict(sorted(counts.items()))


def _cost(groups: Mapping[str, list[EpisodeScore]], timing: Mapping[str, Any]) -> dict[str, Any]:
    """`cost`, where prices were given."""
    if timing.get("prices") is None:
        return {}
    prices = Prices.model_validate(timing["prices"])
    return {"cost": cost_of(groups, prices, Tokens(**timing.get("unfinished_tokens") or {}))}


def write_summary(folder: Path, timing: Mapping[str, Any]) -> dict[str, Any]:
    summary = summarize(folder, timing)
    write_atomically(folder / SUMMARY, json.dumps(summary, indent=2, sort_keys=False) + "\n")
    return summary


def earlier_timing(folder: Path) -> dict[str, Any]:
    """What the last call that played anything wrote down of itself; it cannot be recomputed."""
    path = folder / SUMMARY
    try:
        summary = read_object(path.read_bytes())
        found = {key: summary[key] for key in TIMING if key in summary}
        check_timing(found)
    except OSError:
        return {}
    except ValueError as error:
        warnings.warn(f"{path} is damaged ({error}); its times are left out", DamageWarning, stacklevel=2)
        return {}
    return found


def is_complete(summary: Mapping[str, Any]) -> bool:
    """Every selected episode was played."""
    return all(f["episodes"] == f["episodes_selected"] for f in summary["families"].values())
