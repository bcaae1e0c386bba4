"""Load the tasks of all suites."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evalharness.envs.base import InvalidTaskError, Suite, Task
from evalharness.envs.frozen import FROZEN_SEED, read_frozen_tasks
from evalharness.envs.published import FIX, folder_of, label_rows
from evalharness.envs.sciworld.kinds import (
    AGENTGYM,
    EXPECTED,
    FAMILY,
    NOT_IN_AGENTGYM,
    SIMPLIFICATIONS,
    VARIATIONS,
)


def load_tasks(suite: Suite, data: Path | None, seed: int) -> list[Task]:
    """Return all tasks of a suite in order; only `open` and `unwrapped` use `seed`, only `agentboard` uses `data`."""
    if suite == "agentboard":
        return _load_published(data)
    if suite in EXPECTED:
        return list_unwrapped_tasks(suite, seed)
    from evalharness.envs.sciworld.open.generator import FROZEN, generate

    return list(read_frozen_tasks(FROZEN) if seed == FROZEN_SEED else generate(seed))


def _load_published(data: Path | None) -> list[Task]:
    rows = label_rows(folder_of(data, "scienceworld", "ScienceWorld"), "ScienceWorld")
    return [_from_label(index, row) for index, row in enumerate(rows)]


def _from_label(index: int, row: dict[str, Any]) -> Task:
    try:
        world = row["additional_info"]
        if not row["subgoals"]:
            raise ValueError("no subgoals")
        return Task(
            id=f"{FAMILY}/agentboard/{index:03d}",
            family=FAMILY,
            suite="agentboard",
            index=index,
            goal=str(row["goal"]),
            difficulty="hard" if row["difficulty"] == "hard" else "easy",
            kind=str(world["env_name"]),
            subgoals=tuple(str(subgoal) for subgoal in row["subgoals"]),
            payload={
                "task": str(world["env_name"]),
                "variation": int(world["var"]),
                "simplifications": SIMPLIFICATIONS,
            },
        )
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidTaskError(f"ScienceWorld's label {index + 1} is invalid: {error!r}; {FIX}") from error


def list_unwrapped_tasks(suite: str, seed: int) -> list[Task]:
    """Return the tasks of the suite `unwrapped` or `agentgym`. `seed`: index of the test variation in `unwrapped`."""
    if suite == AGENTGYM:
        kinds = [kind for kind in VARIATIONS if not kind.startswith(NOT_IN_AGENTGYM)]
        cases = [(kind, number) for kind in kinds for number in range(VARIATIONS[kind][0])]
    else:
        cases = [
            (kind, first + seed % (count - first)) for kind, (count, first) in sorted(VARIATIONS.items())
        ]
    return [
        Task(
            id=f"{FAMILY}/{suite}/{index:03d}",
            family=FAMILY,
            suite=suite,
            index=index,
            goal="",  # the simulator gives the goal when it loads the task
            difficulty="hard",
            kind=kind,
            labels="simulator",
            subgoals=(),
            payload={"task": kind, "variation": variation, "simplifications": ""},
        )
        for index, (kind, variation) in enumerate(cases)
    ]
