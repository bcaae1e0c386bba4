"""The task tables of the suites."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from evalharness.base.reading import read_text
from evalharness.envs.babyai.levels import AGENTGYM_LEVELS, FAMILY, LEVELS, SEEDS
from evalharness.envs.base import InvalidTaskError, MissingDataError, Suite, Task

AGENTGYM = "agentgym"
"""AgentGym's tasks (agentenv-babyai at commit 3ef9235): of suite seed N those of its numbers 40 N to 40 N + 39."""


def load_tasks(suite: Suite, data: Path | None, seed: int) -> list[Task]:
    """All tasks of a suite in order; `seed` matters to `open` and `agentgym`, `data` to `agentboard`."""
    if suite == "agentboard":
        return _published(data)
    if suite == AGENTGYM:
        return [_of_agentgym(index, level, seed) for index, level in enumerate(AGENTGYM_LEVELS)]
    from evalharness.envs.babyai.generator import open_tasks

    return open_tasks(seed)


def _label_file(data: Path | None) -> Path:
    if data is None:
        raise MissingDataError("the published BabyAI tasks need the benchmark's labels")
    path = data / "agentboard" / FAMILY / "test.jsonl"
    if not path.is_file():
        raise MissingDataError(f"BabyAI labels are not at {path}")
    return path


def _of_agentgym(index: int, level: str, seed: int) -> Task:
    return Task(
        id=f"{FAMILY}/{AGENTGYM}/{index:03d}",
        family=FAMILY,
        suite=AGENTGYM,
        index=index,
        goal="",  # the mission, known when the level is made
        difficulty="hard",
        kind=level,
        labels="simulator",
        subgoals=(),
        payload={"level": level, "seed": seed},
    )


def published_goal(mission: str) -> str:
    """AgentBoard's goal text: the words that give the order of two instructions are lost in it."""
    return mission.replace("then", "and").replace("after you", "and")


def _published(data: Path | None) -> list[Task]:
    path = _label_file(data)
    lines = [line for line in read_text(path).splitlines() if line.strip()]
    cases = [(level, seed) for level in LEVELS for seed in SEEDS]
    if len(lines) != len(cases):
        raise InvalidTaskError(f"{path} has {len(lines)} tasks, expected {len(cases)}")
    return [
        _published_task(index, level, seed, json.loads(line), path)
        for index, ((level, seed), line) in enumerate(zip(cases, lines, strict=True))
    ]


def _published_task(index: int, level: str, seed: int, row: dict[str, Any], path: Path) -> Task:
    if row["additional_info"]["subtask"] != f"BabyAI-{level}-v0":
        raise InvalidTaskError(f"{path}, row {index}: expected level {level}")
    alternatives = [row[key] for key in sorted(row) if key.startswith("subgoals_")]
    payload: dict[str, Any] = {"level": level, "seed": seed}
    if alternatives:
        payload["alternative_subgoals"] = alternatives
    return Task(
        id=f"{FAMILY}/agentboard/{index:03d}",
        family=FAMILY,
        suite="agentboard",
        index=index,
        goal=published_goal(row["goal"]),
        difficulty=row["difficulty"],
        kind=level,
        subgoals=tuple(row["subgoals"]),
        payload=payload,
    )
