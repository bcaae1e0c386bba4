"""Jericho's explorer: what it does follows from what it has read, and its thoughts carry what must not be forgotten."""

from __future__ import annotations

import re

import pytest

from evalharness.envs.base import Task
from evalharness.envs.jericho.adapter import JerichoEnv
from evalharness.envs.jericho.open.generator import generate
from evalharness.envs.jericho.open.quests import OPPOSITE
from evalharness.training.teachers.jericho.exploring import Explorer, Gate, read_room
from evalharness.training.teachers.scene import mentions
from evalharness.training.teachers.teaching import Decision


def test_reads_what_a_room_says() -> None:
    room = read_room(
        "Bakehouse The ovens are cold. Ways lead north and west. The oak door is to the east. It is dark to the south. "
        "You notice a straw mattress. There is an iron windlass here. "
        "You can also see a rusty key and an alms box (which is closed) here."
    )
    assert room is not None
    assert room.ways == ["north", "west", "east", "south"]
    assert room.gates == {"east": Gate("door", "oak door"), "south": Gate("dark")}
    assert room.jobs == {
        "search straw mattress": "notice straw mattress",
        "pull iron windlass": "there is iron windlass",
        "take rusty key": "see rusty key",
        "open alms box": "see closed alms box",
    }
    assert read_room("Taken.") is None


def test_a_guard_closes_the_way_beside_it() -> None:
    room = read_room(
        "The way out is north. A way leads south. The old sergeant bars the way. Something like the figs might help."
    )
    assert room is not None
    assert room.gates == {"south": Gate("guard", "old sergeant", "figs")}
    open_now = read_room("The way out is north. A way leads south. The old sergeant takes no notice of you.")
    assert open_now is not None
    assert open_now.gates == {}
    assert open_now.ways == room.ways == ["north", "south"]


def _play(task: Task) -> tuple[bool, list[tuple[Decision, str]]]:
    env, explorer = JerichoEnv(), Explorer()
    text, info = env.reset(options={"task": task})
    said: list[tuple[Decision, str]] = []
    read = f"{task.goal}\n{text}"
    while len(said) < 30 and (decision := explorer.next(text, [])) is not None:
        said.append((decision, read))
        after, _, terminated, _, info = env.step(decision.action)
        explorer.observe(decision.action, text, after, info["subgoals_completed"])
        read, text = f"{read}\n{after}", after
        if terminated:
            break
    env.close()
    return bool(info["success"]), said


def test_it_solves_every_quest_of_seed_0_and_names_only_what_it_has_read() -> None:
    """All ten in 17.3 turns on average; the hand-written stories are no quests."""
    quests = [task for task in generate(0) if "quest" in task.payload or task.index >= 10]
    played = [_play(task) for task in quests]
    assert [success for success, _ in played] == [True] * 10
    for _, said in played:
        for decision, read in said:
            thought = decision.thought
            had = re.search(r"Have: ([\w', -]+)\.", thought)
            for thing in had[1].split(", ") if had and had[1] != "nothing" else []:
                assert mentions(read, thing), (thing, thought)
    assert played[0] == _play(quests[0])


def test_the_way_back_is_the_path_reversed_and_said_before_and_after_a_step() -> None:
    _, said = _play(list(generate(0))[12])
    path: list[str] = []
    steps = 0
    for decision, _ in said:
        thought = decision.thought
        assert _steps(thought, r"Back: ([\w, ]+)\.") == [OPPOSITE[way] for way in reversed(path)]
        if decision.action in OPPOSITE:
            steps += 1
            if path and path[-1] == OPPOSITE[decision.action]:
                path.pop()
            else:
                path.append(decision.action)
            assert _steps(thought, r"then back: ([\w, ]+)\.$") == [OPPOSITE[way] for way in reversed(path)]
    assert steps > 5


def _steps(thought: str, pattern: str) -> list[str]:
    match = re.search(pattern, thought)
    assert match is not None
    return re.findall(r"(north|south|east|west) to ", match[1])


def test_the_next_way_is_the_one_named_after_the_way_it_came_by() -> None:
    explorer = Explorer()
    hall = (
        "It is late. Hall of Mirrors Glass all around. Ways lead south and west. The oak door is to the east."
    )
    cellar = "Cellar Cold stones. The way out is north."
    ways = "Have: nothing. Done: nothing. Ways: south, west, east behind oak door, no key. Here: nothing."
    assert _thought(explorer, hall) == (
        f"Hall of Mirrors. {ways} Back: none, I am where I began. I go south; then back: north to Hall of Mirrors."
    )
    explorer.observe("south", hall, cellar, ())
    assert _thought(explorer, cellar) == (
        "Cellar, from north. Have: nothing. Done: nothing. Ways: north. Here: nothing. Back: north to Hall of Mirrors. "
        "After north, the last: no other. I go north; then back: none, I am where I began."
    )
    explorer.observe("north", cellar, hall, ())
    assert _thought(explorer, hall) == (
        f"Hall of Mirrors, from south. {ways} Back: none, I am where I began. After south: west. "
        "I go west; then back: east to Hall of Mirrors."
    )
    explorer.observe("west", hall, "Den A den. The way out is east.", ())
    explorer.observe("east", "", hall, ())
    assert "After west: south. I go south;" in _thought(explorer, hall)


