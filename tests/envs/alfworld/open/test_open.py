"""The open suite: generated households, solvable, distinct, not to be had by luck, and the same everywhere."""

import re
from collections import Counter
from dataclasses import replace
from math import log2
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle_plans import oracle_plan

from evalharness.envs.alfworld import SPEC
from evalharness.envs.alfworld.open.generator import HARD_BITS, QUOTA, generate
from evalharness.envs.alfworld.open.households import Household, build_game, household_of
from evalharness.envs.alfworld.open.oracle import find_commands
from evalharness.envs.alfworld.open.rooms import ROOMS
from evalharness.envs.base import MAX_TURNS, MIN_TURNS, InvalidTaskError, Task
from evalharness.envs.surface import ActionSurface
from evalharness.protocol.prompt import load_prompt


@pytest.fixture(scope="module")
def suite() -> list[Task]:
    return SPEC.suites.load_tasks("open", None, 0)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**9))
def test_every_seed_gives_134_different_tasks_in_the_published_proportions(seed: int) -> None:
    tasks = list(generate(seed))
    assert len(tasks) == SPEC.suites.expected["open"] == 134
    assert [task.id for task in tasks] == [f"alfworld/open/{i:03d}" for i in range(134)]
    households = [household_of(task) for task in tasks]
    assert Counter((h.kind, h.room) for h in households) == QUOTA
    assert len({h.shape() for h in households}) == 134
    for task, household in zip(tasks, households, strict=True):
        length = len(
            find_commands(household.layout(), task.kind, household.object_type, household.target_type)
        )
        assert MIN_TURNS <= length <= MAX_TURNS
        assert (task.difficulty == "hard") == (length * log2(len(household.places)) >= HARD_BITS)
        room = ROOMS[household.room]
        for place, things in household.contents.items():
            kinds = {thing.split()[0] for thing in things}
            assert kinds <= {*room.holds(place.split()[0]), *room.fixtures}
        for kind, (least, most) in room.receptacles.items():
            assert least <= household.receptacles.get(kind, 0) <= most


@pytest.mark.slow
def test_the_oracle_solves_every_task_in_3_to_30_commands_and_meets_every_label(suite: list[Task]) -> None:
    env = SPEC.make(None)
    for task in suite:
        env.reset(options={"task": task})
        plan = oracle_plan(env, task)
        assert MIN_TURNS <= len(plan) <= MAX_TURNS, task.id
        met: set[int] = set()
        for number, action in enumerate(plan, 1):
            _, _, done, _, info = env.step(action)
            met.update(info["subgoals_completed"])
            assert done is (number == len(plan)), task.id
            assert info["valid"], task.id
        assert info["success"], task.id
        assert info["progress"] == 1.0
        assert met == set(range(len(task.subgoals))), task.id


@pytest.mark.parametrize(
    "change",
    [
        {"room": "attic"},
        {"receptacles": {"cabinet": "many"}},
        {"receptacles": {"cab) (inet": 1}, "contents": {}},
        {"contents": {"nowhere 1": ["mug 1"]}},
        {"contents": {"fridge 1": ["mug 1", "mug 1"]}},
        {"contents": {"fridge 1": ["mug) (1"]}},
        {"contents": ["fridge 1"]},
        {"wording": 2},
    ],
)
def test_a_description_that_does_not_fit_together_is_refused(change: dict[str, object]) -> None:
    good = {
        "room": "kitchen",
        "receptacles": {"fridge": 1},
        "contents": {"fridge 1": ["mug 1"]},
        "wording": 0,
    }
    payload = {"household": good, "object": "mug", "target": "fridge"}
    task = Task("alfworld/open/000", "alfworld", "open", 0, "", "hard", "put", payload=payload)
    assert household_of(task).places == ["fridge 1"]
    with pytest.raises(InvalidTaskError):
        household_of(replace(task, payload={**payload, "household": {**good, **change}}))


