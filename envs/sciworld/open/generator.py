"""Generate the open suite from the simulator's variations that AgentBoard does not use.

The generator tries the variations of each kind in a random order. It shortens the simulator's own solution until it can
leave out no single action, and checks every plan in the simulator. It accepts a variation if this plan has 3 to 30
turns, and if no accepted task has the same shape, or the same goal and first observation. For suite seeds other than 0,
the tasks of seed 0 count as accepted. If the goal asks to determine or measure something, the plan keeps the
experiment, although the agent could state the answer at once.

The tasks of suite seed 0 are stored in `open_suite.jsonl`. `python -m evalharness.envs.sciworld.open.generator` writes
this file again (seven minutes of CPU time).
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from evalharness.envs.base import MAX_TURNS, MIN_TURNS, SuiteExhaustedError, Task
from evalharness.envs.difficulty import difficulty, search_bits
from evalharness.envs.frozen import FROZEN_SEED, read_frozen_tasks, write_table
from evalharness.envs.sciworld.kinds import EXAMPLE, FAMILY, PUBLISHED, QUOTA, simplifications
from evalharness.envs.sciworld.open.oracle import gold_path, play
from evalharness.envs.sciworld.open.shorten import NOISE, Needs, shorten
from evalharness.envs.sciworld.simulator import Simulator, first_observation, start_score

Answer = Callable[[Sequence[str]], str]
"""Function that plays actions from the start of a task, and returns the observation of the last action."""


def spell_out(plan: Sequence[str], answer: Answer) -> list[str]:
    """Rewrite `pour A in B`, the simulator's wording, to `pour A into B`, the prompt's wording.

    `pour A in B in C` has two readings, because a name may include a place ("cup in art studio"). Use the reading with
    which the simulator gives the same observation.
    """
    spelled: list[str] = []
    for action in plan:
        readings = _readings(action)
        if len(readings) > 1:
            observation = answer([*spelled, action])
            readings = [reading for reading in readings if answer([*spelled, reading]) == observation]
        spelled.append(readings[0] if readings else action)
    return spelled


def _readings(action: str) -> list[str]:
    """Return the readings of a `pour` action, one for each `in`, the last `in` first; for another action the action."""
    if not action.startswith("pour ") or " into " in action:
        return [action]
    places = [match.start() for match in re.finditer(" in ", action)]
    return [f"{action[:place]} into {action[place + 4 :]}" for place in reversed(places)]


HARD_BITS = 67.0
"""A task is hard if `search_bits` of its plan is at least this value. This gives 58 hard tasks; AgentBoard has 56."""


def shape(task: Task) -> str:
    """Return kind, goal and plan of a task, with the colours of boxes and the letters of unknown substances, materials
    and planes replaced by numbers. Two tasks of one shape differ only in such names."""
    numbers: dict[str, str] = {}
    renamed = _NAME.sub(
        lambda match: numbers.setdefault(match[0].lower(), f"<{len(numbers)}>"),
        "\n".join((str(task.payload["task"]), task.goal, *task.payload.get("plan", ()))),
    )
    return renamed.lower()


_FIND_OUT = re.compile("Your task is to (determine|measure) ")
"""Goals that ask for the result of an experiment. A shortest plan would state the result without the experiment."""

_NAME = re.compile(
    r"\b(?:red|green|blue|orange|purple|yellow)(?= box)|(?<=substance )\w\b|(?<=material )\w\b|"
    r"(?<=inclined plane )\w\b|(?<=inclined planes \()\w(?=,)|(?<=, )\w(?=\))",
    re.IGNORECASE,
)


FROZEN = Path(__file__).with_name("open_suite.jsonl")


def generate(suite_seed: int, kinds: Collection[str] = tuple(QUOTA)) -> Iterator[Task]:
    """Yield the tasks of these kinds, with their numbers in the whole suite. All kinds together take minutes."""
    simulator, first = Simulator(), 0
    try:
        for kind, quota in QUOTA.items():
            if kind in kinds:
                yield from generate_kind(simulator, kind, suite_seed, first)
            first += quota
    finally:
        simulator.close()


def generate_kind(simulator: Simulator, kind: str, suite_seed: int, first: int) -> Iterator[Task]:
    """Yield the tasks of one kind, numbered from `first`."""
    frozen = () if suite_seed == FROZEN_SEED else read_frozen_tasks(FROZEN)
    before = [task for task in frozen if task.kind == kind]
    taken = {
        *PUBLISHED.get(kind, ()),
        *(variation for task, variation in EXAMPLE if task == kind),
        *(task.payload["variation"] for task in before),
    }
    order = [variation for variation in range(simulator.variations(kind)) if variation not in taken]
    random.Random(f"sciworld open {suite_seed} {kind}").shuffle(order)
    shapes = {shape(task) for task in before}
    starts = {_start_text(simulator, kind, task.payload["variation"]) for task in before}
    count = 0
    for variation in order:
        if (start := _start_text(simulator, kind, variation)) in starts:
            continue
        task = _accept(simulator, kind, variation, first + count)
        if task is not None and shape(task) not in shapes:
            shapes.add(shape(task))
            starts.add(start)
            count += 1
            yield task
            if count == QUOTA[kind]:
                return
    raise SuiteExhaustedError("ScienceWorld", suite_seed, f"{count} of {QUOTA[kind]} tasks of {kind} fit")


def _loadable_task(kind: str, variation: int, index: int = 0) -> Task:
    """Return a task without goal and plan, with which the simulator can load the variation."""
    return Task(
        id=f"{FAMILY}/open/{index:03d}",
        family=FAMILY,
        suite="open",
        index=index,
        goal="",
        difficulty="easy",
        kind=kind,
        labels="simulator",
        payload={"task": kind, "variation": variation, "simplifications": simplifications(kind)},
    )


def _start_text(simulator: Simulator, kind: str, variation: int) -> str:
    """Return the goal and the first observation."""
    simulator.begin(_loadable_task(kind, variation))
    return f"{simulator.task_description()}\n{first_observation(simulator)}"


def _accept(simulator: Simulator, kind: str, variation: int, index: int) -> Task | None:
    """Return the task of a variation; None if it does not fit the suite."""
    bare = _loadable_task(kind, variation, index)

    def needs(actions: Sequence[str]) -> int | None:
        return play(simulator, bare, actions).success

    gold = gold_path(simulator, bare)
    goal = simulator.task_description()
    plan = _without_noise(gold, needs)
    if plan is None:
        return None  # the simulator's own solution does not solve the task
    shortest = shorten(plan, needs)
    if not _FIND_OUT.match(goal):
        plan = shortest
    if len(shortest) < MIN_TURNS or len(plan) > MAX_TURNS:
        return None
    plan = spell_out(plan, partial(_answer, simulator, bare))
    if needs(plan) != len(plan):
        return None
    return replace(
        bare,
        goal=goal,
        difficulty=difficulty(search_bits(_choices(simulator, bare, plan)), HARD_BITS),
        payload={**bare.payload, "plan": plan, "start_score": _start_score(simulator, bare)},
    )


def _without_noise(gold: Sequence[str], needs: Needs) -> list[str] | None:
    """Return the simulator's solution up to its success, if possible without `NOISE`; None if it never succeeds."""
    for candidate in ([action for action in gold if not NOISE.fullmatch(action)], gold):
        if (length := needs(candidate)) is not None:
            return list(candidate[:length])
    return None


def _answer(simulator: Simulator, task: Task, actions: Sequence[str]) -> str:
    """Play `actions` from the start of `task`, and return the last observation."""
    simulator.begin(task)
    return [simulator.step(action) for action in actions][-1]


def _choices(simulator: Simulator, task: Task, plan: Sequence[str]) -> list[int]:
    """Return the number of valid actions before each action of the plan."""
    simulator.begin(task)
    choices = []
    for action in plan:
        choices.append(len(set(simulator.valid_actions())))
        simulator.step(action)
    return choices


def _start_score(simulator: Simulator, task: Task) -> float:
    simulator.begin(task)
    first_observation(simulator)
    return start_score(simulator)


if __name__ == "__main__":
    write_table(FROZEN, (task.to_json() for task in generate(FROZEN_SEED)))
