"""Compute a lower bound of the number of remaining actions in blockworld."""

from __future__ import annotations

from evalharness.envs.pddl.engine import GroundedProblem
from evalharness.envs.pddl.open.oracle.search import Bound, atoms_naming, read_true
from evalharness.envs.pddl.syntax import Atom

TABLE = ""
HAND = "hand"


def bound(world: GroundedProblem) -> Bound:
    """Count two actions for each move of a block. A block must move in three cases: it is not in its goal position; it
    is on a block that must move; or it is on a block that must be clear, or under another block, in the goal. A block
    must move twice if it is above a block that must move too, and must be above this block in the goal."""
    goal_under: dict[str, str] = {}
    goal_clear: set[str] = set()
    goal_over: dict[str, str] = {}
    for atom in world.goal_atoms:
        if atom[0] == "on":
            goal_under[atom[1]] = atom[2]
            goal_over[atom[2]] = atom[1]
        elif atom[0] == "on-table":
            goal_under[atom[1]] = TABLE
        elif atom[0] == "clear":
            goal_clear.add(atom[1])

    # Block -> all blocks that must be below it in the goal.
    goal_below: dict[str, set[str]] = {}
    for block in goal_under:
        below: set[str] = set()
        under = goal_under[block]
        while under != TABLE and under not in below:
            below.add(under)
            under = goal_under.get(under, TABLE)
        goal_below[block] = below

    def support(atoms: list[Atom]) -> str:
        for atom in atoms:
            if atom[0] == "on":
                return atom[2]
            if atom[0] == "holding":
                return HAND
        return TABLE

    blocks = sorted(world.objects)
    under_of = {
        block: read_true(world, atoms_naming(world, {"on", "holding", "on-table"}, 0, block), support)
        for block in blocks
    }

    stays_in_hand = 0 if ("arm-empty",) in world.goal_atoms else 1

    def at_least(state: int) -> int:
        under = {block: under_of[block](state) for block in blocks}
        over = {below: block for block, below in under.items() if below not in (TABLE, HAND)}
        actions = 0
        held = ""
        only_in_the_way = 0
        for bottom in blocks:
            if under[bottom] == HAND:
                held = bottom
            if under[bottom] != TABLE:
                continue
            moving: set[str] = set()
            block: str | None = bottom
            while block is not None:
                below = under[block]
                must = (
                    below in moving
                    or goal_under.get(block, below) != below
                    or goal_over.get(below, block) != block
                )
                if not must and below in goal_clear:
                    must = True
                    # If this block is the last to move, the agent may keep it in the hand.
                    only_in_the_way = stays_in_hand
                if must:
                    actions += 4 if moving & goal_below.get(block, set()) else 2
                    moving.add(block)
                block = over.get(block)
        if held and (actions or held in goal_under or held in goal_clear):
            actions += 1
        return actions - only_in_the_way

    return at_least
