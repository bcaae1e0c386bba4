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
    """Block -> what it must be on, tower after tower from the bottom; the lowest of a tower on the table.

    A tower is read from a condition down ("b2 on b3 on b4"), in the order of the goal; what one that was read before
    already has is not read again.
    """
    wanted = {block: under for text in subgoals for block, under in _ON.findall(text.lower())}
    found: dict[str, str] = {}
    for block in wanted:
        tower = []
        while block != TABLE and block not in found and block not in tower:
            tower.append(block)
            block = wanted.get(block, TABLE)
        found |= {block: wanted.get(block, TABLE) for block in reversed(tower)}
    return found


def as_towers(wanted: Mapping[str, str]) -> str:
    """The goal from the top: `b2 on b3 on b4, b5 on b6`."""
    towers: list[str] = []
    below = ""
    for block, under in wanted.items():
        if under == TABLE:
            towers.append(block)
        elif under == below:
            towers[-1] = f"{block} on {towers[-1]}"
        else:
            towers.append(f"{block} on {under}")
        below = block
    return ", ".join(towers)


def _above(on: Mapping[str, str], block: str) -> list[str]:
    """All that lies on a block, the lowest first."""
    upper = next((upper for upper, under in on.items() if under == block), None)
    return [] if upper is None else [upper, *_above(on, upper)]


def decide_block(wanted: Mapping[str, str], blocks: Blocks) -> Decision | None:
    """None when every pair of the goal holds."""
    on, held = blocks.on, blocks.held
    said = [f"{as_towers(wanted)}."]
    unmet: tuple[str, str] | None = None
    for block, under in wanted.items():
        unmet = None if on.get(block) == under else (block, under)
        place = f"is on {on[block]}" if block in on else "is held"
        said.append(f"{block} to {under}, {place}: {'yes' if unmet is None else 'no'}.")
        if unmet is not None:
            break
    if held is not None:
        said.append(f"I hold {held}.")
        if unmet is not None and unmet[0] == held and unmet[1] != TABLE and not _above(on, unmet[1]):
            return decided(f"Stack {held} on {unmet[1]}.", "stack", said, f"{unmet[1]} is clear.")
        return decided(f"Putdown {held}.", "put on the table", said, "It goes to the table.")
    if unmet is None:
        return None
    for needed in unmet:
        if needed == TABLE:
            continue
        if uppers := _above(on, needed):
            said.append(f"{needed} is under {', under '.join(uppers)}.")
            top = uppers[-1]
            return decided(f"Unstack {top} from {on[top]}.", "clear the way", said, f"I take {top} off.")
        said.append(f"{needed} is clear.")
    block = unmet[0]
    if on[block] == TABLE:
        return decided(f"Pickup {block}.", "pick up", said, f"I take {block} from the table.")
    return decided(f"Unstack {block} from {on[block]}.", "unstack", said, f"I take {block} off {on[block]}.")


class Builder(Onlooker):
    def __init__(self, subgoals: Sequence[str]) -> None:
        wanted = from_the_bottom(subgoals)
        super().__init__(lambda observation: decide_block(wanted, read_blocks(observation)))
