"""The planner's plans are shortest: its bounds never count too many, its symmetries never join what differs."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Hashable
from pathlib import Path

import pytest
from pddl_worlds import barman, blockworld, gripper, tyreworld, world

from evalharness.envs.pddl import SPEC
from evalharness.envs.pddl.engine import GroundedProblem
from evalharness.envs.pddl.open.oracle import bound_of, plan
from evalharness.envs.pddl.open.oracle.search import DEAD
from evalharness.envs.pddl.open.oracle.symmetry import canonical_key, interchangeable

TWO = {"ball1": "rooma", "ball2": "rooma", "ball3": "roomb"}
ROOMS = "rooma roomb roomc"
SMALL = {
    "gripper": [
        gripper("(at ball1 roomb) (at ball2 roomb) (at ball3 rooma)", TWO),
        gripper("(at ball1 roomb) (at ball2 roomc)", TWO, ROOMS),
        gripper("(at ball1 roomc) (at ball3 rooma) (at-robby roomb)", TWO, ROOMS, "roomc"),
    ],
    "blockworld": [
        blockworld("(on b1 b2) (on b2 b3) (on b3 b4)", "b1 b2 b3 b4"),
        blockworld("(on b1 b2) (on b3 b4) (on-table b2)", "b1 b2", "b3", "b4"),
        blockworld("(on b4 b1) (clear b2)", "b2 b3 b4", "b1"),
        blockworld("(clear b1) (clear b2) (arm-empty)", "b1 b3", "b2 b4"),
        blockworld("(holding b1)", "b1 b2 b3", "b4"),
    ],
    "barman": [
        barman("(contains shot1 cocktail1)", 1, (1, 2)),
        barman("(contains shot1 cocktail1) (contains shot2 ingredient3)", 2, (1, 2)),
        barman("(contains shot1 cocktail1) (contains shot2 cocktail2)", 2, (1, 2), (2, 3)),
        barman("(contains shot1 cocktail1) (contains shot2 cocktail1)", 2, (1, 2), (2, 1)),
        barman("(contains shot1 ingredient2) (contains shot2 ingredient1)", 2, (1, 2)),
    ],
    "tyreworld": [
        tyreworld("(on r1 the-hub1) (inflated r1) (in w1 boot)"),
        tyreworld("(on r1 the-hub1) (tight nuts1 the-hub1) (on-ground the-hub1) (closed boot)"),
        tyreworld("(inflated r1) (in jack boot) (in pump boot) (closed boot) (on r1 the-hub1)"),
        tyreworld("(have jack) (have w1)"),
        tyreworld("(in nuts1 boot) (in wrench boot)", boot="isopen"),
        tyreworld("(in w1 boot) (fastened the-hub1)"),
    ],
}


def distances(of: GroundedProblem) -> tuple[set[int], dict[int, int]]:
    """Every reachable state, and the exact number of actions to the goal of those that can reach it."""
    before: dict[int, list[int]] = defaultdict(list)
    states = {of.initial}
    queue = deque(states)
    while queue:
        state = queue.popleft()
        for action in of.applicable(state):
            after = of.result(state, action)
            before[after].append(state)
            if after not in states:
                states.add(after)
                queue.append(after)
    away = {state: 0 for state in states if of.solved(state)}
    queue = deque(away)
    while queue:
        state = queue.popleft()
        for previous in before[state]:
            if previous not in away:
                away[previous] = away[state] + 1
                queue.append(previous)
    return states, away


@pytest.mark.parametrize(
    ("kind", "problem"),
    [pytest.param(kind, text, id=kind) for kind, texts in SMALL.items() for text in texts],
)
def test_on_every_state_of_a_small_world(kind: str, problem: str) -> None:
    of = world(kind, problem)
    states, away = distances(of)
    bound, key = bound_of(of, kind), canonical_key(of)
    joined: dict[Hashable, int | None] = {}
    for state in states:
        distance = away.get(state)
        if distance is not None:
            assert bound(state) <= distance, sorted(of.decode(state))
        assert joined.setdefault(key(state), distance) == distance, sorted(of.decode(state))
    found = plan(of, kind)
    assert found is not None
    assert len(found.actions) == away[of.initial]


def test_hands_balls_and_shots_are_interchangeable_unless_the_goal_tells_them_apart() -> None:
    of = world("barman", barman("(contains shot1 ingredient1)", 3, (1, 2)))
    assert set(interchangeable(of)) >= {("left", "right"), ("shot2", "shot3")}
    key = canonical_key(of)
    grasped = defaultdict(set)
    for action in of.applicable(of.initial):
        grasped[key(of.result(of.initial, action))].add(action.arguments)
    assert sorted(map(sorted, grasped.values())) == [
        [("left", "shaker1"), ("right", "shaker1")],
        [("left", "shot1"), ("right", "shot1")],
        [("left", "shot2"), ("left", "shot3"), ("right", "shot2"), ("right", "shot3")],
    ]


def test_a_goal_out_of_reach_has_no_plan() -> None:
    # A shot that once held a cocktail can never be cleaned; with one shot and two wishes there is no way.
    of = world("barman", barman("(contains shot1 cocktail1) (contains shot1 cocktail2)", 1, (1, 2), (2, 1)))
    assert plan(of, "barman") is None
    of = world("tyreworld", tyreworld("(inflated w1)"))
    assert plan(of, "tyreworld") is None


def test_a_shot_spoilt_by_a_cocktail_is_known_to_be_dead() -> None:
    of = world("barman", barman("(contains shot1 cocktail2)", 1, (1, 2), (2, 1)))
    states, away = distances(of)
    bound = bound_of(of, "barman")
    spoilt = [state for state in states if state & of.bit["contains", "shot1", "cocktail1"]]
    assert spoilt
    assert all(bound(state) >= DEAD and state not in away for state in spoilt)


@pytest.mark.slow
@pytest.mark.data
def test_all_published_tasks_are_solved_by_shortest_plans(published_data: Path) -> None:
    env = SPEC.make(published_data)
    lengths = {}
    for task in SPEC.suites.load_tasks("agentboard", published_data, 0):
        env.reset(options={"task": task})
        steps = [env.step(action) for action in env.oracle()]
        assert [done for _, _, done, _, _ in steps] == [False] * (len(steps) - 1) + [True]
        assert steps[-1][4]["progress"] == 1.0
        lengths[f"{task.kind}/{task.payload['file']}"] = len(steps)
    assert {name: length for name, length in lengths.items() if length > 30} == {
        "gripper/prob05.pddl": 35,
        "gripper/prob15.pddl": 36,
        "gripper/prob16.pddl": 35,
        "gripper/prob17.pddl": 34,
        "tyreworld/p04.pddl": 39,
    }
