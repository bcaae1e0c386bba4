"""BabyAI in words: what is seen, what can be said, and what a world survives."""

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalharness.envs.babyai import SPEC
from evalharness.envs.babyai.actions import available, listing
from evalharness.envs.babyai.levels import LEVELS, make_level
from evalharness.envs.babyai.observation import COMPLETED, describe
from evalharness.envs.babyai.rules import LabelProgress, matches
from evalharness.envs.babyai.view import SIZE, look
from evalharness.envs.babyai.world import World
from evalharness.envs.base import InvalidTaskError, MissingDataError, Task
from evalharness.envs.surface import ActionSurface
from evalharness.protocol.prompt import load_prompt


def _task(level: str, seed: int, subgoals: tuple[str, ...] = ("You are carrying a ** key",)) -> Task:
    return Task(
        id=f"babyai/agentboard/{LEVELS.index(level):03d}",
        family="babyai",
        suite="agentboard",
        index=LEVELS.index(level),
        goal="",
        difficulty="easy",
        kind=level,
        subgoals=subgoals,
        payload={"level": level, "seed": seed},
    )


def _stock_view(simulator: Any) -> tuple[int, ...]:
    """minigrid's own drawing of the view, in our encoding."""
    image = type(simulator).gen_obs(simulator)["image"]
    return tuple(
        int(kind) if kind < 3 else int(kind) + 16 * int(color) + 256 * int(state)
        for row in reversed(range(SIZE))
        for kind, color, state in (image[column, row] for column in range(SIZE))
    )


@pytest.mark.parametrize("level", LEVELS)
def test_the_view_is_the_simulators_own(level: str) -> None:
    chance = random.Random(level)
    simulator = make_level(level, 77)
    for _ in range(150):
        assert look(simulator) == _stock_view(simulator)
        simulator.step(chance.choice((0, 1, 2, 2, 2, 3, 4, 5)))


def test_levels_are_generated_without_output(capfd: pytest.CaptureFixture[str]) -> None:
    for seed in range(20):
        make_level("UnblockPickup", seed)  # rejects many layouts, and says so in the stock version
    assert capfd.readouterr().out == ""


def test_valid_actions_are_sorted_and_each_is_accepted() -> None:
    env = SPEC.make(None)
    for level in LEVELS:
        chance = random.Random(level)
        env.reset(options={"task": _task(level, 5)})
        for _ in range(8):
            actions = env.valid_actions()
            assert actions == sorted(set(actions))
            action = chance.choice(actions)
            observation, _, _, _, info = env.step(action)
            # As published, an action that needs no move keeps the validity of the step before.
            assert info["valid"] or observation == "No change in state."


def test_every_valid_action_is_worded_by_the_action_table() -> None:
    surface = ActionSurface(SPEC.actions.templates)
    env = SPEC.make(None)
    for level in LEVELS:
        env.reset(options={"task": _task(level, 6)})
        for _ in range(6):
            for action in env.valid_actions():
                parsed = surface.parse(action)
                assert parsed is not None
                assert surface.render(parsed) == action
            env.step(env.valid_actions()[0])


_foreign = (
    "take apple 1 from desk 2",
    "pick-up b1 b2",
    "ACTION: focus on dog",
    "go to",
    "pickup  red ball 1",
    "north",
)
_hostile = (
    "\x00",
    "\ud800",
    "go to \udfff 1",
    "a" * 10_000,
    "turn left\nturn left",
    "\x1b[2J",
    "\t",
    "",
    "İ",
    "drop.",
)


@settings(deadline=None)
@given(
    st.lists(st.one_of(st.text(), st.sampled_from(_foreign + _hostile)), max_size=12), st.sampled_from(LEVELS)
)
def test_any_text_is_answered_and_nothing_leaks_into_the_next_episode(texts: list[str], level: str) -> None:
    task = _task(level, 3)
    used, fresh = SPEC.make(None), SPEC.make(None)
    used.reset(options={"task": task})
    for text in texts:
        observation, _, _, truncated, info = used.step(text)
        assert isinstance(observation, str)
        assert observation
        assert not truncated
        assert 0 <= info["progress"] <= 1
    plan = ["turn left", "check", "move forward", "drop", "turn right", "move forward"]
    assert used.reset(options={"task": task}) == fresh.reset(options={"task": task})
    assert [used.step(action) for action in plan] == [fresh.step(action) for action in plan]


def test_a_sentence_is_read_whatever_its_case_and_margins() -> None:
    env = SPEC.make(None)
    env.reset(options={"task": _task("GoToDoor", 1)})
    left = env.step("  Turn LEFT ")[0]
    env.reset(options={"task": _task("GoToDoor", 1)})
    assert env.step("turn left")[0] == left
    assert env.step("turn left.")[0] == "The action is not recognized. Please check valid actions."


