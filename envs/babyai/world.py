"""One simulator in play: it carries out sequences of moves and keeps the present view."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from envs.babyai.actions import Moves
from envs.babyai.levels import make_level
from envs.babyai.view import View, look


@dataclass(frozen=True)
class Outcome:
    """What the simulator said while a sequence of moves was carried out."""

    ended: bool
    """The last move ended the mission, with success or failure: all that AgentBoard looks at."""
    succeeded: bool
    """Some move accomplished the mission."""
    failed: bool
    """Some move made the mission fail (a strict level: the wrong door, the wrong object)."""


class World:
    """A level of BabyAI from its first state on."""

    def __init__(self, level: str, seed: int, parameters: Mapping[str, Any] | None = None) -> None:
        self.simulator = make_level(level, seed, parameters)
        self.view: View = look(self.simulator)

    @property
    def mission(self) -> str:
        return str(self.simulator.mission)

    @property
    def direction(self) -> int:
        """The compass direction the agent faces: east, south, west, north (0 to 3)."""
        return int(self.simulator.agent_dir)

    def perform(self, moves: Moves) -> Outcome:
        """Carry out moves until one leaves the view as it was (that one is still made)."""
        ended = succeeded = failed = False
        for move in moves:
            _, reward, ended, _, _ = self.simulator.step(move)
            if ended:
                succeeded, failed = succeeded or reward > 0, failed or reward <= 0
            view = look(self.simulator)
            unchanged = view == self.view
            self.view = view
            if unchanged:
                break
        return Outcome(ended, succeeded, failed)
