"""Thoughts that name the future, and names that are nearly right."""

from __future__ import annotations

from collections import Counter
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from evalharness.envs import specs
from evalharness.envs.base import Task
from evalharness.envs.surface import ActionSurface
from evalharness.training.grounded.injected_errors import _misspell
from evalharness.training.grounded.thoughts import names_unseen
from evalharness.training.teachers.scene import Scene, Step


def scene(at: int) -> Scene:
    spec = specs()["alfworld"]
    steps = (
        Step("go to shelf 1", "On the shelf 1, you see a mug 2.", 0.0, True),
        Step("take mug 2 from shelf 1", "You pick up the mug 2.", 0.5, True),
        Step("go to desk 1", "On the desk 1, you see a pen 3.", 0.5, True),
        Step("put mug 2 in/on desk 1", "You put it.", 1.0, True),
    )
    task = Task("alfworld/open/000", "alfworld", "open", 0, "put a mug in desk.", "easy", "put",
                payload={"object": "mug", "target": "desk"})  # fmt: skip
    return Scene(
        task,
        task.goal,
        "You see a shelf 1, and a desk 1.",
        "",
        steps,
        at,
        ActionSurface(spec.actions.templates),
    )


def test_a_thought_that_names_the_future_is_noticed() -> None:
    own = "go to shelf 1"
    assert names_unseen("The mug 2 is there.", scene(0), own)
    assert names_unseen("Later I see pen 3.", scene(1), "take mug 2 from shelf 1")
    assert not names_unseen("A mug may be on shelf 1 and goes to desk 1.", scene(0), own)
    assert not names_unseen("I take mug 2.", scene(1), "take mug 2 from shelf 1")
    assert not names_unseen("Only mug 21 would do.", scene(0), own)


@given(st.text("abc x-1", min_size=1, max_size=12), st.integers(0, 1000))
def test_a_misspell_name_is_nearly_the_name(name: str, seed: int) -> None:
    if sum(letter.isalpha() for letter in name[1:]) < 1:
        return
    wrong = _misspell(name, Random(seed))
    assert abs(len(wrong) - len(name)) <= 1
    difference = Counter(wrong)
    difference.subtract(Counter(name))
    assert sum(map(abs, difference.values())) <= 1
