"""Rejection sampling: the good episodes of runs become data. Error flags are what the run recorded of a turn:
no action, an action that the world refused, a valid one that changed nothing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evalharness.analysis.tables import sorted_episodes
from evalharness.errors import UserError
from evalharness.exports.conversation import conversation, opening
from evalharness.records.episode import Episode, Turn
from evalharness.records.store import MANIFEST, read_manifest
from evalharness.refine.sample import Sample, SampleMessage
from evalharness.suites.open import frozen_proofs

_KEEP = re.compile(r"progress\s*>=\s*([01](?:\.\d+)?|\.\d+)")
SAMPLES = "samples"
"""The run of the samples in the folder of a Best-of-N study."""


@dataclass(frozen=True)
class Keep:
    """Which episodes are good enough."""

    least_progress: float | None = None
    """None: those that solved their task."""

    def __call__(self, episode: Episode) -> bool:
        if self.least_progress is None:
            return episode.success
        return episode.progress >= self.least_progress - 1e-9


def parse_keep(text: str) -> Keep:
    """`success` or `progress>=0.5`. Raises UserError."""
    if text == "success":
        return Keep()
    if match := _KEEP.fullmatch(text.strip()):
        return Keep(float(match[1]))
    raise UserError(f"--keep {text!r}: write success, or progress>=X with X from 0 to 1 (in quotes)")


@dataclass
class Tally:
    """What became of the episodes of all runs."""

    episodes: int = 0
    kept: int = 0
    not_kept: Counter[str] = field(default_factory=Counter)
    """Reason -> episodes."""

    def to_json(self) -> dict[str, Any]:
        return {
            "episodes": self.episodes,
            "kept": self.kept,
            "not_kept": dict(sorted(self.not_kept.items())),
        }


def run_folder(path: Path) -> Path:
    """The run itself, or the samples of a Best-of-N study. Raises UserError where there is none."""
    if not (path / MANIFEST).exists() and (path / SAMPLES / MANIFEST).exists():
        return path / SAMPLES
    read_manifest(path)
    return path


def samples_of(
    runs: Sequence[Path], keep: Keep, tally: Tally, *, per_task: int | None = None, evaluated: bool = False
) -> Iterator[Sample]:
    """The kept episodes in the order of runs, tasks and samples.

    `per_task` keeps the shortest of a task's. Episodes of suite seed 0 and of published suites are only taken
    where `evaluated`: who trains on them cannot be evaluated on them any more.
    """
    frozen = {row.task_hash for row in frozen_proofs().values()}
    for number, path in enumerate(runs, 1):
        folder = run_folder(path)
        model = str(read_manifest(folder)["model_name"])
        good: list[Episode] = []
        for episode in sorted_episodes(folder):
            tally.episodes += 1
            if not keep(episode):
                tally.not_kept["not good enough"] += 1
            elif not evaluated and (episode.suite != "open" or episode.task_hash in frozen):
                tally.not_kept["of a task that models are evaluated on"] += 1
            elif not opening(episode)[1]:
                tally.not_kept["its prompt file is not at hand"] += 1
            elif not episode.turns:
                tally.not_kept["no turn"] += 1
            else:
                good.append(episode)
        for episode in _best(good, per_task, tally):
            tally.kept += 1
            yield _sample(episode, number, model)


def _best(good: list[Episode], per_task: int | None, tally: Tally) -> Iterator[Episode]:
    seen: Counter[str] = Counter()
    chosen = set()
    for episode in sorted(good, key=lambda e: (e.task_id, len(e.turns), e.sample)):
        if per_task is None or seen[episode.task_id] < per_task:
            seen[episode.task_id] += 1
            chosen.add((episode.task_id, episode.sample))
        else:
            tally.not_kept["enough of its task"] += 1
    yield from (episode for episode in good if (episode.task_id, episode.sample) in chosen)


def _error(turn: Turn) -> tuple[str, ...]:
    if turn.action is None:
        return ("format",)
    if not turn.valid:
        return ("invalid",)
    return ("logic",) if turn.no_effect else ()


def _sample(episode: Episode, run: int, model: str) -> Sample:
    head = len(opening(episode)[0])
    messages: list[SampleMessage] = []
    failing = False
    for index, message in enumerate(conversation(episode)[:-1]):
        if message["role"] != "assistant":
            messages.append(
                SampleMessage("system" if message["role"] == "system" else "user", message["content"])
            )
            continue
        turn = episode.turns[(index - head) // 2]
        error = _error(turn)
        messages.append(
            SampleMessage("assistant", message["content"], not error, error, failing and not error)
        )
        failing = bool(error)
    return Sample(
        id=f"run-{run}/{episode.task_id}/{episode.sample}",
        source="from-runs",
        world=episode.family,
        task_hash=episode.task_hash,
        messages=tuple(messages),
        metadata={
            "task_id": episode.task_id,
            "sample": episode.sample,
            "model": model,
            "kind": episode.kind,
            "goal": episode.goal,
            "perturbation": episode.perturbation,
            "success": episode.success,
            "progress": [turn.progress for turn in episode.turns],
            "valid": [turn.valid for turn in episode.turns],
        },
    )
