"""Compute digests and names that identify evaluated games, so that these games can be excluded from training."""

from __future__ import annotations

import json

from evalharness.envs.alfworld.games import read_evaluated_games
from evalharness.envs.alfworld.open.households import household_of
from evalharness.envs.base import Task, content_form, digest


def forms(task: Task) -> list[str]:
    if "household" not in task.payload:
        return [*content_form(task), _game_form(str(task.payload.get("game")))]
    return [digest(json.dumps(household_of(task).shape()))]


def _game_form(name: str) -> str:
    """Return a digest of the game's name, because a game has the same name in all releases of ALFWorld."""
    return digest(f"alfworld game {name}")


def published_forms() -> list[str]:
    return [_game_form(name) for names in read_evaluated_games().values() for name in names]


def evaluated_names() -> list[str]:
    trials = {name.split("/")[1] for names in read_evaluated_games().values() for name in names}
    return ["valid_unseen/", "valid_seen/", *sorted(trials)]
