"""BabyAI's seeker: what it says follows from what it has read."""

from __future__ import annotations

import re

import pytest
from seekers import said_by

from evalharness.envs import specs
from evalharness.envs.babyai.adapter import BabyAIEnv
from evalharness.envs.babyai.tasks import load_tasks
from evalharness.envs.base import Task
from evalharness.envs.surface import ActionSurface
from evalharness.training.teachers.babyai.seeking import (
    NEAR,
    NEAR_DOOR,
    Seeker,
    Target,
    find_obstacle,
    find_target,
    find_wall,
    fits,
    list_things,
)  # fmt: skip
from evalharness.training.teachers.scene import Scene, Step
from evalharness.training.teachers.teaching import load_teaching

ROOM = "In front of you in this room, you can see several objects: "
WALL_FAR = (
    f"{ROOM}The room has walls around you. You are facing a wall 6 steps away. You are not carrying anything."
)
IN_THE_WAY = WALL_FAR.replace(ROOM, f"{ROOM}There is a red key 1 right in front of you 1 steps away. ")
MOVES = ("turn left", "turn right", "move forward")


def test_reads_what_is_in_sight() -> None:
    text = (
        f"{ROOM}There is a red ball 1 right in front of you 2 steps away.  There is a blue closed door 2 3 steps in"
        " front of you and 1 steps to your left.  You are facing a box 4 steps away. You are not carrying anything."
    )
    assert list_things(text) == [("red ball 1", 2), ("blue closed door 2", 4)]
    assert find_wall(text) is None, "a box is no wall"
    assert find_wall(WALL_FAR) == 6
    assert find_wall("You cannot see any objects within sight.") is None


@pytest.mark.parametrize(
    ("name", "what", "yes"),
    [
        ("red ball 1", "the red ball", True),
        ("red ball 2", "a ball on your left", True),
        ("blue locked door 1", "the blue door", True),
        ("blue locked door 1", "a door behind you", True),
        ("green key 1", "a green object", True),
        ("green key 1", "the red key", False),
        ("green key 1", "the green ball", False),
        ("green key 1", "what the goal names", False),
    ],
)
def test_what_the_goal_means(name: str, what: str, yes: bool) -> None:
    assert fits(name, what) is yes


def test_a_key_is_wanted_only_once_its_door_was_read_of() -> None:
    subgoals = ("hold the key of the yellow locked door", "face the door", "open the door")
    assert find_target(subgoals, (), "") == Target("the door", "open")
    assert find_target(subgoals, (), "a yellow locked door 1") == Target("the yellow key", "pick up")
    assert find_target(subgoals, (0,), "a yellow locked door 1") == Target("the door", "open")


@pytest.mark.parametrize(("what", "near"), [("red ball", NEAR), ("red door", NEAR_DOOR)])
def test_it_walks_until_a_wall_is_near_and_turns(what: str, near: int) -> None:
    seeker, said, text = Seeker((f"see the {what}", f"go to the {what}")), [], WALL_FAR
    for _ in range(4):
        action = said_by(seeker, text, MOVES)
        assert action is not None
        said.append(action)
        after = text
        if action == "move forward":
            after = re.sub(r"\d+ steps", lambda m: f"{int(m[0].split()[0]) - 1} steps", text)
        seeker.observe(action, text, after, ())
        text = after
    assert said == ["move forward"] * (6 - near) + ["turn right"] * (4 - 6 + near)


@pytest.mark.parametrize(
    ("thing", "blocks"),
    [("red key 1", True), ("grey box 2", True), ("blue closed door 1", True), ("blue open door 1", False)],
)
def test_it_turns_where_a_thing_is_in_the_way(thing: str, blocks: bool) -> None:
    text = IN_THE_WAY.replace("red key 1", thing)
    assert (find_obstacle(text) == thing) is blocks
    assert find_obstacle(text.replace("1 steps away", "2 steps away")) is None
    seeker = Seeker(("see the red ball", "go to the red ball"))
    assert said_by(seeker, text, MOVES) == ("turn right" if blocks else "move forward")


def test_it_first_turns_to_the_side_that_the_goal_names() -> None:
    seeker = Seeker(("see a door on your left", "open a door on your left"))
    assert said_by(seeker, WALL_FAR, MOVES) == "turn left"
    seeker.observe("turn left", WALL_FAR, WALL_FAR, ())
    assert said_by(seeker, WALL_FAR, MOVES) == "move forward"


@pytest.mark.parametrize(
    ("what", "turned", "says"),
    [
        ("a door on your left", (), "Turned 0 of 1: I turn left."),
        ("the box on your right", (), "Turned 0 of 1: I turn right."),
        ("the door behind you", (), "Turned 0 of 2: I turn right."),
        ("the door behind you", ("turn right",), "Turned 1 of 2: I turn right."),
        # as a model may have turned
        ("a door on your left", ("turn right",), "Turned 1 of 3: I turn right."),
    ],
)
def test_a_thought_counts_the_turns_to_the_goals_side(what: str, turned: tuple[str, ...], says: str) -> None:
    door = f"{ROOM}There is a green closed door 1 0 steps in front of you and 1 steps to your right."
    seeker = Seeker((f"see {what}", f"open {what}"))
    for action in turned:
        seeker.observe(action, door, door, ())
    decision = seeker.next(door, MOVES)
    assert decision is not None
    assert decision.thought == f"I look for {what}. {says}"