def test_validity_stays_as_it_was_when_nothing_needs_doing() -> None:
    """AgentBoard's stale flag: going to what one already faces keeps the validity of the step before."""
    env = SPEC.make(None)
    env.reset(options={"task": _task("GoToRedBall", 12)})
    target = _walk_to_something(env)
    observation, _, _, _, info = env.step(target)
    assert (observation, info["valid"]) == ("No change in state.", True)
    assert not env.step("dance")[4]["valid"]
    observation, _, _, _, info = env.step(target)
    assert (observation, info["valid"]) == ("No change in state.", False)


def test_an_action_that_changes_nothing_is_told() -> None:
    """A move against something that stands in the way, or to where the agent stands; not a refused one, not `check`."""
    env = SPEC.make(None)
    env.reset(options={"task": _task("GoToRedBall", 12)})
    target = _walk_to_something(env)
    said = [(text, env.step(text)[4]) for text in (target, "check", "dance", "turn left", "turn right")]
    assert [(text, info["no_effect"]) for text, info in said] == [
        (target, True), ("check", False), ("dance", False), ("turn left", False), ("turn right", False),
    ]  # fmt: skip
    blocked = env.step("move forward")[
        4
    ]  # before the object; a wall or a box is refused, a ball or a key is not
    assert blocked["no_effect"] == blocked["valid"]


def _walk_to_something(env: Any) -> str:
    """Face some object; returns the action that goes to it, which now needs no move."""
    for _ in range(4):
        for action in env.valid_actions():
            if action.startswith("go to"):
                env.step(action)
                return next(a for a in env.valid_actions() if a.split()[:4] == action.split()[:4])
        env.step("turn left")
    raise AssertionError("nothing in sight")


def test_a_label_needs_all_its_pieces_in_one_sentence() -> None:
    sentences = ["There is a red ball 2 right in front of you 1 steps away", " You are carrying a key", ""]
    assert matches("There is a red ball **", sentences)
    assert matches(" There is a red ** right in front of you 1 steps away.", [" " + s for s in sentences])
    assert not matches("There is a red ball ** a key.", sentences)


def test_at_most_one_subgoal_is_granted_a_step() -> None:
    progress = LabelProgress([("a ball", "a key", "a box")])
    assert progress.observe("a key and a ball.") == (0,)
    assert progress.observe("a key and a ball.") == (1,)
    assert progress.observe("a key and a ball.") == ()
    assert progress.rate == pytest.approx(2 / 3)


def test_an_alternative_label_counts_for_its_position() -> None:
    progress = LabelProgress([("red open", "red closed"), ("blue open", "blue closed")])
    assert progress.observe("a blue closed door") == (1,)
    assert progress.observe("a red open door") == (0,)
    assert progress.rate == 1


def test_the_worked_example_is_what_the_simulator_answers() -> None:
    """It comes from a level that is in no suite: UnlockPickup without distractors."""
    example = load_prompt(SPEC).example
    assert example is not None
    world = World("UnlockPickupDist", 5, {"distractors": False})
    assert (example.goal, example.observation) == (world.mission, describe(world.view))
    for step in example.steps:
        outcome = world.perform(available(world.view, world.direction).moves[step.action])
        assert step.observation == describe(world.view) + (COMPLETED if outcome.ended else "")
    assert outcome.succeeded


def test_checking_costs_no_move() -> None:
    env = SPEC.make(None)
    env.reset(options={"task": _task("Pickup", 9)})
    before = env.valid_actions()
    observation, reward, terminated, _, info = env.step("please CHECK what I can do")
    assert observation.startswith("You can take the following actions: turn left, turn right")
    assert (reward, terminated, info["valid"]) == (0, False, True)
    assert env.valid_actions() == before


def test_the_listing_is_in_the_published_order() -> None:
    world = World("UnlockPickupDist", 5, {"distractors": False})
    assert listing(available(world.view, world.direction)) == (
        "You can take the following actions: turn left, turn right, move forward, "
        "go to yellow locked door 1, check available actions"
    )


def test_missing_labels_name_the_command_that_gets_them(tmp_path: Any) -> None:
    with pytest.raises(MissingDataError, match=r"evalharness data fetch, .*evalharness data import DIR$"):
        SPEC.suites.load_tasks("agentboard", tmp_path, 0)
    with pytest.raises(MissingDataError, match=r"evalharness data fetch, .*evalharness data import DIR$"):
        SPEC.suites.load_tasks("agentboard", None, 0)


def test_a_foreign_task_is_refused_in_words() -> None:
    env = SPEC.make(None)
    with pytest.raises(InvalidTaskError, match="call reset"):
        env.step("turn left")
    odd = {"level": "GoToRedBall", "seed": 3}
    for more in ({"parameters": {"no": 1}}, {"parameters": 5}):
        task = Task("x/open/0", "babyai", "open", 0, "", "easy", kind="GoToRedBall", payload=odd | more)
        with pytest.raises(InvalidTaskError, match="payload"):
            env.reset(options={"task": task})
    with pytest.raises(InvalidTaskError, match="BabyAI"):
        env.reset(
            options={"task": Task("x/open/0", "x", "open", 0, "", "easy", kind="x", payload={"level": "x"})}
        )
