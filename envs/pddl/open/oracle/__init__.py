"""Find shortest plans with A*. For each of the four domains we wrote an admissible heuristic (a lower bound)."""

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
    """Return a shortest plan. If that takes too long, return a plan that is at most three times as long, or None."""
    bound, key = bound_of(world, kind), canonical_key(world)
    return search(world, bound, key, most=MOST_EXPANDED) or search(
        world, bound, key, most=MOST_EXPANDED, weight=3
    )