@pytest.mark.parametrize("said", ["Go north", "go north.", "north, then west", "n", "walk n"])
def test_it_has_moved_in_whatever_words_the_world_moved_it(said: str) -> None:
    explorer = Explorer()
    _thought(explorer, "Hall The way out is north.")
    explorer.observe(said, "Hall The way out is north.", "Porch Ways lead south and west.", ())
    assert "from south. Have: nothing. Done: nothing. Ways: south, west. " in _thought(
        explorer, "Porch Ways lead south and west."
    )


def test_what_is_listed_is_done_in_its_order_and_once() -> None:
    explorer = Explorer()
    hall = "Hall Dust. The way out is south. The oak door is to the east."
    attic = "Attic Dust. The way out is north. You notice a mat. You can see an iron key here."
    explorer.next(hall, [])
    explorer.observe("south", hall, attic, ())
    assert _thought(explorer, attic) == (
        "Attic, from north. Have: nothing. Done: nothing. Ways: north. Here: notice mat, see iron key. "
        "Back: north to Hall. First: search mat."
    )
    explorer.observe("search mat", attic, "You find nothing.", ())
    explorer.observe("take iron key", attic, "Taken.", ())
    assert _thought(explorer, "Taken.").startswith(
        "Attic, from north. Have: iron key. Done: mat. Ways: north. Here: notice mat (done), see iron key (done). "
    )
    explorer.observe("north", "Taken.", hall, ())
    known = "Hall, from south. Have: iron key. Done: mat. Ways: south, east behind oak door"
    there = "Here: nothing. Back: none, I am where I began."
    assert _thought(explorer, hall) == f"{known}, iron key. {there} First: unlock oak door with iron key."
    explorer.observe("unlock oak door with iron key", hall, "The oak door unlocks.", ())
    assert _thought(explorer, hall) == f"{known}, unlocked. {there} First: open oak door."
    explorer.observe("open oak door", hall, "You open the oak door.", ())
    assert _thought(explorer, "You open the oak door.") == (
        "Hall, from south. Have: iron key. Done: mat, oak door. Ways: south, east, open now. "
        f"{there} I go east; then back: west to Hall."
    )


@pytest.mark.parametrize(
    ("gate", "shut", "opened", "action", "after"),
    [
        ("It is dark to the east.", "east dark, no light", "east dark, light on", "turn on lamp", "The lamp flares."),
        ("The way east is where the beam is.", "east behind beam, nothing pulled", "east behind beam, pulled",
         "pull lever", "A beam lifts."),
    ],
)  # fmt: skip
def test_a_way_that_something_elsewhere_opens_is_gone_once_before_others(
    gate: str, shut: str, opened: str, action: str, after: str
) -> None:
    explorer = Explorer()
    hall = f"Hall Dust. Ways lead north and south. {gate}"
    shed = "Shed Dust. The way out is south. There is a lever here. You can see a lamp here."
    beyond = "Vault Dust. The way out is west."
    assert f"Ways: north, south, {shut}. " in _thought(explorer, hall)
    explorer.observe("north", hall, shed, ())
    explorer.observe("take lamp", shed, "Taken.", ())
    explorer.observe(action, shed, after, ())
    explorer.observe("south", shed, hall, ())
    decision = explorer.next(hall, [])
    assert decision is not None
    assert (decision.action, decision.rule) == ("east", "go through what is open now")
    assert f"Ways: north, south, {opened}. " in decision.thought
    explorer.observe("east", hall, beyond, ())
    explorer.observe("west", beyond, hall, ())
    assert "After east, the last: north. I go north;" in _thought(explorer, hall)


def test_what_a_guard_wants_is_given_and_the_way_is_open() -> None:
    explorer = Explorer()
    hall = (
        "Hall Dust. The way out is south. A way leads north. You can see a fig here. "
        "The old cat stares. Something like the fig might help."
    )
    assert "Ways: south, north behind old cat, no fig. Here: see fig. " in _thought(explorer, hall)
    explorer.observe("take fig", hall, "Taken.", ())
    assert _thought(explorer, hall).endswith("First: give fig to old cat.")
    explorer.observe("give fig to old cat", hall, "The old cat eats it.", ())
    assert "Have: nothing. Done: old cat. Ways: south, north, open now. " in _thought(explorer, hall)


def test_what_a_model_tries_at_things_that_are_not_there_counts_as_nothing_done() -> None:
    explorer = Explorer()
    room = "Attic Dust. The way out is north. You notice a mat."
    _thought(explorer, room)
    for action in ("search sofa", "pull sofa", "take mat"):
        explorer.observe(action, room, "You can't see any such thing.", ())
    assert "Have: nothing. Done: nothing. Ways: north. Here: notice mat. " in _thought(explorer, room)


def test_what_cannot_be_switched_on_gives_no_light() -> None:
    explorer, hall = Explorer(), "Hall It is dark to the north. You can see a candle here."
    _thought(explorer, hall)
    explorer.observe("take candle", hall, "Taken.", ())
    explorer.observe("turn on candle", "Taken.", "That's not something you can switch.", ())
    assert explorer.next("That's not something you can switch.", []) is None


def _thought(explorer: Explorer, observation: str) -> str:
    decision = explorer.next(observation, [])
    assert decision is not None
    return decision.thought
