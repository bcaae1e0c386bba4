"""The ScienceWorld environment, without any published data."""

from __future__ import annotations

import random
from collections.abc import Iterator

import gymnasium
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalharness.envs import specs
from evalharness.envs.base import InvalidTaskError, MissingDataError, Task
from evalharness.envs.sciworld.actions import ACTIONS, CHECK, was_carried_out
from evalharness.envs.sciworld.adapter import ScienceWorldEnv
from evalharness.envs.sciworld.kinds import SIMPLIFICATIONS
from evalharness.envs.sciworld.open.oracle import fit_to_labels
from evalharness.envs.sciworld.open.shorten import shorten
from evalharness.envs.sciworld.progress import LabelProgress, score_progress
from evalharness.envs.sciworld.tasks import load_tasks
from evalharness.envs.surface import ActionSurface

pytestmark = pytest.mark.slow

SPEC = specs()["sciworld"]


def _task(name: str, variation: int, *subgoals: str, simplifications: str = SIMPLIFICATIONS) -> Task:
    return Task(
        id=f"sciworld/agentboard/{variation:03d}",
        family="sciworld",
        suite="agentboard",
        index=variation,
        goal="Do it.",
        difficulty="easy",
        kind=name,
        labels="ours" if subgoals else "simulator",
        subgoals=subgoals,
        payload={"task": name, "variation": variation, "simplifications": simplifications},
    )


FIND = _task("find-animal", 5, "You move to the outside.", "You focus on the .+ egg.", "In your inventory")
"""Starts in the workshop, a door from the hallway; eggs of animals lie outside."""
TO_THE_EGG = ("go to hallway", "go to kitchen", "go to outside", "focus on blue jay")


@pytest.fixture(scope="module")
def env() -> Iterator[ScienceWorldEnv]:
    env = ScienceWorldEnv()
    yield env
    env.close()


def test_it_is_registered_with_gymnasium() -> None:
    env = gymnasium.make("evalharness/ScienceWorld-v0")
    assert isinstance(env.unwrapped, ScienceWorldEnv)
    env.close()


def test_a_subgoal_counts_once_seen_in_any_order_and_for_good() -> None:
    labels = LabelProgress(["go (north|south)", "the end", "north"])
    assert labels.see("you go north") == (0, 2)
    assert labels.rate == 2 / 3
    assert labels.see("you go south") == ()
    assert not labels.success
    assert labels.see("this is the end.") == (1,)
    assert labels.success
    assert labels.rate == 1.0


def test_a_label_that_is_no_regular_expression_is_taken_literally() -> None:
    labels = LabelProgress(["book (unfinished"])
    assert labels.see("You read the book (unfinished).") == (0,)


def test_a_failed_task_has_no_progress_and_never_a_negative_one() -> None:
    assert [score_progress(score) for score in (-1.0, 0.0, 0.25, 1.0)] == [0.0, 0.0, 0.25, 1.0]


def test_an_episode_by_the_label_rules(env: ScienceWorldEnv) -> None:
    first, info = env.reset(options={"task": FIND})
    assert "\nIn your inventory, you see:" in first
    assert info == {
        "progress": 0.0,
        "success": False,
        "solved": False,
        "valid": True,
        "subgoals_completed": (),
    }
    observation, reward, terminated, truncated, info = env.step(CHECK)
    assert observation.startswith("Choose an action from these valid actions: activate OBJ, close OBJ, ")
    assert observation.endswith(", wait1, " + CHECK)
    assert "reset" not in observation
    assert (reward, terminated, truncated, info["valid"]) == (0.0, False, False, True)
    assert env.step("dance")[0] == "No known action matches that input."
    rewards = [env.step(f"  {action}\n")[1] for action in TO_THE_EGG]
    assert rewards == pytest.approx([0, 0, 1 / 3, 1 / 3])
    observation, _, terminated, _, info = env.step("inventory")
    assert terminated
    assert info["success"]
    assert not info["solved"], "the simulator wants the egg in a box"
    assert info["progress"] == 1.0
    assert info["subgoals_completed"] == (2,)


