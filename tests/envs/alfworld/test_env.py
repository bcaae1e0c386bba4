"""The environment's promises: any text survives, episodes are independent, what is offered is accepted."""

import random
import re
from typing import Any

import gymnasium
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalharness.envs import specs
from evalharness.envs.alfworld import SPEC
from evalharness.envs.alfworld.actions import repair
from evalharness.envs.base import InvalidTaskError, NoEpisodeError, Task, TextEnv

TASKS = SPEC.suites.load_tasks("open", None, 7)
ENV = SPEC.make(None)

odd_text = st.one_of(
    st.text(alphabet=st.characters(), max_size=200),
    st.sampled_from(
        [
            "",
            ".",
            "..",
            "put",
            " in ",
            "put a in b in c on d",
            "\x00",
            "\ud800 go to",
            "go to cabinet 1\n",
            "GO TO CABINET 1",
            "look\x1b[31m",
            "x" * 10_000,
            "put " * 3_000,
            "take {o.name} from {r}",
            "#intro#",
            "(and (opened cabinet_bar_00))",
            "check valid actions..",
        ]
    ),
)


def play(env: TextEnv, task: Task, actions: list[str]) -> list[Any]:
    return [env.reset(options={"task": task}), env.goal, *(env.step(action) for action in actions)]


@pytest.mark.slow
@settings(deadline=None)
@given(st.integers(0, 133), st.lists(odd_text, max_size=4))
def test_any_text_survives_and_leaks_into_no_later_episode(index: int, texts: list[str]) -> None:
    task = TASKS[index]
    fresh = play(SPEC.make(None), task, ["look", "inventory"])
    ENV.reset(options={"task": task})
    for text in texts:
        observation, reward, done, truncated, info = ENV.step(text)
        assert isinstance(observation, str)
        assert observation
        assert (reward, done, truncated, info["success"]) == (0.0, False, False, False)
    assert play(ENV, task, ["look", "inventory"]) == fresh


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(st.integers(0, 133), st.integers(0, 133), st.randoms(use_true_random=False))
def test_two_episodes_on_one_instance_equal_two_on_fresh_ones(one: int, two: int, rng: random.Random) -> None:
    shared = SPEC.make(None)
    for index in (one, two):
        task, walker = TASKS[index], SPEC.make(None)
        walker.reset(options={"task": task})
        actions = []
        for _ in range(8):
            actions.append(rng.choice(walker.valid_actions()))
            walker.step(actions[-1])
        assert play(shared, task, actions) == play(SPEC.make(None), task, actions)


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(st.integers(0, 133), st.randoms(use_true_random=False))
def test_everything_offered_is_sorted_and_accepted(index: int, rng: random.Random) -> None:
    task, done = TASKS[index], False
    ENV.reset(options={"task": task})
    plan = ENV.oracle()
    prefix = plan[: rng.randrange(len(plan))]
    play(ENV, task, prefix)
    offered = ENV.valid_actions()
    assert offered == sorted(set(offered))
    listed = ENV.step("check valid actions")[0].removeprefix("Choose an action from these valid actions: ")
    assert sorted(listed.split(", ")) == offered
    for action in offered:
        play(ENV, task, prefix)
        observation, _, done, _, info = ENV.step(action)
        assert info["valid"], action
        assert observation != "Nothing happens.", action
        assert done is info["solved"]


def test_every_offered_action_is_worded_by_exactly_one_template() -> None:
    patterns = {
        name: re.compile(re.sub(r"\\\{\w+\\\}", r"[a-z]+ \\d+", re.escape(template)))
        for name, template in SPEC.actions.templates.items()
    }
    used = set()
    for task in TASKS[::4]:
        ENV.reset(options={"task": task})
        for action in ["look", *ENV.oracle()]:
            for offered in ENV.valid_actions():
                names = [name for name, pattern in patterns.items() if pattern.fullmatch(offered)]
                assert len(names) == 1, offered
                used.update(names)
            ENV.step(action)
    assert used == set(SPEC.actions.templates)


def test_reward_is_the_gain_in_progress_and_looking_repeats_the_latest_sight() -> None:
    task = next(task for task in TASKS if task.kind == "clean")
    room, info = ENV.reset(options={"task": task})
    assert info == {
        "progress": 0.0,
        "success": False,
        "solved": False,
        "valid": True,
        "subgoals_completed": (),
    }
    assert ENV.step("look")[0] == room
    total = 0.0
    for action in ENV.oracle():
        observation, reward, done, _, info = ENV.step(action)
        total += reward
        assert info["progress"] == pytest.approx(total)
        if action.startswith(("go to", "open")):
            assert ENV.step("look")[0] == observation
    assert done
    assert total == pytest.approx(1.0)


def test_the_published_repairs_of_an_action() -> None:
    assert repair("  put mug 1 in fridge 1. ") == "put mug 1 in/on fridge 1"
    assert repair("put mug 1 on shelf 2 .") == "put mug 1 in/on shelf 2"
    assert repair("take mug 1 from shelf 2") == "take mug 1 from shelf 2"
    assert repair("look..") == "look."
    task = TASKS[0]
    ENV.reset(options={"task": task})
    observation, _, _, _, info = ENV.step("look..")
    assert observation != "Nothing happens."
    assert not info["valid"]


def test_it_is_registered_with_gymnasium_and_asks_for_a_task() -> None:
    assert specs()["alfworld"] is SPEC
    env = gymnasium.make(SPEC.gym_id)
    with pytest.raises(InvalidTaskError):
        env.reset()
    with pytest.raises(NoEpisodeError, match="reset"):
        SPEC.make(None).step("look")
