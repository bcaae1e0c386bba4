"""Play the games in TextWorld's own PDDL environment (`--engine stock`), with the interface of `World`.

The start of a game takes about 0.8 s, and a step 30 to 50 ms. Each game loads another copy of TextWorld's planner
library, and no copy is unloaded, because the process would then crash at its end.
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
        """Load a game. `policy`: compute a plan with TextWorld's planner at every step (ALFWorld's training does)."""
        if sys.version_info >= (3, 13):
            # TextWorld evaluates a grammar's names by writing to locals(), which Python 3.13 ignores (PEP 667).
            raise UserError("TextWorld 1.7 cannot play PDDL games on Python 3.13; leave --engine stock out")
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
