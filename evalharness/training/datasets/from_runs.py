"""Convert the episodes of runs that meet a condition to training data (rejection sampling)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from evalharness.base.errors import UserError
from evalharness.records.episode import Episode, Turn
from evalharness.records.store import MANIFEST, read_manifest
from evalharness.results.exports.conversation import Protocol, opening
from evalharness.results.tables import read_sorted_episodes
from evalharness.suites.excluded import PUBLISHED
from evalharness.training.datasets.conversation import Conversation, JsonCounts
from evalharness.training.datasets.overlap import REASON, Exclusion, PlayedTasks
from evalharness.training.datasets.played import convert_episode

_KEEP = re.compile(r"progress\s*>=\s*([01](?:\.\d+)?|\.\d+)")
SAMPLES = "samples"
"""Name of the subfolder of a Best-of-N study that holds the run with the samples."""
_CHATS = ("react", "act")
"""Agents whose episode is a single chat, as training data requires."""


@dataclass(frozen=True)
class Keep:
    """The condition for keeping an episode."""

    least_progress: float | None = None
    """The smallest progress rate of a kept episode; None: the episode must solve its task."""

    def __call__(self, episode: Episode) -> bool:
        if self.least_progress is None:
            return episode.success
        return episode.progress >= self.least_progress - 1e-9


def parse_keep(text: str) -> Keep:
    """Parse `success` or `progress>=0.5`. Raises UserError."""
    if text == "success":
        return Keep()
    if (match := _KEEP.fullmatch(text.strip())) and float(match[1]) <= 1:
        return Keep(float(match[1]))
    raise UserError(f"--keep {text!r}: write success, or progress>=X with X from 0 to 1 (in quotes)")


@dataclass
class Tally(JsonCounts):
    """The number of kept episodes, and the number of left-out episodes by reason, over all runs."""

    episodes: int = 0
    kept: int = 0
    not_kept: Counter[str] = field(default_factory=Counter)
    """Reason -> number of episodes."""


def find_run_folder(path: Path) -> Path:
    """Return the run's folder; for a Best-of-N study, its folder `samples`. Raises UserError if there is no run."""
    if not (path / MANIFEST).exists() and (path / SAMPLES / MANIFEST).exists():
        return path / SAMPLES
    read_manifest(path)
    return path


def read_good_conversations(
    runs: Sequence[Path], keep: Keep, tally: Tally, exclusion: Exclusion, *, per_task: int | None = None
) -> Iterator[Conversation]:
    """Yield the kept episodes as conversations, in the order of runs, tasks and samples.

    `per_task` is the most episodes of a task; the shortest are kept. `exclusion` refuses episodes of evaluation tasks,
    also of tasks that only differ from them by names: a model trained on a task cannot be evaluated on it.
    """
    tasks = PlayedTasks(exclusion.data)
    for number, path in enumerate(runs, 1):
        folder = find_run_folder(path)
        manifest = read_manifest(folder)
        if manifest.config.agent_name not in _CHATS:
            raise UserError(
                f"{folder}: only runs of the agents {' and '.join(_CHATS)} become data; this run's agent is "
                f"{manifest.config.agent_name}"
            )
        model, seed, protocol = manifest.model_name, manifest.config.suite_seed, Protocol.of(manifest)
        good: list[tuple[Episode, Conversation]] = []
        for episode in read_sorted_episodes(folder):
            tally.episodes += 1
            if not keep(episode):
                tally.not_kept["not good enough"] += 1
            elif not exclusion.evaluated and episode.suite != "open":
                tally.not_kept[REASON.format(PUBLISHED)] += 1
            elif not opening(episode, protocol)[1]:
                tally.not_kept["its prompt file is missing"] += 1
            elif not episode.turns:
                tally.not_kept["no turn"] += 1
            else:
                forms = tasks.forms(episode.family, episode.suite, seed, episode.task_hash)
                conversation = convert_episode(
                    f"run-{number}/{episode.task_id}/{episode.sample}",
                    "from-runs",
                    episode,
                    [_find_error(turn) for turn in episode.turns],
                    suite_seed=seed,
                    task_forms=forms,
                    protocol=protocol,
                    sample=episode.sample,
                    model=model,
                    perturbation=episode.perturbation,
                    success=episode.success,
                )
                if (reason := exclusion.check(conversation)) is not None:
                    tally.not_kept[reason] += 1
                elif not forms and not exclusion.evaluated:
                    tally.not_kept[
                        "its task is missing (another version of the suite?), so it cannot be compared"
                    ] += 1
                else:
                    good.append((episode, conversation))
        for conversation in _select_shortest(good, per_task, tally):
            tally.kept += 1
            yield conversation


def _select_shortest(
    good: list[tuple[Episode, Conversation]], most: int | None, tally: Tally
) -> Iterator[Conversation]:
    seen: Counter[str] = Counter()
    chosen = set()
    for episode, _ in sorted(good, key=lambda each: (each[0].task_id, len(each[0].turns), each[0].sample)):
        if most is None or seen[episode.task_id] < most:
            seen[episode.task_id] += 1
            chosen.add((episode.task_id, episode.sample))
        else:
            tally.not_kept["more than --per-task of its task"] += 1
    yield from (conversation for episode, conversation in good if (episode.task_id, episode.sample) in chosen)


def _find_error(turn: Turn) -> tuple[str, ...]:
    if turn.action is None:
        return ("format",)
    if not turn.valid:
        return ("invalid",)
    return ("logic",) if turn.no_effect else ()
