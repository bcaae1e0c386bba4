"""Write a data set as a run folder, so that the report can show it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalharness.base.grouping import group_by_key
from evalharness.base.reading import sha256_of
from evalharness.config import make_config
from evalharness.envs import specs
from evalharness.envs.base import Actions, EnvSpec, InvalidTaskError, Task, TaskSuites
from evalharness.protocol import react
from evalharness.records.data_set import MARK_SUFFIX, TRAINING_DATA
from evalharness.records.episode import Episode, Turn
from evalharness.records.make_manifest import make_manifest
from evalharness.records.store import EPISODES, MANIFEST
from evalharness.training.datasets.conversation import (
    BrokenLine,
    Conversation,
    describe_broken,
    describe_empty,
    read_data,
    read_manifest,
)

if TYPE_CHECKING:
    from evalharness.envs.base import TextEnv

_GENERAL = "general"
_MOST_VARIANTS = 10_000
"""Variant numbers below this limit are used as sample numbers; a larger number becomes sample 0."""


def run_from_file(path: Path, folder: Path) -> list[str]:
    """Write the data set as a run folder. Return messages about lines that could not be read."""
    broken: list[BrokenLine] = []
    write_as_run(path, folder, broken)
    return describe_broken(path, broken)


def write_as_run(path: Path, folder: Path, broken: list[BrokenLine]) -> None:
    """Write the data set as a run folder. Adds unreadable lines to `broken`. Raises UserError if the file cannot be
    read."""
    made = (read_manifest(path) or {}).get("made", {})
    prompts: Mapping[str, str] = made.get("prompts", {})
    conversations = list(read_data(path, broken))
    if not conversations:
        raise describe_empty(path, broken)
    episodes = list(
        _number_repeats(to_episode(each, number, prompts) for number, each in enumerate(conversations))
    )
    tasks = {e.task_id: _make_task(e) for e in sorted(episodes, key=lambda e: e.task_id)}
    families = group_by_key((task.family, task) for task in tasks.values())
    known = {**specs()}
    for family in {e.family for e in episodes} - known.keys():
        known[family] = _make_spec(family)
    config = make_config(
        {
            "model": "http://127.0.0.1:1/v1",
            "model_name": path.name,
            "suite": "open",
            "max_turns": max((len(e.turns) for e in episodes), default=1),
            "samples": max((e.sample + 1 for e in episodes), default=1),
        }
    )
    manifest = make_manifest(
        config,
        families,
        known,
        prompts,
        _identify(path, conversations),
    )
    folder.mkdir(parents=True)
    (folder / MANIFEST).write_text(json.dumps(manifest.to_json()), encoding="utf-8")
    with (folder / EPISODES).open("w", encoding="ascii") as file:
        file.writelines(json.dumps(played.to_json()) + "\n" for played in episodes)


def _identify(path: Path, conversations: Sequence[Conversation]) -> dict[str, Any]:
    """Return the manifest's entry that identifies the data set. `simulated` is true if a simulator answered every turn:
    only then is the success of its conversations verified."""
    simulated = all(isinstance(conversation.metadata.get("valid"), list) for conversation in conversations)
    return {"kind": TRAINING_DATA, "sha256": sha256_of(path), "simulated": simulated}


def _number_repeats(episodes: Iterable[Episode]) -> Iterator[Episode]:
    """Give later conversations with the same task id and sample number a new task id. Mixed data sets repeat these."""
    seen: set[tuple[str, int]] = set()
    for number, each in enumerate(episodes):
        if (each.task_id, each.sample) in seen:
            each = replace(each, task_id=f"{each.family}/again/{number:05d}")
        seen.add((each.task_id, each.sample))
        yield each


def _make_task(played: Episode) -> Task:
    return Task(
        id=played.task_id, family=played.family, suite="open", index=0, goal=played.goal, difficulty="easy",
        kind=played.kind, labels="ours",
    )  # fmt: skip


def _refuse_play(data: Path | None) -> TextEnv:
    raise InvalidTaskError("a data set's own environment can be shown and not played")


def _make_spec(family: str) -> EnvSpec:
    """Return a specification, enough for the report's tables, for a family that is not installed."""
    return EnvSpec(
        family=family,
        title=family,
        gym_id=f"evalharness/{family}",
        make=_refuse_play,
        suites=TaskSuites({"open": 0, "agentboard": 0}, lambda suite, data, seed: []),
        actions=Actions({}),
    )


def to_episode(conversation: Conversation, number: int, prompts: Mapping[str, str]) -> Episode:
    """Convert a conversation to an episode. The kinds of error in its turns become format errors of the episode's
    turns."""
    messages, facts = conversation.messages, conversation.metadata
    first = next((i for i, m in enumerate(messages) if m.role == "assistant"), len(messages))
    family = conversation.world or _GENERAL
    progress, valid, variant = facts.get("progress"), facts.get("valid"), facts.get("variant")
    turns: list[Turn] = []
    for at, message in enumerate(messages[first:], first + 1):
        if message.role != "assistant":
            continue
        parsed = react.parse(message.content)
        after = messages[at] if at < len(messages) else None
        answer = after.content if after is not None and after.role != "assistant" else ""
        turns.append(
            Turn(
                turn=len(turns) + 1,
                reply=message.content,
                thought=parsed.thought,
                action=parsed.action,
                observation=answer.removeprefix("Observation: "),
                progress=_read_progress(progress, len(turns)),
                valid=_read_validity(valid, len(turns)),
                format_errors=tuple(f"{kind}{MARK_SUFFIX}" for kind in message.error),
            )
        )
    head = messages[first - 1].content if first else ""
    opening = head.rpartition("Now it is your turn.")[2].strip()
    goal, _, observation = opening.partition("\nObservation: ")
    total = turns[-1].progress if turns else 0.0
    verdict = facts.get("success")
    success = verdict if isinstance(verdict, bool) else total >= 1.0
    return Episode(
        task_id=_make_task_id(conversation, family, number),
        family=family,
        suite="open",
        kind=str(facts.get("kind", conversation.source)),
        difficulty="easy",
        labels="ours",
        sample=variant if isinstance(variant, int) and 0 <= variant < _MOST_VARIANTS else 0,
        perturbation=None,
        goal=str(facts.get("goal") or goal.removeprefix("Goal: "))[:2000],
        first_observation=observation or opening,
        turns=tuple(turns),
        progress=total,
        success=success,
        solved=success,
        ended_by="success" if success else "policy_stopped",
        trims=(),
        subgoals=(),
        task_hash=conversation.task_hash or "",
        prompt_hash=prompts.get(family, ""),
        policy_s=0.0,
        environment_s=0.0,
        started=0.0,
        wall_s=0.0,
    )


def _read_progress(progress: Any, index: int) -> float:
    value = progress[index] if isinstance(progress, list) and index < len(progress) else 0.0
    return float(value) if isinstance(value, int | float) and 0 <= value <= 1 else 0.0


def _read_validity(valid: Any, index: int) -> bool:
    return not (isinstance(valid, list) and index < len(valid) and valid[index] is False)


def _make_task_id(conversation: Conversation, family: str, number: int) -> str:
    """Return a task id: `babyai/open-100/017` for suite seed 100, or `FAMILY/SOURCE/NUMBER` if the seed is unknown."""
    task, seed = conversation.metadata.get("task_id"), conversation.metadata.get("suite_seed")
    if isinstance(task, str) and task.count("/") == 2 and isinstance(seed, int):
        return f"{family}/open-{seed}/{task.rpartition('/')[2]}"
    return f"{family}/{conversation.source}/{number:05d}"