def test_without_labels_the_simulator_judges(env: ScienceWorldEnv) -> None:
    task = _task("find-animal", 5)
    env.reset(options={"task": task})
    plan = [*TO_THE_EGG, "pick up blue jay", "go to kitchen"]
    progress = [env.step(action)[4]["progress"] for action in plan]
    assert progress == sorted(progress)
    assert 0 < progress[-1] < 1
    _, _, terminated, _, info = env.step("move egg blue jay egg in inventory to purple box")
    assert terminated
    assert info["success"]
    assert info["solved"]
    assert info["progress"] == 1.0


def test_without_labels_a_mistake_that_fails_the_task_ends_it(env: ScienceWorldEnv) -> None:
    env.reset(options={"task": _task("find-animal", 5)})
    _, _, terminated, _, info = env.step("focus on air")
    assert terminated
    assert not info["success"]
    assert info["progress"] == 0.0


def test_with_labels_the_same_mistake_is_overlooked(env: ScienceWorldEnv) -> None:
    env.reset(options={"task": FIND})
    assert not env.step("focus on air")[2]


@pytest.mark.parametrize(
    ("action", "valid"),
    [
        ("look around", True),
        ("task", True),
        ("help", True),
        ("go to hallway", True),
        ("go to moon", False),
        ("go to outside", False),
        ("open door to hallway", False),
        (
            "examine door to hallway",
            False,
        ),  # the simulator's own error: "ERROR: SHOULD USE OVERRIDE FOR PORTAL."
        ("close door to hallway", True),
        ("focus on wire", False),
        ("eat agent", False),
        ("mix orange", True),  # "That container is empty, ...": done, without effect, as the simulator has it
        ("focus on orange", True),
        ("pick up air", False),
        ("use orange on air", False),
        ("check valid actions", True),
        ("", False),
    ],
)
def test_an_action_is_valid_when_the_simulator_carried_it_out(
    env: ScienceWorldEnv, action: str, valid: bool
) -> None:
    env.reset(options={"task": FIND})
    observation, _, _, _, info = env.step(action)
    assert info["valid"] is valid, observation


def test_a_choice_among_ambiguous_meanings_is_valid_when_it_is_on_the_list(env: ScienceWorldEnv) -> None:
    env.reset(options={"task": FIND})
    env.step("go to hallway")
    observation, *_, info = env.step("close door")
    assert observation.startswith("Ambiguous request")
    assert not info["valid"]
    assert env.valid_actions()[:3] == ["0", "1", "2"]
    assert env.step("1")[4]["valid"]
    env.step("close door")
    assert not env.step("77")[4]["valid"]
    assert env.step("look around")[4]["valid"], "the request is off the table"


def test_valid_actions_are_sorted_known_to_the_parser_and_leave_the_world_alone(env: ScienceWorldEnv) -> None:
    task = _task("chemistry-mix-paint-secondary-color", 30)
    stream = random.Random(0)
    first = env.reset(options={"task": task})[0]
    offered = env.valid_actions()
    assert offered == sorted(set(offered))
    assert env.valid_actions() == offered
    assert "reset task" not in offered
    assert env.step("look around")[0] in first
    for action in stream.sample(offered, 40):
        env.reset(options={"task": task})
        assert env.step(action)[0] != "No known action matches that input.", action


