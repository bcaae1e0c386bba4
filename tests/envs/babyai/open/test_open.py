"""BabyAI's open suite: generated, frozen, solvable, not solved by chance; milestones that the simulator verifies."""

import random
from collections import Counter
from dataclasses import replace

import pytest
from oracle_plans import oracle_plan

from evalharness.envs.babyai import SPEC
from evalharness.envs.babyai.levels import LEVELS, SEEDS, make_level
from evalharness.envs.babyai.mission import milestones
from evalharness.envs.babyai.open.generator import (
    LONGEST_PLAN,
    SHORTEST_PLAN,
    generate,
    generate_level,
    start_of,
)
from evalharness.envs.babyai.world import World
from evalharness.envs.base import InvalidTaskError, SuiteExhaustedError, Task, TextEnv
from evalharness.envs.frozen import FROZEN_SEED
from evalharness.suites.open import plan_hash, read_frozen_proofs


@pytest.fixture(scope="module")
def tasks() -> list[Task]:
    return SPEC.suites.load_tasks("open", None, FROZEN_SEED)


@pytest.fixture
def env() -> TextEnv:
    return SPEC.make(None)


def _of(tasks: list[Task], level: str, number: int = 0) -> Task:
    return [task for task in tasks if task.kind == level][number]


def test_the_suite_has_four_tasks_of_each_published_level_on_other_seeds(tasks: list[Task]) -> None:
    assert [task.kind for task in tasks] == [level for level in LEVELS for _ in range(4)]
    assert not {task.payload["seed"] for task in tasks} & set(SEEDS)
    assert Counter(task.difficulty for task in tasks)["hard"] == 27


def test_no_two_tasks_are_equal(tasks: list[Task], env: TextEnv) -> None:
    """Neither in layout nor in goal and first observation."""
    assert len({task.content_hash for task in tasks}) == 112
    layouts = {
        str(make_level(task.kind, task.payload["seed"], task.payload.get("parameters"))) for task in tasks
    }
    assert len(layouts) == 112
    starts = {(task.goal, env.reset(options={"task": task})[0]) for task in tasks}
    assert len(starts) == 112


def test_a_task_begins_without_progress(tasks: list[Task], env: TextEnv) -> None:
    for task in tasks:
        observation, info = env.reset(options={"task": task})
        assert (task.goal, observation) == start_of(task)
        assert (env.goal, info["progress"], info["success"]) == (task.goal, 0, False)


@pytest.mark.parametrize("level", ["GoToDoor", "OpenRedDoor", "UnlockToUnlock"])
def test_the_frozen_table_is_what_the_generator_makes(level: str, tasks: list[Task]) -> None:
    assert list(generate_level(level, FROZEN_SEED)) == [task for task in tasks if task.kind == level]


@pytest.mark.slow(90)
@pytest.mark.timeout(1800)
def test_the_whole_frozen_suite_is_what_the_generator_makes(tasks: list[Task]) -> None:
    assert list(generate(FROZEN_SEED)) == tasks


def test_a_level_without_a_further_task_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalharness.envs.babyai.open.generator.MOST_TRIED", 0)
    with pytest.raises(SuiteExhaustedError, match=r"seed 7 .* 0 of 4 .*KeyCorridorS6R3"):
        list(generate_level("KeyCorridorS6R3", 7))


@pytest.mark.slow(20)
def test_another_suite_seed_makes_other_tasks() -> None:
    zero, one = (list(generate_level("KeyCorridorS6R3", seed)) for seed in (0, 1))
    assert not {task.payload["seed"] for task in zero} & {task.payload["seed"] for task in one}
    assert not {start_of(task) for task in zero} & {start_of(task) for task in one}


def _play(env: TextEnv, task: Task, plan: list[str]) -> None:
    """The plan solves the task, and progress grows from 0 to 1, reached with success and not before."""
    _, info = env.reset(options={"task": task})
    assert info["progress"] == 0
    gained = 0.0
    completed: list[int] = []
    for turn, action in enumerate(plan, start=1):
        before = info["progress"]
        _, reward, terminated, truncated, info = env.step(action)
        gained += reward
        completed.extend(info["subgoals_completed"])
        assert info["valid"]
        assert before <= info["progress"]
        assert terminated == info["success"] == info["solved"] == (turn == len(plan))
        assert (info["progress"] == 1) == info["success"]
        assert not truncated
    assert gained == pytest.approx(1)
    assert sorted(completed) == list(range(len(task.subgoals)))


@pytest.mark.slow(20)
def test_the_oracle_solves_every_task(tasks: list[Task], env: TextEnv) -> None:
    for task in tasks:
        env.reset(options={"task": task})
        plan = oracle_plan(env, task)
        assert SHORTEST_PLAN <= len(plan) <= LONGEST_PLAN
        assert plan_hash(plan) == read_frozen_proofs()[task.id].proof.plan_sha256
        _play(env, task, plan)


