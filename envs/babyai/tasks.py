"""Load the tasks of the suites `agentboard`, `agentgym` and `open`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evalharness.envs.babyai.levels import AGENTGYM_LEVELS, FAMILY, LEVELS, SEEDS
from evalharness.envs.base import InvalidTaskError, Suite, Task
from evalharness.envs.frozen import FROZEN_SEED, read_frozen_tasks
from evalharness.envs.published import folder_of, label_rows

AGENTGYM = "agentgym"
"""Suite of AgentGym's tasks (agentenv-babyai at commit 3ef9235). Suite seed N has AgentGym's tasks 40 N to 40 N +
39."""


def load_tasks(suite: Suite, data: Path | None, seed: int) -> list[Task]:
    """Return all tasks of a suite in order; only `open` and `agentgym` use `seed`, only `agentboard` uses `data`."""
    if suite == "agentboard":
        return _load_published(data)
    if suite == AGENTGYM:
        return [_of_agentgym(index, level, seed) for index, level in enumerate(AGENTGYM_LEVELS)]
    from evalharness.envs.babyai.open.generator import FROZEN, generate

    return list(read_frozen_tasks(FROZEN) if seed == FROZEN_SEED else generate(seed))


def _of_agentgym(index: int, level: str, seed: int) -> Task:
    return Task(
        id=f"{FAMILY}/{AGENTGYM}/{index:03d}",
        family=FAMILY,
        suite=AGENTGYM,
        index=index,
        goal="",  # the simulator makes the goal when it makes the level
        difficulty="hard",
        kind=level,
        labels="simulator",
        subgoals=(),
        payload={"level": level, "seed": seed},
    )


def make_published_goal(mission: str) -> str:
    """Return AgentBoard's goal text: it has `and` instead of `then` and `after you`, so it lacks the required order."""
    return mission.replace("then", "and").replace("after you", "and")


def _load_published(data: Path | None) -> list[Task]:
    folder = folder_of(data, FAMILY, "BabyAI")
    rows = label_rows(folder, "BabyAI")
    cases = [(level, seed) for level in LEVELS for seed in SEEDS]
    if len(rows) != len(cases):
        raise InvalidTaskError(f"{folder / 'test.jsonl'} has {len(rows)} tasks, expected {len(cases)}")
    return [
        _make_published_task(index, level, seed, row, folder / "test.jsonl")
        for index, ((level, seed), row) in enumerate(zip(cases, rows, strict=True))
    ]


def _make_published_task(index: int, level: str, seed: int, row: dict[str, Any], path: Path) -> Task:
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
        goal=make_published_goal(row["goal"]),
        difficulty=row["difficulty"],
        kind=level,
        subgoals=tuple(row["subgoals"]),
        payload=payload,
    )