EXAMPLES = (
    Household(
        "kitchen",
        {"countertop": 2, "drawer": 2, "fridge": 1, "microwave": 1, "sinkbasin": 1, "stoveburner": 1},
        {
            "countertop 1": ("bread 1", "plate 1"),
            "countertop 2": ("fork 1", "mug 2", "saltshaker 1"),
            "drawer 1": ("spoon 1",),
            "fridge 1": ("mug 1",),
        },
        "clean",
        "fork",
        "drawer",
        1,
    ),
    Household(
        "bathroom",
        {"cabinet": 1, "countertop": 1, "garbagecan": 1, "sinkbasin": 1, "toilet": 1},
        {
            "countertop 1": ("candle 1", "cloth 1"),
            "toilet 1": ("soapbottle 1", "toiletpaper 1"),
            "cabinet 1": ("scrubbrush 1",),
        },
        "put",
        "soapbottle",
        "cabinet",
        1,
    ),
    Household(
        "kitchen",
        {"countertop": 2, "fridge": 1, "garbagecan": 1, "microwave": 1, "sinkbasin": 1},
        {
            "countertop 1": ("knife 1", "pan 1"),
            "fridge 1": ("lettuce 1", "potato 1"),
            "microwave 1": ("cup 1",),
        },
        "heat",
        "potato",
        "countertop",
        0,
    ),
    Household(
        "kitchen",
        {"countertop": 1, "diningtable": 1, "fridge": 1, "microwave": 1, "sinkbasin": 1},
        {"countertop 1": ("spatula 1",), "diningtable 1": ("apple 1", "plate 1"), "fridge 1": ("egg 1",)},
        "cool",
        "apple",
        "microwave",
        1,
    ),
    Household(
        "bedroom",
        {"bed": 1, "desk": 1, "shelf": 1, "sidetable": 1},
        {"desk 1": ("desklamp 1", "pen 1"), "sidetable 1": ("watch 1", "keychain 1"), "shelf 1": ("mug 1",)},
        "examine",
        "watch",
        "desklamp",
        0,
    ),
    Household(
        "bathroom",
        {"countertop": 1, "shelf": 1, "sinkbasin": 1, "toilet": 1},
        {"countertop 1": ("candle 1", "soapbar 1"), "toilet 1": ("candle 2",)},
        "puttwo",
        "candle",
        "shelf",
        0,
    ),
)
"""The households of the prompt's worked examples, one for each kind of task."""
EXAMPLE = EXAMPLES[0]


def example_task(household: Household) -> Task:
    return Task(
        "alfworld/open/example",
        "alfworld",
        "open",
        0,
        household.goal,
        "hard",
        household.kind,
        payload=household.payload(),
    )


def test_every_kind_of_task_has_an_example_of_its_own() -> None:
    prompt = load_prompt(SPEC)
    kinds = {kind for kind, _ in QUOTA}
    assert {household.kind for household in EXAMPLES} == kinds
    assert (
        len(
            {
                prompt.for_kind(kind).messages(ActionSurface(SPEC.actions.templates), "", "")[1]["content"]
                for kind in kinds
            }
        )
        == 6
    )


@pytest.mark.parametrize("household", EXAMPLES, ids=lambda household: household.kind)
def test_a_worked_example_is_what_the_world_answers_and_belongs_to_no_suite(household: Household) -> None:
    example = load_prompt(SPEC).for_kind(household.kind).example
    assert example is not None
    # Every generated room has more of something, whatever the suite's seed.
    ranges = ROOMS[household.room].receptacles
    assert any(household.receptacles.get(name, 0) < least for name, (least, _) in ranges.items())
    env = SPEC.make(None)
    observation, _ = env.reset(options={"task": example_task(household)})
    assert (env.goal, observation) == (example.goal, example.observation)
    for number, step in enumerate(example.steps, 1):
        observation, _, done, _, info = env.step(step.action)
        assert observation == step.observation
        assert info["valid"]
        assert done is (number == len(example.steps))
    assert info["success"]
    assert 4 <= len(example.steps) <= 8


@pytest.mark.data
def test_no_published_task_has_the_goal_of_a_worked_example(published_data: Path) -> None:
    goals = {task.goal for task in SPEC.suites.load_tasks("agentboard", published_data, 0)}
    assert not goals & {household.goal for household in EXAMPLES}


def test_the_prompt_is_short() -> None:
    """About 1,200 tokens at four characters a token."""
    surface = ActionSurface(SPEC.actions.templates)
    for kind, _ in QUOTA:
        prompt = load_prompt(SPEC).for_kind(kind)
        assert sum(len(message["content"]) for message in prompt.messages(surface, "", "")) < 4 * 1200


def test_a_game_is_a_function_of_its_description() -> None:
    assert build_game(household_of(example_task(EXAMPLE))) == build_game(EXAMPLE)
    assert set(build_game(EXAMPLE)) == {"pddl_domain", "grammar", "pddl_problem"}
    assert re.search("Your task is to: clean some fork and put it in drawer.", build_game(EXAMPLE)["grammar"])


def test_the_rooms_of_the_households_are_those_of_the_tables(suite: list[Task]) -> None:
    assert {task.payload["household"]["room"] for task in suite} == set(ROOMS)
