"""List the valid actions, which are sentences, and translate each of them to a sequence of minigrid's moves.

AgentBoard computes the valid actions from the view at every step. We reproduce two of its unexpected properties. First,
`pickup` and `go to` number only the reachable objects of a name, so an object may have another number than in the
observation. Second, routes are planned as if every door were open.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from evalharness.envs.babyai.observation import sightings
from evalharness.envs.babyai.view import (
    BALL,
    BOX,
    DOOR,
    EMPTY,
    HALF,
    KEY,
    LOCKED,
    OPEN,
    OWN,
    SIZE,
    WALL,
    View,
    color_of,
    state_of,
    type_of,
)

LEFT, RIGHT, FORWARD, PICKUP, DROP, TOGGLE = range(6)
"""Numbers of minigrid's actions."""

Moves = tuple[int, ...]

ACTIONS = {
    "turn_left": "turn left",
    "turn_right": "turn right",
    "move_forward": "move forward",
    "go_to": "go to {object}",
    "pickup": "pickup {object}",
    "drop": "drop",
    "toggle": "toggle",
    "toggle_and_go_through": "toggle and go through {door}",
    "go_through": "go through {door}",
    "check": "check available actions",
}
"""Action name -> template, in the order of the prompt's list."""

CHECK = ACTIONS["check"]
NO_CHANGE = "No change in state."
LISTED = "You can take the following actions: "
UNKNOWN = "The action is not recognized. Please check valid actions."

_FRONT = SIZE + HALF
_SOLID = frozenset({WALL, BOX, BALL, KEY, 9})  # 9 is lava, which no route crosses

