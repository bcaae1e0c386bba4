"""Where the next open subgoal of a task can be met, for the oracle."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from evalharness.envs.babyai.mission import Cell, MissionProgress, cells_of, due_actions, object_cells
from evalharness.envs.babyai.rules import LabelProgress
from evalharness.envs.babyai.world import World


@dataclass(frozen=True)
class Errand:
    """Something to go and do."""

    cells: tuple[Cell, ...]
    """Places to go to, any of them."""
    hands_free: bool
    """Something has to be picked up there."""


def mission_errand(world: World, progress: MissionProgress) -> Errand | None:
    """Where the first open milestone can be met; None when nowhere."""
    simulator = world.simulator
    milestone = progress.wanted[min(progress.remaining)]
    if milestone.kind == "key":
        color = milestone.door.color
        cells = cells_of(simulator, lambda thing: thing.type == "key" and thing.color == color)
        return Errand(tuple(cells), hands_free=True) if cells else None
    if milestone.kind == "unlock":
        return Errand(tuple(cells_of(simulator, lambda thing: thing is milestone.door)), hands_free=False)
    action = due_actions(world)[milestone.clause]
    cells = object_cells(simulator, action)
    if not cells:
        return Errand((world.position,), hands_free=True)  # the object itself is in hand: put it down again
    return Errand(tuple(cells), hands_free=type(action).__name__ == "PickupInstr")


def label_errand(world: World, progress: LabelProgress) -> Errand | None:
    """Where the first open label can be met; None when some open label can no longer be met at all."""
    first: Errand | None = None
    for position in progress.remaining:
        cells: list[Cell] = []
        carried = False
        for patterns in progress.alternatives:
            sight = _sight(patterns[position])
            if sight is not None:
                carried = carried or sight.carried
                cells.extend(_places(world, sight))
        if not cells:
            return None
        first = first or Errand(tuple(cells), hands_free=carried)
    return first


class _Sight(NamedTuple):
    """What a label pattern asks to see or to carry."""

    kind: str
    color: str | None
    shut: bool
    """A closed or locked door: no sentence shuts a door again."""
    carried: bool
    place: tuple[int, int] | None
    """Cells ahead and to the right, where the pattern fixes them beyond standing before the thing."""


_NAME = re.compile(
    r"(red|green|blue|purple|yellow|grey|\*\*) (?:(open|closed|locked|\*\*) )?(door|key|ball|box)"
)
_PLACE = re.compile(
    r"(\d+) steps in front of you and (\d+) steps to your (left|right)|in front of you (\d+) steps"
)


@cache
def _sight(pattern: str) -> _Sight | None:
    match = _NAME.search(pattern)
    if match is None:
        return None
    color, door, kind = match.groups()
    where = _PLACE.search(pattern)
    place = None
    if where and where[4] is None:
        place = (int(where[1]), int(where[2]) * (-1 if where[3] == "left" else 1))
    elif where and where[4] != "1":
        place = (int(where[4]), 0)
    return _Sight(
        kind, None if color == "**" else color, door in ("closed", "locked"), "carrying" in pattern, place
    )


def _places(world: World, sight: _Sight) -> Sequence[Cell]:
    def fits(thing: Any) -> bool:
        return (
            thing.type == sight.kind
            and sight.color in (None, thing.color)
            and not (sight.shut and thing.is_open)
        )

    simulator = world.simulator
    held = simulator.carrying
    if held is not None and fits(held):
        return [world.position]
    cells = cells_of(simulator, fits)
    return _viewpoints(simulator, cells, *sight.place) if sight.place else cells


def _viewpoints(simulator: Any, cells: Sequence[Cell], ahead: int, right: int) -> list[Cell]:
    """Where an agent can stand that has one of the cells at this place of its view."""
    points = []
    for x, y in cells:
        for dx, dy in ((1, 0), (0, 1), (-1, 0), (0, -1)):
            point = (x - ahead * dx + right * dy, y - ahead * dy - right * dx)
            if 0 <= point[0] < simulator.grid.width and 0 <= point[1] < simulator.grid.height:
                thing = simulator.grid.get(*point)
                if thing is None or thing.type == "door":
                    points.append(point)
    return points
