"""Find shortest plans for the four domains, by A* with an admissible bound of our own for each domain."""

from __future__ import annotations

from evalharness.envs.pddl.engine import GroundedProblem
from evalharness.envs.pddl.open.oracle import barman, blockworld, gripper, tyreworld
from evalharness.envs.pddl.open.oracle.search import ActionPlan, Bound, search
from evalharness.envs.pddl.open.oracle.symmetry import canonical_key

MOST_EXPANDED = 100_000

_BOUNDS = {
    "gripper": gripper.bound,
    "blockworld": blockworld.bound,
    "barman": barman.bound,
    "tyreworld": tyreworld.bound,
}


def bound_of(world: GroundedProblem, kind: str) -> Bound:
    return _BOUNDS[kind](world)


def plan(world: GroundedProblem, kind: str) -> ActionPlan | None:
    """Return a shortest plan; after `MOST_EXPANDED` states return a plan at most three times as long, or None."""
    bound, key = bound_of(world, kind), canonical_key(world)
    return search(world, bound, key, most=MOST_EXPANDED) or search(
        world, bound, key, most=MOST_EXPANDED, weight=3
    )
