"""A blocks world player without privileged information: always to the table, then built from the bottom.

The lowest block of each of the goal's towers must lie on the table; then the pairs come from the bottom up. What lies
on a block that is needed goes to the table; a held block goes where the goal wants it when that is next. Every decision
follows from the goal and the last observation, which is the whole state.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from evalharness.envs.pddl.carrying import Onlooker, decided
from evalharness.envs.teaching import Decision

TABLE = "the table"
_ON = re.compile(r"\b(b\d+) is on (b\d+|the table)")
_HELD = re.compile(r"holding (b\d+)")


class Blocks(NamedTuple):
    """What an observation says."""

    on: dict[str, str]
    """Block -> the block under it, or the table."""
    held: str | None


def read_blocks(observation: str) -> Blocks:
    text = observation.lower()
    held = _HELD.search(text)
    return Blocks(dict(_ON.findall(text)), held[1] if held else None)


def from_the_bottom(subgoals: Sequence[str]) -> dict[str, str]:
    """Block -> what it must be on, lower ones first; the lowest of a tower on the table."""
    wanted = {block: under for text in subgoals for block, under in _ON.findall(text.lower())}
    wanted |= {under: TABLE for under in wanted.values() if under != TABLE and under not in wanted}

    def height(block: str) -> int:
        return 1 + height(wanted[block]) if block in wanted else 0

    return dict(sorted(wanted.items(), key=lambda pair: height(pair[0])))


def _above(on: Mapping[str, str], block: str) -> str | None:
    return next((upper for upper, under in on.items() if under == block), None)


def _top(on: Mapping[str, str], block: str) -> str:
    while (upper := _above(on, block)) is not None:
        block = upper
    return block


def decide_block(wanted: Mapping[str, str], blocks: Blocks) -> Decision | None:
    """None when every pair of the goal holds."""
    on, held = blocks.on, blocks.held
    said = []
    unmet: tuple[str, str] | None = None
    for block, under in wanted.items():
        unmet = None if on.get(block) == under else (block, under)
        place = f"is on {on[block]}" if block in on else "is held"
        said.append(f"{block} to {under}, {place}: {'yes' if unmet is None else 'no'}.")
        if unmet is not None:
            break
    if held is not None:
        said.append(f"I hold {held}.")
        if unmet is not None and unmet[0] == held and unmet[1] != TABLE and _above(on, unmet[1]) is None:
            return decided(f"Stack {held} on {unmet[1]}.", "stack", said, f"{unmet[1]} is clear.")
        return decided(f"Putdown {held}.", "put on the table", said, "It goes to the table.")
    if unmet is None:
        return None
    block, under = unmet
    for needed in unmet:
        if needed != TABLE and (upper := _above(on, needed)) is not None:
            top = _top(on, upper)
            why = f"{upper} is on {needed}." + (f" The top is {top}." if top != upper else "")
            return decided(
                f"Unstack {top} from {on[top]}.", "clear the way", said, f"{why} I take {top} off."
            )
    said.append(f"{block} is clear." if under == TABLE else f"{block} is clear, {under} is clear.")
    if on[block] == TABLE:
        return decided(f"Pickup {block}.", "pick up", said, f"I take {block} from the table.")
    return decided(f"Unstack {block} from {on[block]}.", "unstack", said, f"I take {block} off {on[block]}.")


class Builder(Onlooker):
    def __init__(self, subgoals: Sequence[str]) -> None:
        wanted = from_the_bottom(subgoals)
        super().__init__(lambda observation: decide_block(wanted, read_blocks(observation)))
