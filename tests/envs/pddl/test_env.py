"""The PDDL environment in words: what an action text means, what it answers, and that any text is survived."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pddl_worlds import EXAMPLES, barman, blockworld, gripper, task, tyreworld

from evalharness.envs.base import InvalidTaskError, MissingDataError
from evalharness.envs.pddl import SPEC
from evalharness.envs.pddl.actions import tokens
from evalharness.envs.pddl.adapter import NO_EFFECT, UNCLEAR
from evalharness.envs.pddl_text import PddlError
from evalharness.envs.surface import ActionSurface

CARRY = task("gripper", gripper("(at ball1 roomb) (at ball2 roomb)", {"ball1": "rooma", "ball2": "rooma"}))
TOWER = task("blockworld", blockworld("(on b1 b2) (on b2 b3)", "b1 b2", "b3"))
WHEEL = task("tyreworld", tyreworld("(inflated r1) (have jack)"))
DRINK = task("barman", barman("(contains shot1 ingredient1)", 2, (1, 2)))
TASKS = [CARRY, TOWER, WHEEL, DRINK]


def start(of: Any) -> Any:
    env = SPEC.make(None)
    env.reset(options={"task": of})
    return env


@pytest.mark.parametrize(
    "text",
    [
        "Pick up ball1 at rooma with arm left.",
        "pick ball1 rooma left",
        "PICK UP BALL1 AT ROOMA WITH ARM LEFT",
        "ball1 rooma left pick",
        'I will "pick up ball1" (in rooma), with my left arm!',
        "`pick` ball1 rooma left and ball2 roomb right",
        "  pick\tball1\nrooma left.\n",
        "Pick up ball1 at rooma with arm left. Then move to roomb.",
    ],
)
def test_the_words_count_and_not_the_sentence(text: str) -> None:
    env = start(CARRY)
    observation, _, _, _, info = env.step(text)
    assert info["valid"]
    assert "Ball1 is carrying left." in observation


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("", UNCLEAR),
        ("go north", UNCLEAR),
        ("pick up ball1", UNCLEAR),  # too few objects
        ("pickup ball1 rooma left", UNCLEAR),  # another word
        ("drop ball1 rooma left", UNCLEAR),  # nothing can be dropped at all now
        ("pick rooma ball1 left", NO_EFFECT),  # the order counts
        ("pick ball1 roomb left", NO_EFFECT),
        ("move rooma rooma", NO_EFFECT),
    ],
)
def test_the_answer_tells_an_unclear_action_from_one_without_effect(text: str, answer: str) -> None:
    env = start(CARRY)
    observation, reward, done, truncated, info = env.step(text)
    assert (observation, reward, done, truncated, info["valid"]) == (answer, 0.0, False, False, False)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        # Recorded from NLTK 3.10.4's word_tokenize of the lower-cased text.
        ("Pick up ball1.", ["pick", "up", "ball1", "."]),
        ("ball1.ball2 ball3", ["ball1.ball2", "ball3"]),
        ("go. now", ["go", ".", "now"]),
        ("end..", ["end", ".."]),
        ("ball1's", ["ball1", "'s"]),
        ("'pick ball1'", ["'", "pick", "ball1", "'"]),
        ("a,b 1,2", ["a", ",", "b", "1,2"]),
        ("put-on-wheel--r1", ["put-on-wheel", "--", "r1"]),
        ("**pick** (ball1)", ["*", "*", "pick", "*", "*", "(", "ball1", ")"]),
        ("“pick” ball1’s", ["“", "pick", "”", "ball1", "’", "s"]),
        ("ball1.`", ["ball1.", "`"]),
        ("<pick>ball1</pick>", ["<", "pick", ">", "ball1", "<", "/pick", ">"]),
        ("ball_1 x/y", ["ball_1", "x/y"]),
    ],
)
def test_words_are_cut_as_nltk_cuts_them(text: str, words: list[str]) -> None:
    assert [word for word in tokens(text) if word != "."] == [word for word in words if word != "."]


def test_check_lists_the_valid_actions_sorted_and_costs_nothing() -> None:
    env = start(TOWER)
    before = env.valid_actions()
    for text in ("check valid actions", "CHECK", "please look around and check"):
        observation, _, _, _, info = env.step(text)
        assert observation == "Valid actions are: Pickup b3., Unstack b2 from b1., check valid actions"
        assert info["valid"]
    assert env.valid_actions() == before == ["Pickup b3.", "Unstack b2 from b1.", "check valid actions"]


def test_look_around_shows_the_whole_state_where_only_news_is_shown() -> None:
    env = start(WHEEL)
    first, _ = env.reset(options={"task": WHEEL})
    assert env.step("Open boot.")[0] == "Boot is open."
    observation, _, _, _, info = env.step("Let me look around.")
    assert observation == first.replace("Boot is closed.", "Boot is open.")
    assert info["valid"]
    assert "look around" in env.valid_actions()


def test_progress_is_the_best_share_so_far_and_success_is_now() -> None:
    env = start(TOWER)
    rewards = []
    infos = []
    for action in (
        "Unstack b2 from b1.",
        "Stack b2 on b3.",
        "Unstack b2 from b3.",
        "Stack b2 on b3.",
        "Pickup b1.",
        "Stack b1 on b2.",
    ):
        observation, reward, done, _, info = env.step(action)
        rewards.append(reward)
        infos.append(info)
        assert done is info["solved"] is info["success"]
    assert rewards == [0.0, 0.5, 0.0, 0.0, 0.0, 0.5]
    assert [info["progress"] for info in infos] == [0.0, 0.5, 0.5, 0.5, 0.5, 1.0]
    assert TOWER.subgoals == ("b1 is on b2.", "b2 is on b3.")
    assert [info["subgoals_completed"] for info in infos] == [(), (1,), (), (), (), (0,)]
    assert infos[-1]["solved"]
    assert observation.endswith(" The goal is satisfied.")


def test_the_first_state_is_not_scored() -> None:
    half_done = task("blockworld", blockworld("(on b1 b2) (on b2 b3)", "b3 b2", "b1"))
    env = SPEC.make(None)
    _, info = env.reset(options={"task": half_done})
    assert info["progress"] == 0.0
    assert info["subgoals_completed"] == ()
    _, reward, _, _, info = env.step("Pickup b1.")
    assert (reward, info["progress"], info["subgoals_completed"]) == (0.5, 0.5, (1,))


def test_an_applicable_action_that_changes_nothing_is_not_valid() -> None:
    env = start(DRINK)
    env.step("left grasp shaker1.")
    text = "use hand left and hand right to clean-shaker shaker1"
    assert text in env.valid_actions()
    observation, _, _, _, info = env.step(text)
    assert (observation, info["valid"]) == (NO_EFFECT, False)


@pytest.mark.parametrize("of", TASKS, ids=lambda of: of.kind)
def test_every_valid_action_is_worded_by_one_template_and_accepted(of: Any) -> None:
    surface = ActionSurface(SPEC.actions.templates)
    env = start(of)
    for path in ([], env.oracle()[:1], env.oracle()[:3]):
        env.reset(options={"task": of})
        for action in path:
            env.step(action)
        valid = env.valid_actions()
        assert valid == sorted(set(valid))
        for text in valid:
            parsed = surface.parse(text)
            assert parsed is not None
            assert surface.render(parsed) == text
            matching = [
                n for n, t in SPEC.actions.templates.items() if ActionSurface({n: t}).parse(text) is not None
            ]
            assert matching == [parsed.name]
            env.reset(options={"task": of})
            for action in path:
                env.step(action)
            before = env._state
            info = env.step(text)[4]
            assert info["valid"] or env._state == before


WORDS = ["pick", "move", "stack", "open", "grasp", "fill-shot", "check", "ball1", "rooma", "left"]
WORDS += ["b1", "b2", "boot", "shot1", "ingredient1"]

anything = st.one_of(
    st.text(st.characters(), max_size=200),  # lone surrogates included
    st.lists(
        st.sampled_from([*WORDS, ".", "'", '"', "\x00", "\n", "{x}", "%s", "look around"]),
        max_size=12,
    ).map(" ".join),
    st.sampled_from(
        ["x" * 10_000, ". " * 5_000, "\ud800", "\x00", "{0}", "put apple 1 in/on fridge 1", "pickup"]
    ),
)


@pytest.mark.slow
@settings(deadline=None)
@given(st.sampled_from(TASKS), st.lists(anything, min_size=1, max_size=5))
def test_any_text_is_survived_and_nothing_leaks_into_the_next_episode(of: Any, texts: list[str]) -> None:
    used = start(of)
    for text in texts:
        observation, reward, _, truncated, info = used.step(text)
        assert isinstance(observation, str)
        assert 0.0 <= reward <= info["progress"] <= 1.0
        assert not truncated
    fresh = SPEC.make(None)
    plan = used.oracle()
    assert used.reset(options={"task": of}) == fresh.reset(options={"task": of})
    for text in [*texts, *plan]:
        assert used.step(text) == fresh.step(text)
        assert used.valid_actions() == fresh.valid_actions()


def test_the_oracle_leaves_the_episode_as_it_was() -> None:
    env = start(TOWER)
    env.step("Unstack b2 from b1.")
    before = env.valid_actions()
    plan = env.oracle()
    assert env.valid_actions() == before
    env.reset(options={"task": TOWER})
    assert [env.step(action)[2] for action in plan] == [False] * (len(plan) - 1) + [True]


def test_it_is_made_through_gymnasium() -> None:
    env = gymnasium.make(f"evalharness.envs:{SPEC.gym_id}")
    observation, _ = env.reset(options={"task": TOWER})
    assert observation.startswith("B1 is on the table.")
    assert env.step("Pickup b3.")[0] != observation


def test_missing_data_names_the_command_that_gets_it(tmp_path: Path) -> None:
    for data in (None, tmp_path):
        with pytest.raises(MissingDataError, match=r"evalharness data fetch, .*evalharness data import DIR$"):
            SPEC.suites.load_tasks("agentboard", data, 0)


def test_a_task_without_a_goal_cannot_be_made() -> None:
    with pytest.raises(PddlError, match="goal"):
        task("blockworld", blockworld("", "b1 b2"))


def test_a_task_that_is_not_playable_is_refused() -> None:
    env = SPEC.make(None)
    with pytest.raises(InvalidTaskError, match="reset"):
        env.step("check")
    with pytest.raises(InvalidTaskError):
        env.reset(options={})
    for broken in ({"domain": "(", "problem": ""}, {}, {**TOWER.payload, "problem": EXAMPLES["gripper"]}):
        with pytest.raises(InvalidTaskError):
            env.reset(options={"task": dataclasses.replace(TOWER, payload=broken)})
