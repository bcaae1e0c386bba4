"""The open suite: stories of ours that can be won, only by doing what their subgoals say, and that are frozen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalharness.envs import specs
from evalharness.envs.base import InvalidTaskError, Task
from evalharness.envs.jericho.observation import letters
from evalharness.envs.jericho.open.compiler import STORIES, compile_story
from evalharness.envs.jericho.open.generator import quest_story
from evalharness.envs.jericho.open.quest_source import quest_source
from evalharness.envs.jericho.open.quests import quests_of

SPEC = specs()["jericho"]
TASKS = SPEC.suites.load_tasks("open", None, 0)


def _won(task: Task, plan: list[str]) -> bool:
    environment = SPEC.make(None)
    _, info = environment.reset(options={"task": task})
    for action in plan:
        _, _, terminated, _, info = environment.step(action)
        if terminated:
            break
    return bool(info["success"])


def _check_plan(task: Task) -> list[int]:
    """Play the oracle's plan; returns the turns that completed a subgoal."""
    environment = SPEC.make(None)
    opening, info = environment.reset(options={"task": task})
    assert info["progress"] == 0.0
    patterns = [letters(subgoal) for subgoal in task.subgoals]
    assert not any(pattern in letters(opening) for pattern in patterns)
    plan = environment.oracle()
    assert 3 <= len(plan) <= 30
    turns = []
    for turn, action in enumerate(plan):
        observation, _, terminated, _, info = environment.step(action)
        assert sum(pattern in letters(observation) for pattern in patterns) <= 1, (action, observation)
        assert terminated == (turn == len(plan) - 1)
        if info["subgoals_completed"]:
            turns.append(turn)
    assert (info["progress"], info["success"], info["solved"]) == (1.0, True, True)
    assert info["subgoals_completed"] == (len(task.subgoals) - 1,)
    return turns


@pytest.mark.parametrize("task", TASKS, ids=lambda task: f"{task.index}-{task.kind}")
def test_the_plan_wins_and_every_subgoal_on_it_is_needed(task: Task) -> None:
    plan = SPEC.make(None)
    plan.reset(options={"task": task})
    actions = plan.oracle()
    for turn in _check_plan(task):
        assert not _won(task, [*actions[:turn], *actions[turn + 1 :]]), actions[turn]


def test_every_task_has_labels_of_its_own() -> None:
    assert {task.labels for task in TASKS} == {"ours"}
    assert len({task.goal + str(task.subgoals) for task in TASKS}) == len(TASKS)
    assert all(len(task.subgoals) >= 3 for task in TASKS)


@pytest.mark.parametrize("source", sorted(STORIES.glob("*.inf")), ids=lambda path: path.stem)
def test_the_shipped_story_is_what_its_source_compiles_to(source: Path) -> None:
    assert compile_story(source.read_text(encoding="ascii")) == source.with_suffix(".z5").read_bytes()


def test_the_quests_of_seed_0_are_frozen() -> None:
    for number, quest in enumerate(quests_of(0)):
        source = (STORIES / quest_story(number)).with_suffix(".inf").read_text(encoding="ascii")
        assert quest_source(quest) == source, "run python -m evalharness.envs.jericho.open.generator"


def test_another_seed_has_no_story_of_seed_0(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each has its goal, map, gates and hiding places for itself, and can be won only by its plan's steps."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    others = SPEC.suites.load_tasks("open", None, 5)
    assert [task.id for task in others] == [task.id for task in TASKS]
    assert not {task.goal for task in others} & {task.goal for task in TASKS}
    assert not {tuple(task.payload["plan"]) for task in others} & {
        tuple(task.payload["plan"]) for task in TASKS
    }
    assert len({task.goal for task in others}) == len({task.kind for task in others}) * 2 == 20
    for task in others:
        _check_plan(task)
    assert len(list((tmp_path / "evalharness" / "stories").glob("*.z5"))) == len(others)
    assert not list(tmp_path.rglob("*.part"))


def test_a_quest_of_another_version_is_not_played() -> None:
    """Its payload names the quest by seed and number, and the words of a theme can change."""
    task = next(iter(SPEC.suites.generate(5))) if SPEC.suites.generate else None
    assert task is not None
    changed = replace(task, payload={**task.payload, "plan": ["north", *task.payload["plan"]]})
    with pytest.raises(InvalidTaskError, match="seed 5"):
        SPEC.make(None).reset(options={"task": changed})


@settings(deadline=None)
@given(seed=st.integers(1, 10**9))
def test_any_seed_gives_quests_with_short_plans_that_are_unlike_each_other(seed: int) -> None:
    quests, frozen = quests_of(seed), quests_of(0)
    assert len(quests) == SPEC.suites.expected["open"]
    for of_each in (lambda quest: quest.goal, lambda quest: quest.shape):
        own = {of_each(quest) for quest in quests}
        assert len(own) == len(quests)
        assert not own & {of_each(quest) for quest in frozen}
    for quest in quests:
        assert 3 <= len(quest.subgoals) <= len(quest.plan) <= 30
        assert len(set(quest.subgoals)) == len(quest.subgoals)
        assert len({room.spot for room in quest.rooms}) == len(quest.rooms)


@pytest.mark.parametrize("text", ["qwerty", "with qwerty qwerty lamp", "take qwerty"])
def test_nonsense_is_not_valid(text: str) -> None:
    """In every story, for 30 turns; the published rule finds all of it valid."""
    environment = SPEC.make(None)
    for task in TASKS:
        environment.reset(options={"task": task})
        for _ in range(30):
            info = environment.step(text)[4]
            assert (info["valid"], info["published_valid"], info["no_effect"]) == (False, True, False), (
                task.id
            )


@pytest.mark.slow
def test_a_valid_action_that_changes_nothing_is_told() -> None:
    environment = SPEC.make(None)
    for task in TASKS:
        environment.reset(options={"task": task})
        for action, without_effect in (
            ("northwest", True),  # "You can't go that way.", in every story
            ("jump", True),
            ("look", False),  # finding out changes nothing either, and is no error
            ("inventory", False),
            ("wait", False),
            ("check valid actions", False),
        ):
            info = environment.step(action)[4]
            assert (info["valid"], info["no_effect"]) == (True, without_effect), (task.id, action)
        environment.reset(options={"task": task})
        told = [environment.step(action)[4] for action in task.payload["plan"]]
        assert all(info["valid"] for info in told), task.id
        assert not any(info["no_effect"] for info in told), task.id