def test_every_action_template_is_understood(env: ScienceWorldEnv) -> None:
    """Each template, filled in, is something the simulator parses; and parsing it by the table gives it back."""
    surface = ActionSurface(ACTIONS)
    things = {
        "object": "battery", "container": "desk", "location": "hallway", "substance": "air", "liquid": "desk",
        "device": "red light bulb", "tool": "battery", "document": "desk", "food": "orange",
        "terminal": "battery anode", "terminal_of_another": "black wire terminal 1",
    }  # fmt: skip
    task = _task("power-component", 0, simplifications="openDoors")
    env.reset(options={"task": task})
    env.step("go to hallway")
    env.step("go to workshop")
    unknown = []
    for name, template in ACTIONS.items():
        text = template.format(**things)
        action = surface.parse(text)
        assert action is not None
        assert (action.name, surface.render(action)) == (name, text)
        if env.step(text)[0] == "No known action matches that input.":
            unknown.append(text)
        env.step("go to workshop")
    assert unknown in ([], [f"deactivate {things['device']}"]) or all("desk" in text for text in unknown), (
        unknown
    )


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.one_of(
        st.text(max_size=200),
        st.text(alphabet=st.characters(categories=["Cs", "Cc", "Zl", "Zp"]), max_size=20),
        st.sampled_from(
            [
                "x" * 10_000,
                "open " * 3_000,
                "\ud800",
                "go to\x00kitchen",
                "look\naround",
                "move agent to agent in agent in agent",
                "take apple 1 from table 1",
                "(pick a b)",
                "toggle and go through red door 1",
                "-1",
                "0",
                "99999999999999999999",
                "yes",
                "objects",
                "help",
                "reset task",
                "connect anode in battery to wire",
            ]
        ),
    )
)
def test_any_text_is_survived(env: ScienceWorldEnv, text: str) -> None:
    first, _ = env.reset(options={"task": FIND})
    for action in (text, "look at wire", text, "move agent to inventory", text):
        observation, _, _, truncated, _ = env.step(action)
        assert isinstance(observation, str)
        assert not truncated
    assert env.reset(options={"task": FIND})[0] == first


def test_two_episodes_on_one_instance_equal_two_on_fresh_ones(env: ScienceWorldEnv) -> None:
    def episode(env: ScienceWorldEnv, seed: int) -> list[str]:
        stream = random.Random(seed)
        seen = [env.reset(options={"task": _task("find-living-thing", 20 + seed, "never")})[0]]
        for _ in range(12):
            seen.append(env.step(stream.choice(env.valid_actions()))[0])
        return seen

    def alone(seed: int) -> list[str]:
        fresh = ScienceWorldEnv()
        seen = episode(fresh, seed)
        fresh.close()
        return seen

    assert [episode(env, seed) for seed in (0, 1)] == [alone(seed) for seed in (0, 1)]


@pytest.mark.parametrize(
    "payload",
    [{}, {"task": "boil"}, {"task": "no such task", "variation": 1, "simplifications": ""}],
)
def test_a_task_that_the_simulator_does_not_have_is_refused(
    env: ScienceWorldEnv, payload: dict[str, object]
) -> None:
    task = Task("sciworld/agentboard/000", "sciworld", "agentboard", 0, "", "easy", "boil", payload=payload)
    with pytest.raises(InvalidTaskError):
        env.reset(options={"task": task})


def test_missing_labels_name_the_command_that_gets_them(tmp_path: object) -> None:
    with pytest.raises(MissingDataError, match="evalharness data"):
        load_tasks("agentboard", None, 0)


@pytest.mark.parametrize("text", ["The door is now open.", "an apple", "You focus on the air.", ""])
def test_what_is_no_refusal_was_carried_out(text: str) -> None:
    assert was_carried_out(text)


def test_a_gold_path_is_fitted_to_the_thing_the_label_names() -> None:
    gold = ["go to outside", "focus on tree", "pick up tree", "move tree to red box"]
    fitted = fit_to_labels(
        gold,
        [
            "You focus on the dove egg.",
            "You move the dove to the inventory.",
            "You move the dove to the red box.",
        ],
    )
    assert fitted[:4] == ["go to outside", "focus on dove", "pick up dove", "move dove to red box"]


def test_shortening_leaves_nothing_that_can_be_left_out() -> None:
    def needs(actions: object) -> int | None:
        text = " ".join(actions)  # type: ignore[call-overload]
        return len(text.split()) if "a" in text and text.find("b") > text.find("a") else None

    assert shorten(["x", "open door", "a", "y", "wait1", "wait1", "b", "z"], needs) == ["a", "b"]
    with pytest.raises(ValueError, match="reach"):
        shorten(["b"], needs)