@pytest.mark.parametrize("what", ["a key in front of you", "the red ball"])
def test_it_turns_to_no_side_that_the_goal_does_not_name(what: str) -> None:
    assert said_by(Seeker((f"see {what}", f"go to {what}")), WALL_FAR, MOVES) == "move forward"


def test_a_plans_turn_has_no_verdict_on_what_lies_elsewhere() -> None:
    spec = specs()["babyai"]
    door = f"{ROOM}There is a green closed door 1 0 steps in front of you and 1 steps to your right."
    task = Task(
        "babyai/open/000", "babyai", "open", 0, "open a door on your left", "easy", "open",
        subgoals=("see a door on your left", "open a door on your left"),
    )  # fmt: skip
    for action, said in (("turn left", "Turned 0 of 1: I turn left."), ("turn right", "I turn right.")):
        steps = (Step(action, WALL_FAR, 0.0, True),)
        scene = Scene(task, task.goal, door, "", steps, 0, ActionSurface(spec.actions.templates))
        assert load_teaching(spec).thought(scene) == f"I look for a door on your left. {said}"


@pytest.mark.parametrize(
    ("seen", "action", "said"),
    [
        (f"{ROOM}There is a red key 1 right in front of you 3 steps away.  There is a red ball 1 1 steps in front of"
         " you and 2 steps to your left.", "go to red ball 1",
         "I look for the red ball. red key 1, red ball: no. red ball 1, red ball: yes. I go to it."),
        (WALL_FAR, "move forward", "I look for the red ball. Wall 6, limit 4: I move forward."),
        (IN_THE_WAY, "turn right",
         "I look for the red ball. red key 1, red ball: no. Red key 1 is right in front: I turn right."),
    ],
)  # fmt: skip
def test_a_thought_puts_what_it_compares_side_by_side(seen: str, action: str, said: str) -> None:
    spec = specs()["babyai"]
    task = Task(
        "babyai/open/000",
        "babyai",
        "open",
        0,
        "go to the red ball",
        "easy",
        "open",
        subgoals=("go to the red ball",),
    )
    steps = (Step("turn right", seen, 0.0, True), Step(action, seen, 0.0, True))
    scene = Scene(task, task.goal, WALL_FAR, "", steps, 1, ActionSurface(spec.actions.templates))
    assert load_teaching(spec).thought(scene) == said


BESIDE = "0 steps in front of you and 1 steps to your right."


@pytest.mark.parametrize(
    ("things", "can", "says"),
    [
        ("There is a green box 1 3 steps in front of you and 1 steps to your left.", (), "go to green box 1"),
        ("There is a green box 1 right in front of you 1 steps away.", (), "turn right"),
        (
            f"There is a green box 1 right in front of you 1 steps away.  There is a red ball 1 {BESIDE}",
            (),
            "turn left",
        ),
        (f"There is a green box 1 {BESIDE}", ("drop",), "drop"),
        (f"There is a green box 1 {BESIDE}", (), "turn left"),
    ],
)
def test_what_it_carries_goes_down_beside_what_it_wants(things: str, can: tuple[str, ...], says: str) -> None:
    """Before a doorway it would bar the way back."""
    seeker = Seeker(("see the green box", "pick up the green box"))
    text = f"{ROOM}{things}  The room has walls around you. You are carrying a purple key."
    assert said_by(seeker, text, (*MOVES, *can, "go to green box 1")) == says


def test_what_it_has_read_as_an_answer_is_known() -> None:
    """As where a model played before."""
    seeker = Seeker(("hold the key of the red locked door", "unlock the red locked door", "see the box",
                     "pick up the box"))  # fmt: skip
    door = (
        f"{ROOM}There is a red locked door 1 right in front of you 2 steps away.  You are carrying a red key."
    )
    beside = (
        f"{ROOM}There is a green box 1 {BESIDE}  The room has walls around you. You are carrying a red key."
    )
    seeker.observe("pickup red key 1", WALL_FAR, door, (0,))
    seeker.observe("turn right", door, beside, ())
    assert said_by(seeker, beside, (*MOVES, "drop")) != "drop", "the key opens the door"


def _after_turns(views: list[tuple[str, str]]) -> list[str]:
    """What it says in one view after the other: (things in it, `drop` where that is valid)."""
    seeker, said = Seeker(("see the green box", "pick up the green box")), []
    text = before = ""
    for things, droppable in views:
        text = f"{ROOM}{things}  The room has walls around you. You are carrying a purple key."
        if said:
            seeker.observe(said[-1], before, text, ())
        before = text
        said.append(said_by(seeker, text, (*MOVES, *([droppable] if droppable else []))) or "nothing")
    return said


BOX_AHEAD = "There is a green box 1 right in front of you 1 steps away."