def test_the_oracle_leaves_the_episode_as_it_was(tasks: list[Task], env: TextEnv) -> None:
    task = _of(tasks, "UnlockPickupDist")
    other = SPEC.make(None)
    for world in (env, other):
        world.reset(options={"task": task})
        world.step("turn left")
    assert env.oracle() == env.oracle()
    assert env.step("turn left") == other.step("turn left")


def test_chance_meets_the_rules_of_progress(tasks: list[Task], env: TextEnv) -> None:
    """Every listed action is valid, progress never falls, and it is full exactly when the mission is accomplished."""
    for task in tasks:
        chance = random.Random(task.id)
        _, info = env.reset(options={"task": task})
        for _ in range(12):
            before = info["progress"]
            _, reward, terminated, _, info = env.step(chance.choice(env.valid_actions()))
            assert info["valid"]
            assert info["progress"] - before == pytest.approx(reward)
            assert reward >= 0
            assert (info["progress"] == 1) == info["success"] == info["solved"]
            if terminated:
                break


def test_goals_keep_the_words_of_order(tasks: list[Task]) -> None:
    goals = " | ".join(task.goal for task in tasks)
    assert ", then " in goals
    assert " after you " in goals


@pytest.mark.slow
def test_milestones_of_ordered_instructions_come_in_order(tasks: list[Task], env: TextEnv) -> None:
    for number in range(4):
        task = _of(tasks, "OpenRedBlueDoorsDebug", number)
        assert task.goal == "open the red door, then open the blue door"
        env.reset(options={"task": task})
        completed = [
            task.subgoals[index]
            for action in env.oracle()
            for index in env.step(action)[4]["subgoals_completed"]
        ]
        assert completed.index("open the red door") < completed.index("see the blue door")


def test_doing_the_second_instruction_first_completes_nothing(env: TextEnv) -> None:
    task = _made("OpenRedBlueDoorsDebug", 3)
    env.reset(options={"task": task})
    opened = False
    for _ in range(20):
        blue = [action for action in env.valid_actions() if action.startswith("toggle and go through blue")]
        _, _, _, _, info = env.step(blue[0] if blue else "turn left")
        completed = [task.subgoals[index] for index in info["subgoals_completed"]]
        assert not any("blue" in text for text in completed)
        if blue:
            opened = True
            break
    assert opened


def _made(level: str, seed: int) -> Task:
    """A task like those of the suite, of any seed."""
    world = World(level, seed)
    return Task(
        id="babyai/open/000",
        family="babyai",
        suite="open",
        index=0,
        goal=world.mission,
        difficulty="easy",
        kind=level,
        labels="simulator",
        subgoals=tuple(milestone.text for milestone in milestones(world)),
        payload={"level": level, "seed": seed},
    )


def test_a_strict_mission_that_fails_ends_the_episode_without_success(env: TextEnv) -> None:
    """PickupDistDebug fails as soon as a wrong object is picked up."""
    for seed in range(20):
        task = _made("PickupDistDebug", seed)
        env.reset(options={"task": task})
        color = task.goal.split()[-2]
        wrong = [
            action for action in env.valid_actions() if action.startswith("pickup") and color not in action
        ]
        if " object" not in task.goal or not wrong:
            continue
        observation, _, terminated, _, info = env.step(wrong[0])
        assert terminated
        assert not info["success"]
        assert not info["solved"]
        assert "completed" not in observation
        return
    raise AssertionError("no seed offers a wrong object at once")


def test_locked_doors_on_the_way_are_milestones() -> None:
    texts = [milestone.text for milestone in milestones(World("UnlockToUnlock", 1))]
    kinds = [text.split()[0] for text in texts]
    assert kinds == ["hold", "unlock", "hold", "unlock", "see", "face", "pick"]


def test_a_task_of_another_version_is_refused(tasks: list[Task], env: TextEnv) -> None:
    with pytest.raises(InvalidTaskError, match="subgoals"):
        env.reset(options={"task": replace(tasks[0], subgoals=("see the moon",))})


@pytest.mark.parametrize(
    "level", ["GoToSeqS5R2", "UnlockPickupDist", "OpenRedBlueDoorsDebug", "UnblockPickup"]
)
def test_a_world_returns_to_any_earlier_state(level: str) -> None:
    from evalharness.envs.babyai.actions import available

    world, chance = World(level, 8), random.Random(8)
    visited = []
    for _ in range(40):
        visited.append((world.state(), world.view))
        moves = available(world.view, world.direction).moves
        world.perform(moves[chance.choice(sorted(moves))])
    chance.shuffle(visited)
    for state, view in visited:
        world.restore(state)
        assert (world.state(), world.view) == (state, view)
