"""`--engine stock`: TextWorld's own PDDL environment plays the games, with the interface of `World`.

A game takes about 0.8 s to start, and a step 30 to 50 ms. Each instance loads a copy of TextWorld's planner library,
which stays in memory: unloading it crashes the process at its end.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evalharness.base.errors import UserError
from evalharness.envs.alfworld.adapter import ALFWorldEnv
from evalharness.envs.alfworld.world import readable_names


def make(data: Path | None) -> ALFWorldEnv:
    return ALFWorldEnv(data, engine=TextWorldGame)


class TextWorldGame:
    def __init__(self, game: Mapping[str, Any], *, policy: bool = False) -> None:
        """`policy` asks TextWorld's planner for a plan at every step, as ALFWorld's training set-up does."""
        if sys.version_info >= (3, 13):
            # Its grammar evaluates names put into locals(), which PEP 667 prevents.
            raise UserError("TextWorld 1.7 plays no PDDL game on Python 3.13; leave --engine stock out")
        from textworld.core import EnvInfos
        from textworld.envs import PddlEnv

        self._env: Any = PddlEnv(EnvInfos(won=True, admissible_commands=True, policy_commands=policy))
        self._env.load(dict(game))
        entities = self._env._entity_infos
        names = readable_names(info.id for info in entities.values())
        for info in entities.values():
            info.name = names[info.id]
        self._state: Any = None

    def reset(self) -> str:
        self._state = self._env.reset()
        return str(self._state["feedback"])

    def step(self, command: str) -> str:
        self._state, _, _ = self._env.step(command)
        return str(self._state["feedback"])

    @property
    def won(self) -> bool:
        return bool(self._state["won"])

    def commands(self) -> list[str]:
        return list(self._state["admissible_commands"])