def test_it_turns_on_to_the_side_that_it_began_with_until_it_can_put_down() -> None:
    """A thing on the right, a wall on the left: behind it is free."""
    said = _after_turns([
        (f"{BOX_AHEAD}  There is a red ball 1 {BESIDE}", ""), (f"There is a green box 1 {BESIDE}", ""), ("", "drop"),
    ])  # fmt: skip
    assert said == ["turn left", "turn left", "drop"]


def test_it_puts_down_behind_what_it_wants_when_the_right_is_a_wall() -> None:
    seeker, said = Seeker(("see the green box", "pick up the green box")), []
    views = [
        (BOX_AHEAD, "a purple key", ()), ("", "a purple key", ()), ("", "a purple key", ("drop",)),
        ("There is a purple key 1 right in front of you 1 steps away.", None, ("go to purple key 1",)),
        (f"There is a green box 1 {BESIDE}", None, ("go to green box 1", "pickup green box 1")),
    ]  # fmt: skip
    before = ""
    for things, burden, can in views:
        text = f"{ROOM}{things}  You are {f'carrying {burden}' if burden else 'not carrying anything'}."
        if said:
            seeker.observe(said[-1], before, text, ())
        before = text
        said.append(said_by(seeker, text, (*MOVES, *can)) or "nothing")
    assert said == ["turn right", "turn right", "drop", "turn right", "pickup green box 1"]


def test_it_gives_up_where_there_is_no_free_cell_around_it() -> None:
    views = [(BOX_AHEAD, ""), ("", ""), ("", ""), ("", ""), (BOX_AHEAD, "")]
    assert _after_turns(views) == ["turn right"] * 4 + ["nothing"]


def test_nothing_is_put_down_before_a_door() -> None:
    """The simulator lists it as valid, and nothing happens."""
    beside = f"There is a green box 1 {BESIDE}"
    door = f"There is a red closed door 1 right in front of you 1 steps away.  {beside}"
    assert _after_turns([(door, "drop"), ("", "drop")]) == ["turn left", "drop"]


def test_thoughts_of_full_hands() -> None:
    spec = specs()["babyai"]
    task = Task(
        "babyai/open/000", "babyai", "open", 0, "pick up the green box", "easy", "open",
        subgoals=("see the green box", "pick up the green box"),
    )  # fmt: skip
    carrying = " You are carrying a purple key."
    for things, action, thought in (
        ("There is a green box 1 3 steps in front of you and 1 steps to your left.", "go to green box 1",
         "green box 1, green box: yes. I carry the purple key, so I go there first."),
        (BOX_AHEAD, "turn right",
         "green box 1, green box: yes. I carry the purple key, and this is no place for it: I turn right."),
    ):  # fmt: skip
        steps = (Step(action, "", 0.0, True),)
        scene = Scene(
            task,
            task.goal,
            f"{ROOM}{things}{carrying}",
            "",
            steps,
            0,
            ActionSurface(spec.actions.templates),
        )
        assert load_teaching(spec).thought(scene) == f"I look for the green box. {thought}"


def test_it_goes_to_what_it_sees_and_opens_no_later_door_first() -> None:
    seeker = Seeker(("open the red door", "open the blue door"))
    blue = f"{ROOM}There is a blue closed door 1 right in front of you 2 steps away.  You are not carrying anything."
    through = "toggle and go through blue closed door 1"
    for _ in range(3):
        action = said_by(seeker, blue, (*MOVES, through))
        assert action != through
        assert action is not None
        seeker.observe(action, blue, blue, ())
    assert said_by(
        seeker, blue.replace("blue", "red"), (*MOVES, through.replace("blue", "red"))
    ) == through.replace("blue", "red")


def test_with_nothing_to_do_it_goes_to_the_farthest_thing_and_turns_there() -> None:
    seeker = Seeker(("see the red ball", "go to the red ball"))
    text = WALL_FAR.replace(ROOM, f"{ROOM}There is a grey box 1 right in front of you 3 steps away. ")
    assert said_by(seeker, text, (*MOVES, "go to grey box 1")) == "go to grey box 1"
    seeker.observe("go to grey box 1", text, WALL_FAR, ())
    assert said_by(seeker, WALL_FAR, MOVES) == "turn right"
    seeker.observe("turn right", WALL_FAR, WALL_FAR, ())
    assert said_by(seeker, WALL_FAR, MOVES) == "move forward"


def _play(task: Task) -> tuple[bool, int]:
    env = BabyAIEnv()
    seeker = Seeker(task.subgoals)
    text, info = env.reset(options={"task": task})
    for turn in range(30):
        action = said_by(seeker, text, env.valid_actions())
        if action is None:
            return False, turn
        after, _, terminated, _, info = env.step(action)
        assert info["valid"], action
        seeker.observe(action, text, after, info["subgoals_completed"])
        text = after
        if terminated:
            return bool(info["success"]), turn + 1
    return False, 30


def test_it_solves_real_levels_with_valid_actions_alone() -> None:
    tasks = load_tasks("open", None, 0)[::4]
    played = [_play(task) for task in tasks]
    assert sum(success for success, _ in played) == 15
    assert played == [_play(task) for task in tasks]
