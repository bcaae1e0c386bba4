"""Tyreworld's mechanic: one condition after the other, each by what it lacks."""

from __future__ import annotations

from pddl_worlds import EXAMPLES, world
from seekers import said_by

from evalharness.envs.base import Task
from evalharness.envs.pddl.actions import Reader
from evalharness.envs.pddl.adapter import PddlTextEnv, world_of
from evalharness.envs.pddl.tasks import load_tasks
from evalharness.training.teachers.pddl.wheels import Mechanic, errand_order

START = (
    "Boot is closed. Hub the-hub1 is fastened. Hub the-hub1 is on the ground. Jack is in boot. R1 is in boot. "
    "The nut nuts1 on the hub the-hub1 is loose. W1 is on the-hub1. You have wrench."
)


def example() -> Mechanic:
    return Mechanic(["r1 is on the-hub1."], Reader(world("tyreworld", EXAMPLES["tyreworld"])))


def test_errands_go_hub_by_hub_and_the_boot_is_closed_last() -> None:
    wanted = [
        "boot is closed", "wrench is in boot", "hub the-hub1 is on the ground", "nuts1 is in boot", "w1 is in boot",
        "the nut nuts1 on the hub the-hub1 is tight", "r2 is on the-hub2", "r1 is on the-hub1", "wheel r1 is inflated",
    ]  # fmt: skip
    assert sorted(wanted, key=errand_order) == [
        "wheel r1 is inflated", "r1 is on the-hub1", "the nut nuts1 on the hub the-hub1 is tight", "r2 is on the-hub2",
        "w1 is in boot", "nuts1 is in boot", "hub the-hub1 is on the ground", "wrench is in boot", "boot is closed",
    ]  # fmt: skip


def test_a_thought_asks_and_quotes_down_to_what_can_be_done() -> None:
    decision = example().next(START, ["Open boot."])
    assert decision is not None
    assert decision.thoughts == (
        "I have wrench. r1 is on the-hub1? r1 is in boot: no. Free? w1 is on the-hub1: no. "
        "Unfastened? the-hub1 is fastened: no. Loose? nuts1 on the hub the-hub1 is loose: yes. Wrench: yes. "
        "Up? the-hub1 is on the ground: no. Jack? jack is in boot: no. Open? boot is closed: no. I open boot.",
    )


def test_what_its_actions_undo_is_remembered() -> None:
    mechanic = example()
    for action, answer, then in (
        ("Open boot.", "Boot is open.", "Fetch jack from boot."),
        ("Fetch jack from boot.", "You have jack.", "jack-up the hub the-hub1."),
        ("jack-up the hub the-hub1.", "Hub the-hub1 is not on the ground.",
         "Undo the fastening of the nut nuts1 on the hub the-hub1."),
    ):  # fmt: skip
        mechanic.saw(action, START, answer, ())
        assert said_by(mechanic, answer, [then]) == then
    decision = mechanic.next("", ["Undo the fastening of the nut nuts1 on the hub the-hub1."])
    assert decision is not None
    assert decision.thoughts[0].startswith("I have wrench. "), "the jack is under the hub"


def test_a_nut_that_was_undone_is_no_longer_loose() -> None:
    mechanic = Mechanic(
        ["r1 is on the-hub1.", "The nut nuts1 on the hub the-hub1 is tight."],
        Reader(world("tyreworld", EXAMPLES["tyreworld"])),
    )
    for action, answer in (
        ("Open boot.", "Boot is open."),
        ("Fetch jack from boot.", "You have jack."),
        ("Fetch r1 from boot.", "You have r1."),
        ("jack-up the hub the-hub1.", "Hub the-hub1 is not on the ground."),
        ("Undo the fastening of the nut nuts1 on the hub the-hub1.", "Hub the-hub1 is unfastened. You have nuts1."),
        ("Remove-wheel w1 from the hub the-hub1.", "The-hub1 is free. You have w1."),
        ("put-on-wheel r1 on the hub the-hub1.", "R1 is on the-hub1."),
    ):  # fmt: skip
        mechanic.saw(action, START, answer, ())
    do_up = "Do-up the nut nuts1 on the hub the-hub1."
    decision = mechanic.next("", [do_up])
    assert decision is not None
    assert decision.thoughts == (
        "I have wrench, nuts1, w1. r1 is on the-hub1? r1 is on the-hub1: yes. the nut nuts1 on the hub the-hub1 is "
        "tight? you have nuts1: no. Fastened? the-hub1 is unfastened: no. Nuts1: yes. Wrench: yes. "
        "Up? the-hub1 is not on the ground: yes. I do-up the nut nuts1 on the hub the-hub1.",
    )


def test_the_nut_of_a_hub_that_begins_unfastened_is_known_from_the_goal() -> None:
    start = "Hub the-hub1 is not on the ground. Hub the-hub1 is unfastened. You have nuts1. You have wrench."
    for goal, expected in (("The nut nuts1 on the hub the-hub1 is tight.", "Do-up the nut nuts1 on the hub the-hub1."),
                           ("Hub the-hub1 is fastened.", None)):  # fmt: skip
        mechanic = Mechanic([goal], Reader(world("tyreworld", EXAMPLES["tyreworld"])))
        assert said_by(mechanic, start, ["Do-up the nut nuts1 on the hub the-hub1."]) == expected


def test_a_hub_is_let_down_when_its_wheel_is_put_away() -> None:
    """Else the wheel's errand would jack it up again."""
    mechanic = Mechanic(
        ["hub the-hub1 is on the ground.", "w1 is in boot."],
        Reader(world("tyreworld", EXAMPLES["tyreworld"])),
    )
    start = (
        "Boot is open. Hub the-hub1 is not on the ground. Hub the-hub1 is unfastened. W1 is on the-hub1. "
        "You have nuts1. You have wrench."
    )
    remove = "Remove-wheel w1 from the hub the-hub1."
    assert said_by(mechanic, start, [remove, "Jack-down the hub the-hub1."]) == remove


def test_actions_in_other_words_are_read_as_the_world_reads_them() -> None:
    mechanic = example()
    for action, answer in (
        ("open boot", "Boot is open."),
        ("open boot and fetch jack from boot", "You have jack."),  # open already: it fetches
        ("jack-up the-hub1", "Hub the-hub1 is not on the ground."),
        ("check valid actions", "Valid actions are: "),
        ("undo nuts1 the-hub1", "Hub the-hub1 is unfastened. You have nuts1."),
        ("do-up nuts1 the-hub1", "Hub the-hub1 is fastened."),
    ):
        mechanic.saw(action, START, answer, ())
    undo = "Undo the fastening of the nut nuts1 on the hub the-hub1."
    assert said_by(mechanic, answer, [undo]) == undo


def _play(task: Task) -> tuple[bool, int]:
    env, mechanic = PddlTextEnv(), Mechanic(task.subgoals, Reader(world_of(task)))
    text, info = env.reset(options={"task": task})
    for turn in range(1, 31):
        action = said_by(mechanic, text, env.valid_actions())
        assert action is not None
        after, _, _, _, info = env.step(action)
        mechanic.saw(action, text, after, ())
        text = after
        if info["success"]:
            return True, turn
    return False, 30


def test_it_solves_every_task_with_valid_actions_alone() -> None:
    """All ten open tasks of seed 0."""
    played = [_play(task) for task in load_tasks("open", None, 0) if task.kind == "tyreworld"]
    assert [success for success, _ in played] == [True] * 10
