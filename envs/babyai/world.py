"""Carry out sequences of moves in a minigrid simulator, and restore its earlier states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from evalharness.envs.babyai.actions import Moves
from evalharness.envs.babyai.levels import make_level
from evalharness.envs.babyai.view import View, look


def clauses(instruction: Any) -> list[Any]:
    """Return minigrid's object for the whole mission, and its objects for all parts of the mission."""
    parts = [instruction]
    for clause in parts:
        parts.extend(getattr(clause, part) for part in ("instr_a", "instr_b") if hasattr(clause, part))
    return parts


@dataclass(frozen=True)
class MovesResult:
    ended: bool
    """Whether the last move completed or failed the mission. AgentBoard ignores the other moves."""
    succeeded: bool
    """Whether one of the moves completed the mission."""
    failed: bool
    """Whether one of the moves failed the mission (in a strict level: the wrong door or object)."""


class WorldState(NamedTuple):
    """The state of a level. Two states of one `World` are equal if all objects and the agent are in the same state."""

    things: tuple[Any, ...]
    """Cells of the grid: minigrid objects by identity, None for empty cells."""
    doors: tuple[tuple[bool, bool], ...]
    """(open, locked) of each door."""
    position: tuple[int, int]
    direction: int
    carrying: Any
    mission: tuple[Any, ...]
    """What minigrid has stored to verify the mission: object positions, and the parts that are done."""
    view: View


class World:
    def __init__(self, level: str, seed: int, parameters: Mapping[str, Any] | None = None) -> None:
        self.simulator = make_level(level, seed, parameters)
        self._clauses = clauses(self.simulator.instrs)
        self.view: View = look(self.simulator)
        self._doors = [
            thing for thing in self.simulator.grid.grid if thing is not None and thing.type == "door"
        ]

    @property
    def mission(self) -> str:
        return str(self.simulator.mission)

    @property
    def position(self) -> tuple[int, int]:
        x, y = self.simulator.agent_pos
        return int(x), int(y)

    @property
    def direction(self) -> int:
        """Return the agent's compass direction: east, south, west, north (0 to 3)."""
        return int(self.simulator.agent_dir)

    @property
    def reward(self) -> float:
        """minigrid's reward for completing the mission now: it decreases from 1 to 0.1 at minigrid's step limit."""
        return 1 - 0.9 * float(self.simulator.step_count / self.simulator.max_steps)

    def perform(self, moves: Moves, *, stop_at_end: bool = False) -> MovesResult:
        """Carry out the moves; stop after the first move that does not change the view.

        `stop_at_end`: also stop when the mission is completed or failed.
        """
        ended = succeeded = failed = False
        for move in moves:
            _, reward, ended, _, _ = self.simulator.step(move)
            if ended:
                succeeded, failed = succeeded or reward > 0, failed or reward <= 0
            view = look(self.simulator)
            unchanged = view == self.view
            self.view = view
            if unchanged or (stop_at_end and ended):
                break
        return MovesResult(ended, succeeded, failed)

    def state(self) -> WorldState:
        simulator = self.simulator
        return WorldState(
            things=tuple(simulator.grid.grid),
            doors=tuple((door.is_open, door.is_locked) for door in self._doors),
            position=self.position,
            direction=self.direction,
            carrying=simulator.carrying,
            mission=tuple(_get_memory(clause) for clause in self._clauses),
            view=self.view,
        )

    def restore(self, state: WorldState) -> None:
        simulator = self.simulator
        simulator.grid.grid[:] = state.things
        for door, (is_open, is_locked) in zip(self._doors, state.doors, strict=True):
            door.is_open, door.is_locked = is_open, is_locked
        simulator.agent_pos = state.position
        simulator.agent_dir = state.direction
        simulator.carrying = state.carrying
        for clause, memory in zip(self._clauses, state.mission, strict=True):
            _set_memory(clause, memory)
        self.view = state.view


def _get_memory(clause: Any) -> tuple[Any, ...]:
    """Return what minigrid has stored to verify this part of the mission."""
    if hasattr(clause, "desc"):
        return (tuple(clause.desc.obj_poss), getattr(clause, "preCarrying", None))
    return (clause.a_done, clause.b_done)


def _set_memory(clause: Any, memory: tuple[Any, ...]) -> None:
    if hasattr(clause, "desc"):
        clause.desc.obj_poss, clause.preCarrying = list(memory[0]), memory[1]
    else:
        clause.a_done, clause.b_done = memory
