"""What shared tests and benchmarks have to know of ScienceWorld."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from evalharness.envs.base import Task, TextEnv
from evalharness.envs.sciworld import SPEC
from evalharness.envs.sciworld.open.generator import shape
from tests.support.contracts import Contract


def goal_template(task: Task) -> str:
    return task.goal[:30]


def none_is_done_in_two_turns(tasks: Sequence[Task]) -> None:
    """In the task with the fewest valid actions at its start; its pairs take the simulator a minute.

    The simulator's goals are sequences that begin with a focus, and a wrong focus fails the task. So one of two turns
    is a right focus: the first, and the second is anything; or the second, on something that the first has made,
    shown or reached.
    """
    env = SPEC.make(None)
    try:
        task = tasks[3]
        tried = 0
        env.reset(options={"task": task})
        wrong: set[str] = set()
        for first in sorted(env.valid_actions(), key=lambda action: not action.startswith("focus on ")):
            env.reset(options={"task": task})
            _, _, ended, _, info = env.step(first)
            assert not info["success"], (task.id, first)
            if first.startswith("focus on ") and info["progress"] == 0:
                wrong.add(first)
            if ended or first in wrong:
                continue
            after = env.valid_actions()
            if not first.startswith("focus on "):
                after = [action for action in after if action.startswith("focus on ") and action not in wrong]
            for second in after:
                env.reset(options={"task": task})
                env.step(first)
                assert not env.step(second)[4]["success"], (task.id, first, second)
                tried += 1
        assert tried > 0
    finally:
        env.close()


def things(task: Task, environment: TextEnv, first_observation: str) -> int:
    """What is in sight at the start."""
    return first_observation.count("\n\t")


CONTRACT = Contract(
    open_tasks=90,
    shape=shape,
    goal_template=goal_template,
    none_is_done_in_two_turns=none_is_done_in_two_turns,
    things=things,
    names=st.from_regex(r"(flower pot [1-9]|metal cup|orange)", fullmatch=True),
    refusal="No known action matches that input.",
    # It lists `go OBJ` and takes `go to OBJ`, the prompt's form, as well.
    lists_other_words=True,
    # Its steps are slow, and some plans long.
    stride=5,
    slow=True,
)
