"""Jericho's explorer: what it does follows from what it has read, and its thoughts carry what must not be forgotten."""

from __future__ import annotations

import re

import pytest

from evalharness.envs.base import Task
from evalharness.envs.jericho.adapter import JerichoEnv
from evalharness.envs.jericho.exploring import Explorer, Gate, read_room
from evalharness.envs.jericho.generator import generate
from evalharness.envs.scene import mentions
from evalharness.envs.teaching import Decision


def test_reads_what_a_room_says() -> None:
    room = read_room(
        "Bakehouse The ovens are cold. Ways lead north and west. The oak door is to the east. It is dark to the south. "
        "You notice a straw mattress. There is an iron windlass here. "
        "You can also see a rusty key and an alms box (which is closed) here."
    )
    assert room is not None
    assert room.exits == ["north", "west"]
    assert room.gates == {"east": Gate("door", "oak door"), "south": Gate("dark")}
    assert room.jobs == ["search straw mattress", "pull iron windlass", "take rusty key", "open alms box"]
    assert read_room("Taken.") is None


def test_a_guard_closes_the_way_beside_it() -> None:
    room = read_room(
        "The way out is north. A way leads south. The old sergeant bars the way. Something like the figs might help."
    )
    assert room is not None
    assert room.gates == {"south": Gate("guard", "old sergeant", "figs")}
    open_now = read_room("The way out is north. A way leads south. The old sergeant takes no notice of you.")
    assert open_now is not None
    assert open_now.exits == ["north", "south"]


def _play(task: Task) -> tuple[bool, list[tuple[Decision, str]]]:
    env, explorer = JerichoEnv(), Explorer()
    text, info = env.reset(options={"task": task})
    said: list[tuple[Decision, str]] = []
    read = f"{task.goal}\n{text}"
    while len(said) < 30 and (decision := explorer.next(text, [])) is not None:
        said.append((decision, read))
        after, _, terminated, _, info = env.step(decision.action)
        explorer.saw(decision.action, text, after, info["subgoals_completed"])
        read, text = f"{read}\n{after}", after
        if terminated:
            break
    env.close()
    return bool(info["success"]), said


def test_it_solves_every_quest_of_seed_0_and_names_only_what_it_has_read() -> None:
    """All ten in 18.7 turns on average; the hand-written stories are no quests."""
    quests = [task for task in generate(0) if "quest" in task.payload or task.index >= 10]
    played = [_play(task) for task in quests]
    assert [success for success, _ in played] == [True] * 10
    for _, said in played:
        for decision, read in said:
            (thought,) = decision.thoughts
            listed = re.sub(r"Way.*?\.|none, I am where I began", "", thought)
            carried = re.search(r"I have (?!it\.)([\w', -]+?)[.,] ", listed)
            for thing in carried[1].split(", ") if carried and carried[1] != "nothing" else []:
                assert mentions(read, thing), (thing, thought)
    assert played[0] == _play(quests[0])


def test_the_way_back_is_the_path_reversed() -> None:
    _, said = _play(list(generate(0))[12])
    path: list[str] = []
    ways = 0
    turned = {"north": "south", "south": "north", "east": "west", "west": "east"}
    for decision, _ in said:
        if match := re.search(r"Way back: ([\w, ]+)\.", decision.thoughts[0]):
            back = [] if match[1].startswith("none") else match[1].split(", ")
            assert back == [turned[way] for way in reversed(path)]
            ways += 1
        if decision.action in turned:
            if path and path[-1] == turned[decision.action]:
                path.pop()
            else:
                path.append(decision.action)
    assert ways > 1


def test_what_is_known_of_each_way_stands_before_the_choice() -> None:
    explorer = Explorer()
    hall = (
        "It is late. Hall of Mirrors Glass all around. Ways lead south and west. The oak door is to the east."
    )
    cellar = "Cellar Cold stones. The way out is north."
    assert _thought(explorer, hall) == (
        "Hall of Mirrors, new: south new, west new, east behind oak door. Here: nothing. I have nothing. "
        "Closed: oak door (Hall of Mirrors). Way back: none, I am where I began. New: south, west. I go south."
    )
    explorer.saw("south", hall, cellar, ())
    assert _thought(explorer, cellar) == (
        "Cellar, new, from north: north back. Here: nothing. I have nothing. Closed: oak door (Hall of Mirrors). "
        "Way back: north. New: none. I go north; then I am where I began."
    )
    explorer.saw("north", cellar, hall, ())
    assert _thought(explorer, hall).startswith("Hall of Mirrors, again, from south: south been, west new, ")


@pytest.mark.parametrize("said", ["Go north", "go north.", "north, then west", "n", "walk n"])
def test_it_has_moved_in_whatever_words_the_world_moved_it(said: str) -> None:
    explorer = Explorer()
    _thought(explorer, "Hall The way out is north.")
    explorer.saw(said, "Hall The way out is north.", "Porch Ways lead south and west.", ())
    assert (
        "new, from south: south back, west new. Here: nothing. I have nothing. Way back: south."
        in _thought(explorer, "Porch Ways lead south and west.")
    )


def test_what_is_listed_is_done_in_its_order_and_what_can_be_opened_elsewhere_is_said() -> None:
    explorer = Explorer()
    hall = "Hall Dust. The way out is south. The oak door is to the east."
    attic = "Attic Dust. The way out is north. You notice a mat. You can see an iron key here."
    explorer.next(hall, [])
    explorer.saw("south", hall, attic, ())
    closed = "Closed: oak door (Hall). Way back: north."
    assert _thought(explorer, attic) == (
        "Attic, new, from north: north back. Here: search mat, take iron key. I have nothing. "
        f"{closed} First: search mat."
    )
    explorer.saw("search mat", attic, "You find nothing.", ())
    explorer.saw("take iron key", attic, "Taken.", ())
    assert _thought(explorer, "Taken.") == (
        "Attic, new, from north: north back. Here: nothing. I have iron key. To try: oak door (Hall). Way back: north. "
        "New: none. I go north; then I am where I began."
    )
    explorer.saw("north", "Taken.", hall, ())
    assert _thought(explorer, hall) == (
        "Hall, again, from south: south been, east behind oak door. Here: unlock oak door with iron key. "
        "I have iron key. Way back: none, I am where I began. First: unlock oak door with iron key."
    )


def test_what_cannot_be_switched_on_gives_no_light() -> None:
    explorer, hall = Explorer(), "Hall It is dark to the north. You can see a candle here."
    _thought(explorer, hall)
    explorer.saw("take candle", hall, "Taken.", ())
    explorer.saw("turn on candle", "Taken.", "That's not something you can switch.", ())
    assert explorer.next("That's not something you can switch.", []) is None


def _thought(explorer: Explorer, observation: str) -> str:
    decision = explorer.next(observation, [])
    assert decision is not None
    return decision.thoughts[0]
