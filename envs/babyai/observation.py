"""Describe the agent's view in sentences; the sentences are AgentBoard's."""

from __future__ import annotations

from typing import NamedTuple

from evalharness.envs.babyai.view import BOX, EMPTY, FLOOR, HALF, OWN, SIZE, WALL, View, name_of, type_of

COMPLETED = "\n The task is completed."


class Sighting(NamedTuple):
    """A visible object, except the carried one."""

    cell: int
    """Index of the object's cell in the view."""
    name: str
    """Name of the object, for example `grey ball` or `red locked door`."""


def _scan_order() -> tuple[int, ...]:
    """Return the cells by distance (Manhattan) from the agent; at equal distance, the farthest row first; in a
    row, the leftmost cell first."""
    far_row_first = [SIZE * ahead + i for ahead in reversed(range(SIZE)) for i in range(SIZE)]
    return tuple(
        sorted(
            (index for index in far_row_first if index != OWN),
            key=lambda index: index // SIZE + abs(index % SIZE - HALF),
        )
    )


_SCAN_ORDER = _scan_order()
_WHERE = tuple(
    f"right in front of you {index // SIZE} steps away. "
    if index % SIZE == HALF
    else f"{index // SIZE} steps in front of you and {abs(index % SIZE - HALF)} steps"
    f" to your {'right' if index % SIZE > HALF else 'left'}. "
    for index in range(SIZE * SIZE)
)


def sightings(view: View) -> list[Sighting]:
    """Return the visible objects, nearest first (walls and floor are not objects)."""
    return [Sighting(index, name_of(view[index])) for index in _SCAN_ORDER if type_of(view[index]) > FLOOR]


def describe(view: View) -> str:
    parts: list[str] = []
    count: dict[str, int] = {}
    for index, name in sightings(view):
        count[name] = count.get(name, 0) + 1
        parts.append(f"There is a {name} {count[name]} {_WHERE[index]} ")
    if not parts and WALL not in view:
        return "You cannot see any objects within sight."
    parts.insert(0, "In front of you in this room, you can see several objects: ")
    if WALL in view:
        parts.append("The room has walls around you. ")
    for ahead in range(1, SIZE):
        kind = type_of(view[SIZE * ahead + HALF])
        if kind in (WALL, BOX):
            parts.append(f"You are facing a {'wall' if kind == WALL else 'box'} {ahead} steps away. ")
            break
    carried = view[OWN]
    parts.append(
        "You are not carrying anything." if carried == EMPTY else f"You are carrying a {name_of(carried)}."
    )
    return "".join(parts)
