"""A BabyAI level from above: all objects, the agent, and its visible cells."""

from __future__ import annotations

from itertools import count
from typing import Any

from evalharness.envs.babyai.adapter import BabyAIEnv
from evalharness.envs.babyai.view import VECTORS
from evalharness.envs.base import TextEnv
from evalharness.envs.picture import INK, PAPER, circle, line, polygon, rect, svg, text

Cell = tuple[int, int]
"""(column, row)"""
_CELL = 16
_COLORS = {
    "red": "#d1242f", "green": "#2da44e", "blue": "#0969da", "purple": "#8250df", "yellow": "#d4a72c",
    "grey": "#6e7781",
}  # fmt: skip
_WALL, _UNSEEN = "#57606a", "#eaeef2"


def picture(environment: TextEnv) -> str:
    assert isinstance(environment, BabyAIEnv)
    simulator = environment.world.simulator
    width, height = simulator.grid.width, simulator.grid.height
    seen = _find_visible(simulator)
    things = {
        (x, y): t for y in range(height) for x in range(width) if (t := simulator.grid.get(x, y)) is not None
    }
    drawn = [rect(0, 0, width * _CELL, height * _CELL, _UNSEEN)]
    drawn += _fill_cells(seen, PAPER)
    drawn += _fill_cells({cell for cell, thing in things.items() if thing.type == "wall"}, _WALL)
    for (x, y), thing in things.items():
        drawn += _thing(thing, x * _CELL, y * _CELL)
    drawn.append(_agent(environment.world.position, environment.world.direction))
    carried = simulator.carrying
    said = "carries nothing" if carried is None else f"carries: {carried.color} {carried.type}"
    drawn.append(text(4, height * _CELL + 14, said, anchor="start"))
    return svg(max(width * _CELL, 130), height * _CELL + 20, drawn)


def _find_visible(simulator: Any) -> set[Cell]:
    _, visible = simulator.gen_obs_grid()
    size = simulator.agent_view_size
    cells = set()
    for y in range(simulator.grid.height):
        for x in range(simulator.grid.width):
            across, ahead = simulator.get_view_coords(x, y)
            if 0 <= across < size and 0 <= ahead < size and visible[across, ahead]:
                cells.add((x, y))
    return cells


def _fill_cells(cells: set[Cell], color: str) -> list[str]:
    """Draw adjacent cells of a row as one rectangle."""
    drawn = []
    for x, y in sorted(cells):
        if (x - 1, y) not in cells:
            length = next(n for n in count(1) if (x + n, y) not in cells)
            drawn.append(rect(x * _CELL, y * _CELL, length * _CELL, _CELL, color))
    return drawn


def _thing(thing: Any, x: float, y: float) -> list[str]:
    color, middle = _COLORS.get(thing.color, INK), (x + _CELL / 2, y + _CELL / 2)
    match thing.type:
        case "wall":
            return []
        case "door":
            frame = rect(x + 1, y + 1, _CELL - 2, _CELL - 2, PAPER if thing.is_open else color, color)
            lock = [circle(*middle, 2.5, PAPER)] if thing.is_locked else []
            return [frame, *lock]
        case "ball":
            return [circle(*middle, _CELL * 0.34, color)]
        case "box":
            return [
                rect(x + 3, y + 3, _CELL - 6, _CELL - 6, PAPER, color),
                line((x + 3, middle[1]), (x + 13, middle[1]), color),
            ]
        case "key":
            return [
                circle(middle[0], y + 5, 3, PAPER, color),
                line((middle[0], y + 8), (middle[0], y + 14), color, 2),
            ]
        case _:
            return [rect(x + 4, y + 4, _CELL - 8, _CELL - 8, color)]


def _agent(cell: Cell, direction: int) -> str:
    """Draw a triangle that points east, south, west or north (0 to 3)."""
    right, down = VECTORS[direction]
    middle_x, middle_y, half = (cell[0] + 0.5) * _CELL, (cell[1] + 0.5) * _CELL, _CELL * 0.42
    corners = [
        (middle_x + right * half, middle_y + down * half),
        (middle_x - right * half - down * half, middle_y - down * half + right * half),
        (middle_x - right * half + down * half, middle_y - down * half - right * half),
    ]
    return polygon(corners, "#cf222e", INK)
