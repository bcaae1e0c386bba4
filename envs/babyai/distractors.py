"""Objects and rooms that a mission does not need, put into a level that is made already: its mission stays.

An object is put where it stands in nobody's way. None is what the mission describes, and no key fits a locked door. A
room is joined at the east end of a row of rooms, behind a door that the mission does not describe.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from evalharness.envs.babyai.view import VECTORS
from evalharness.envs.base import distractor_rooms

Cell = tuple[int, int]


class NoRoomError(Exception):
    """The level has no place for so many, or its mission speaks of everything that could be added."""


def scatter(simulator: Any, descriptions: list[Any], count: int, random: Random) -> None:
    """Add to a level that was just reset. `descriptions`: of all clauses of its mission. Raises NoRoomError."""
    from minigrid.core.constants import COLOR_NAMES
    from minigrid.core.world_object import Ball, Box, Door, Key

    locked = {
        cell.color
        for cell in simulator.grid.grid
        if cell is not None and cell.type == "door" and cell.is_locked
    }

    def meant(thing: Any) -> bool:
        return any(
            each.type in (None, thing.type) and each.color in (None, thing.color) for each in descriptions
        )

    doors = [color for color in COLOR_NAMES if not meant(Door(color))]
    if doors:
        for _ in range(distractor_rooms(count)):
            _add_room(simulator, Door(random.choice(doors)), random)
    things = [
        (kind, color)
        for kind in (Ball, Box, Key)
        for color in COLOR_NAMES
        if not meant(kind(color)) and not (kind is Key and color in locked)
    ]
    for _ in range(count):
        spots = list(_out_of_the_way(simulator))
        if not things or not spots:
            raise NoRoomError
        kind, color = random.choice(things)
        thing, spot = kind(color), random.choice(spots)
        simulator.grid.set(*spot, thing)
        thing.init_pos = thing.cur_pos = spot


def _out_of_the_way(simulator: Any) -> Iterator[Cell]:
    """Free cells beside which nothing but wall or free cells are, the agent's own not among them."""
    grid, agent = simulator.grid, tuple(map(int, simulator.agent_pos))

    def is_free(x: int, y: int) -> bool:
        return grid.get(x, y) is None and (x, y) != agent

    for y in range(1, grid.height - 1):
        for x in range(1, grid.width - 1):
            around = [(x + dx, y + dy) for dx, dy in VECTORS]
            walls = [cell for cell in around if getattr(grid.get(*cell), "type", "") == "wall"]
            if is_free(x, y) and len(walls) < 3 and all(cell in walls or is_free(*cell) for cell in around):
                yield x, y


def _add_room(simulator: Any, door: Any, random: Random) -> None:
    """East of the last room of one row, through a door in that room's wall."""
    from minigrid.core.grid import Grid
    from minigrid.core.roomgrid import Room
    from minigrid.core.world_object import Wall

    old, step = simulator.grid, simulator.room_size - 1
    rows = simulator.room_grid
    row = min(range(len(rows)), key=lambda number: (len(rows[number]), number))
    last = rows[row][-1]
    room = Room((last.top[0] + step, last.top[1]), last.size)
    if (width := room.top[0] + room.size[0]) > old.width:
        grid = Grid(width, old.height)
        for y in range(old.height):
            for x in range(width):
                grid.set(x, y, old.get(x, y) if x < old.width else Wall())
        simulator.grid, simulator.width = grid, width
        simulator.num_cols = max(len(each) for each in rows) + 1
    for x in range(room.top[0] + 1, room.top[0] + step):
        for y in range(room.top[1] + 1, room.top[1] + step):
            simulator.grid.set(x, y, None)
    x, inside = room.top[0], range(room.top[1] + 1, room.top[1] + step)
    free = [y for y in inside if getattr(simulator.grid.get(x - 1, y), "type", "") != "door"]
    y = random.choice([each for each in free if simulator.grid.get(x - 1, each) is None] or free)
    simulator.grid.set(x, y, door)
    door.cur_pos = (x, y)
    room.doors[2], last.doors[0] = door, door
    room.neighbors[2], last.neighbors[0] = last, room
    rows[row].append(room)
