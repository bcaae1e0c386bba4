"""A blocks world player without privileged information: wrong towers come down to the table, then pairs are built.

Each block is put beside what it lies on and what it must lie on, tower by tower from the top: where one does not fit,
the top goes to the table. When no tower is wrong, a block that still has to move goes where it belongs as soon as the
block under it is in place. A block that the goal puts nowhere belongs on the table, but a tower of which the goal
names no block, not even as clear, stays as it is. Every decision follows from the goal and the last two observations.

All is read forwards, from a block to what is said of it ("b4 is on b2"). A small model that had to find the block
above another, or to say the goal's towers from the bottom, decided a fifth of the turns otherwise (21 of 106).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from evalharness.training.teachers.pddl.carrying import Onlooker, decided
from evalharness.training.teachers.teaching import Decision

TABLE = "the table"
_ON = re.compile(r"\b(b\d+) is on (b\d+|the table)")
_CLEAR = re.compile(r"\bthe (b\d+) is clear")
_HELD = re.compile(r"holding (b\d+)")


class Blocks(NamedTuple):
    """What an observation says."""

    on: dict[str, str]
    """Block -> the block under it, or the table."""
    clear: list[str]
    """Blocks on which nothing lies, in the observation's order."""
    held: str | None


def read_blocks(observation: str) -> Blocks:
    text = observation.lower()
    held = _HELD.search(text)
    return Blocks(dict(_ON.findall(text)), _CLEAR.findall(text), held[1] if held else None)


def places(subgoals: Sequence[str]) -> dict[str, str]:
    """Block -> what it must be on, in the order of the goal."""
    return {block: under for text in subgoals for block, under in _ON.findall(text.lower())}


def named_in(subgoals: Sequence[str]) -> frozenset[str]:
    return frozenset(name for text in subgoals for name in re.findall(r"\bb\d+", text.lower()))


def decide_block(
    wanted: Mapping[str, str],
    blocks: Blocks,
    before: Blocks | None = None,
    named: Collection[str] = (),
) -> Decision | None:
    """None when every block is where it belongs. `before` is the state before the last action, where it is known: a
    block that was taken from the table is on its way, one that was taken off another goes to the table. `named`: the
    goal's blocks, beside those of `wanted`."""
    if blocks.held is not None:
        return _put(wanted, blocks, before)
    said: list[str] = []
    to_move: list[str] = []
    goal = {*wanted, *wanted.values(), *named}
    for top in blocks.clear:
        if blocks.on[top] != TABLE and goal.isdisjoint(_tower(blocks.on, top)):
            said.append(f"{top} on {blocks.on[top]}: not in the goal.")
            continue
        block = top
        while block != TABLE:
            place, home = blocks.on[block], wanted.get(block, TABLE)
            said.append(f"{block} on {place}, to {home}: {'yes' if place == home else 'no'}.")
            if place == home:
                block = place
            elif block == top and place == TABLE:
                to_move.append(block)
                break
            else:
                return decided(f"Unstack {top} from {blocks.on[top]}.", "take off", said, f"I unstack {top}.")
    if not to_move:
        return None
    block, chain = to_move[0], []
    while (under := wanted[block]) in to_move:
        chain.append(f"{block} to {under}: {under} first.")
        block = under
    chain.append(f"{block} to {under}: {under} is in place.")
    return decided(f"Pickup {block}.", "pick up", [*said, *chain], f"I pick up {block}.")


def _tower(on: Mapping[str, str], top: str) -> list[str]:
    tower = [top]
    while (under := on[tower[-1]]) != TABLE:
        tower.append(under)
    return tower


def _put(wanted: Mapping[str, str], blocks: Blocks, before: Blocks | None) -> Decision:
    held, home = blocks.held, wanted.get(blocks.held or "", TABLE)
    from_table = before is not None and before.on.get(held or "") == TABLE
    if from_table and home in blocks.clear and _in_place(wanted, blocks.on, home):
        return decided(
            f"Stack {held} on {home}.", "stack", [f"I hold {held} from the table."], f"It goes to {home}."
        )
    source = "the table" if from_table else "a tower" if before is not None else "somewhere"
    return decided(
        f"Putdown {held}.", "put on the table", [f"I hold {held} from {source}."], "It goes to the table."
    )


def _in_place(wanted: Mapping[str, str], on: Mapping[str, str], block: str) -> bool:
    return block == TABLE or (on[block] == wanted.get(block, TABLE) and _in_place(wanted, on, on[block]))


class Builder(Onlooker):
    def __init__(self, subgoals: Sequence[str]) -> None:
        wanted, named = places(subgoals), named_in(subgoals)

        def rule(now: str, before: str | None) -> Decision | None:
            return decide_block(
                wanted, read_blocks(now), None if before is None else read_blocks(before), named
            )

        super().__init__(rule)