# Routes are planned on a map of 9 x 9 cells: the view of 7 x 7 cells with a margin of one cell. A pose of the agent is
# the number 4 * cell + heading. The headings are 0 (the direction of the view), 1 (right), 2 (back) and 3 (left).
_SPAN = SIZE + 2
_AHEAD = (_SPAN, 1, -_SPAN, -1)  # heading -> difference between the cell in front and the agent's cell
_START = 4 * (_SPAN + 1 + HALF)
_UNREACHED = 1 << 30
_ON_MAP = tuple(_SPAN * (index // SIZE + 1) + index % SIZE + 1 for index in range(SIZE * SIZE))


def _margin(direction: int) -> frozenset[int]:
    """Return the margin cells that routes may not use. `direction`: 0 to 3 for east, south, west, north.

    AgentBoard's planner may leave the view by one cell to the west and to the north. The agent's direction decides
    which sides of the view are west and north. We inferred this from transcripts: with any other margin, some
    recorded routes cannot be reproduced.
    """
    west_or_north = {0: ("near", "left"), 1: ("near", "right"), 2: ("far", "right"), 3: ("far", "left")}
    sides = {
        "near": set(range(_SPAN)),
        "far": set(range(_SPAN * (_SPAN - 1), _SPAN * _SPAN)),
        "left": set(range(0, _SPAN * _SPAN, _SPAN)),
        "right": set(range(_SPAN - 1, _SPAN * _SPAN, _SPAN)),
    }
    return frozenset().union(
        *(cells for side, cells in sides.items() if side not in west_or_north[direction])
    )


_MARGINS = tuple(_margin(direction) for direction in range(4))


_POSES = range(4 * _SPAN * _SPAN)
_FACED = tuple(min(max(pose // 4 + _AHEAD[pose % 4], -1), _SPAN * _SPAN) for pose in _POSES)
_LEFT = tuple(pose - pose % 4 + (pose + 3) % 4 for pose in _POSES)
_RIGHT = tuple(pose - pose % 4 + (pose + 1) % 4 for pose in _POSES)


class Routes:
    """Shortest routes from the agent to the cells of the view.

    The search is breadth-first, with moves in the order forward, left, right. If several shortest routes lead to a
    pose, the last one found is kept. Unseen cells count as free, and so do doors, even closed doors.
    """

    def __init__(self, view: View, direction: int, face: list[int], stand: list[int]) -> None:
        closed = bytearray(_SPAN * _SPAN + 1)  # the last entry stands for every cell outside the map
        closed[-1] = 1
        for cell in _MARGINS[direction]:
            closed[cell] = 1
        for index, cell in enumerate(view):
            if cell > EMPTY and cell & 15 in _SOLID:
                closed[_ON_MAP[index]] = 1
        wanted_before = {_ON_MAP[index] for index in face}
        wanted_on = {_ON_MAP[index] for index in stand}
        self._before = before = [-1] * len(_POSES)  # pose -> previous pose on the route to it
        self._facing: dict[int, int] = {}
        self._standing: dict[int, int] = {}
        depth = [_UNREACHED] * len(_POSES)
        depth[_START] = 0
        queue = [_START]
        for pose in queue:
            if not wanted_before and not wanted_on:
                break  # all wanted routes are known
            faced = _FACED[pose]
            if faced in wanted_before:
                wanted_before.remove(faced)
                self._facing[faced] = pose
            if pose >> 2 in wanted_on:
                wanted_on.remove(pose >> 2)
                self._standing[pose >> 2] = pose
            following = depth[pose] + 1
            ahead = pose if closed[faced] else 4 * faced + (pose & 3)
            for reached in (ahead, _LEFT[pose], _RIGHT[pose]):
                if depth[reached] >= following:
                    queue.append(reached)
                    depth[reached] = following
                    before[reached] = pose

    def _moves_to(self, pose: int | None) -> Moves | None:
        if pose is None:
            return None
        moves: list[int] = []
        while pose != _START:
            before = self._before[pose]
            moves.append(LEFT if pose == _LEFT[before] else RIGHT if pose == _RIGHT[before] else FORWARD)
            pose = before
        return tuple(reversed(moves))

    def to_face(self, index: int) -> Moves | None:
        """Return moves that put the agent in front of a cell of the view, facing it; None if there is no route."""
        return self._moves_to(self._facing.get(_ON_MAP[index]))

    def onto(self, index: int) -> Moves | None:
        """Return moves that put the agent on a cell of the view; None if there is no route."""
        return self._moves_to(self._standing.get(_ON_MAP[index]))


@dataclass
class Actions:
    """The valid actions for a view, and the answers to some invalid actions."""

    moves: dict[str, Moves] = field(default_factory=dict)
    """Valid action -> its moves in minigrid, in AgentBoard's order."""
    refusals: dict[str, str] = field(default_factory=dict)
    """Invalid action -> AgentBoard's explanation, for example that no path leads to the object."""


def available(view: View, direction: int) -> Actions:
    """Return all valid actions for a view. `direction`: 0 to 3 for east, south, west, north.

    `check available actions` has no moves, and is the last action, as in AgentBoard.
    """
    actions = Actions()
    moves, refusals = actions.moves, actions.refusals
    things = sightings(view)
    open_doors = [
        thing.cell
        for thing in things
        if type_of(view[thing.cell]) == DOOR and state_of(view[thing.cell]) == OPEN
    ]
    routes = Routes(view, direction, [thing.cell for thing in things], open_doors)
    faces = [routes.to_face(thing.cell) for thing in things]
    carried, front = view[OWN], type_of(view[_FRONT])

    moves["turn left"] = (LEFT,)
    moves["turn right"] = (RIGHT,)
    if front in (WALL, BOX):
        refusals["move forward"] = "There is a barrier in front of you, you can't move forward."
    else:
        moves["move forward"] = (FORWARD,)

    if carried == EMPTY:
        reached: dict[str, int] = {}
        for thing, path in zip(things, faces, strict=True):
            if type_of(view[thing.cell]) not in (KEY, BALL, BOX):
                continue
            number = reached.get(thing.name, 0) + 1
            if path is None:
                what = f"{thing.name} {number}"
                refusals[f"pickup {what}"] = f"You cannot pickup {what}, as there is no path leading to it."
            else:
                reached[thing.name] = number
                moves[f"pickup {thing.name} {number}"] = (*path, PICKUP)
        refusals["drop"] = "You cannot drop the object, as you are not carrying anything."
    elif front in _SOLID:
        refusals["drop"] = "You cannot drop the object, as there is already an object in front of you."
    else:
        moves["drop"] = (DROP,)

    seen: dict[str, int] = {}
    for thing, path in zip(things, faces, strict=True):
        cell = view[thing.cell]
        if type_of(cell) != DOOR:
            continue
        seen[thing.name] = seen.get(thing.name, 0) + 1
        _add_door(actions, cell, f"{thing.name} {seen[thing.name]}", thing.cell, carried, path, routes)

    reached = {}
    for thing, path in zip(things, faces, strict=True):
        number = reached.get(thing.name, 0) + 1
        what = f"{thing.name} {number}"
        if path is None:
            refusals[f"go to {what}"] = f"You cannot go to {what}, as there is no path leading to it."
        else:
            reached[thing.name] = number
            moves[f"go to {what}"] = path
    moves[CHECK] = ()
    return actions


def _add_door(
    actions: Actions, cell: int, door: str, index: int, carried: int, path: Moves | None, routes: Routes
) -> None:
    """Add the valid actions with one visible door, and the answers to invalid actions with it."""
    no_path = "as there is no path leading to it."
    through, toggle_through = f"go through {door}", f"toggle and go through {door}"
    if state_of(cell) == OPEN:
        onto = routes.onto(index)
        if onto is None:
            actions.refusals[through] = f"You cannot {through}, {no_path}"
        else:
            actions.moves[through] = onto
        return
    actions.refusals[through] = f"You cannot {through}, as it is closed. You should toggle it first."
    if state_of(cell) == LOCKED:
        if type_of(carried) != KEY:
            actions.refusals[toggle_through] = f"You cannot {toggle_through}, as you are not carrying a key."
            return
        if color_of(carried) != color_of(cell):
            actions.refusals[toggle_through] = (
                f"You cannot {toggle_through}, as the color of the key you are carrying"
                " does not match the color of door."
            )
            return
    if path is None:
        actions.refusals[toggle_through] = f"You cannot {toggle_through}, {no_path}"
        return
    actions.moves[toggle_through] = (*path, TOGGLE, FORWARD)
    if index == _FRONT:
        actions.moves["toggle"] = (TOGGLE,)


def listing(actions: Actions) -> str:
    """Return the answer to `check available actions`."""
    return LISTED + ", ".join(actions.moves)
