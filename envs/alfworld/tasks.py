"""Load the tasks of all suites: the 134 games of AgentBoard, ALFWorld's own splits, and generated households."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

from evalharness.envs.alfworld.games import GAME_NAME, KINDS, SPLITS, load_split
from evalharness.envs.base import InvalidTaskError, MissingDataError, Suite, Task
from evalharness.envs.published import FIX, folder_of, label_rows

PUBLISHED_TASKS = 134
UNWRAPPED = "unwrapped"
"""Suite of AgentBoard's games without AgentBoard's rules: the game's PDDL goal alone decides on success."""
OWN_WORDS = frozenset({UNWRAPPED, *SPLITS})
"""Suites without AgentBoard's rules: its corrections of actions, its help action and its labels."""


def load_tasks(suite: Suite, data: Path | None, seed: int) -> list[Task]:
    """Return all tasks of a suite in order; only `open` uses `seed`, only the other suites use `data`."""
    if suite in ("agentboard", UNWRAPPED):
        return [make_unwrapped(task) if suite == UNWRAPPED else task for task in _load_published(data)]
    if suite in SPLITS:
        return load_split(suite, data)
    from evalharness.envs.alfworld.open.generator import generate

    return list(generate(seed))


def make_unwrapped(task: Task) -> Task:
    """Return the task of the suite `UNWRAPPED` that has the same game. It has no labels."""
    number = task.id.rpartition("/")[2]
    return replace(
        task, id=f"alfworld/{UNWRAPPED}/{number}", suite=UNWRAPPED, labels="simulator", subgoals=(),
    )  # fmt: skip


def game_path(data: Path | None, name: str) -> Path:
    """Return the game file of a published task; `name` is `<task folder>/<trial folder>`."""
    if not GAME_NAME.fullmatch(name):
        raise InvalidTaskError(f"not the name of an ALFWorld game: {name!r}")
    return _folder(data) / "json_2.1.1" / "valid_unseen" / name / "game.tw-pddl"


def read_game(data: Path | None, name: str) -> bytes:
    path = game_path(data, name)
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise MissingDataError(f"ALFWorld game {name} is not in {path.parent}") from None


def sha256(game: bytes) -> str:
    return hashlib.sha256(game).hexdigest()


def _folder(data: Path | None) -> Path:
    return folder_of(data, "alfworld", "ALFWorld")


def _load_published(data: Path | None) -> list[Task]:
    folder = _folder(data)
    rows = label_rows(folder, "ALFWorld")
    rows.sort(key=lambda row: int(row["id"]))
    if [row["id"] for row in rows] != list(range(PUBLISHED_TASKS)):
        raise InvalidTaskError(
            f"{folder / 'test.jsonl'} must have the labels 0 to {PUBLISHED_TASKS - 1}; {FIX}"
        )
    return [_task(data, row) for row in rows]


def _task(data: Path | None, row: dict[str, Any]) -> Task:
    name = row["additional_info"]["description"]
    game = read_game(data, name)
    task_type, object_type, _, target_type, _ = name.split("/")[0].split("-")
    return Task(
        id=f"alfworld/agentboard/{row['id']:03d}",
        family="alfworld",
        suite="agentboard",
        index=row["id"],
        goal=row["goal"],
        difficulty=row["difficulty"],
        kind=KINDS[task_type],
        labels="official",
        subgoals=tuple(row["subgoals"]),
        payload={
            "game": name,
            "sha256": sha256(game),
            "object": object_type.lower(),
            "target": target_type.lower(),
        },
    )
