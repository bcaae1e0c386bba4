"""ScienceWorld's finder: the way through the house, what is in sight, and real tasks."""

from __future__ import annotations

import pytest

from evalharness.envs.sciworld.adapter import ScienceWorldEnv
from evalharness.envs.sciworld.kinds import QUOTA
from evalharness.envs.sciworld.open.generator import generate
from evalharness.envs.sciworld.tasks import load_tasks
from evalharness.training.teachers.sciworld.finding import (
    DOORS,
    FIND,
    LIFESPAN,
    Finder,
    find_next_door,
    list_animals,
    list_things,
    rank_lifespan,
)

OUTSIDE = (
    "This outside location is called the outside. Here you see: \n\tthe agent\n\ta substance called air\n\tan axe"
    "\n\ta baby mouse\n\ta fire pit (containing nothing)\n\tthe ground\n\ta parrot egg\n\ta substance called wood"
    "\nYou also see:\n\tA door to the kitchen (that is open)"
)


def test_reads_what_is_in_sight() -> None:
    assert list_things(OUTSIDE)[2:4] == ["axe", "baby mouse"]
    assert list_animals(OUTSIDE) == ["baby mouse", "parrot egg"]
    assert rank_lifespan("parrot egg") < rank_lifespan("baby mouse") < rank_lifespan("an unknown beast")


def test_where_no_thing_stands_free_it_takes_one_from_a_table() -> None:
    finder = Finder(
        "find-non-living-thing", "First, focus on it. Then, move it to the blue box in the workshop."
    )
    room = (
        "This room is called the workshop. In it, you see: \n\tthe agent\n\ta blue box (containing nothing)"
    )
    table = "\n\ta table. On the table is: a battery, a black wire.\nYou also see:\n\tA door"
    decision = finder.next(room + table, [])
    assert decision is not None
    assert decision.action == "focus on battery"


@pytest.mark.parametrize(
    ("here", "room", "door"),
    [("bathroom", "outside", "kitchen"), ("hallway", "outside", "greenhouse"), ("foundry", "bedroom", "outside"),
     ("kitchen", "kitchen", None), ("attic", "kitchen", None)],
)  # fmt: skip
def test_the_way_through_the_house(here: str, room: str, door: str | None) -> None:
    assert find_next_door(here, room) == door
    assert all(here in DOORS[there] for here, doors in DOORS.items() for there in doors)


@pytest.mark.slow
def test_it_solves_the_tasks_of_its_kinds() -> None:
    """27 of 27 of suite seed 0, in 6.7 turns on average; here the first of each kind."""
    environment = ScienceWorldEnv()
    tasks = load_tasks("open", None, 0)
    for kind in (*FIND, *LIFESPAN):
        task = next(task for task in tasks if task.kind == kind)
        text, info = environment.reset(options={"task": task})
        finder = Finder(task.kind, task.goal)
        for _ in range(30):
            decision = finder.next(text, [])
            assert decision is not None
            after, _, terminated, _, info = environment.step(decision.action)
            assert info["valid"], decision.action
            finder.observe(decision.action, text, after, info["subgoals_completed"])
            text = after
            if terminated:
                break
        assert info["success"], task.id
    environment.close()


@pytest.mark.slow
def test_tasks_of_some_kinds_are_numbered_as_in_the_whole_suite() -> None:
    kinds = list(QUOTA)
    found = list(generate(100, ["lifespan-shortest-lived"]))
    first = sum(QUOTA[kind] for kind in kinds[: kinds.index("lifespan-shortest-lived")])
    assert [task.index for task in found] == [first, first + 1, first + 2]
    assert {task.kind for task in found} == {"lifespan-shortest-lived"}
