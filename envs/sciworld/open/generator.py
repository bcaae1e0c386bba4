"""The open suite: (task, variation) pairs of the simulator that are not in the published set, proven solvable in time.

Kinds and their numbers are fixed in `QUOTA`. The variations of a kind are tried in an order drawn from the suite seed;
one is taken when the simulator's own solution, shortened by replay until no single action can be left out, has 3 to
30 turns, and no task taken before is the same up to renaming or begins with the same goal and observation. To suite
seeds other than 0 the tasks of seed 0 are taken before. Where the goal asks to determine or measure something
the plan keeps the simulator's experiment, although naming the answer would do.

Suite seed 0 is frozen in `open_suite.jsonl`; `python -m evalharness.envs.sciworld.open.generator` makes that file anew
(seven minutes of CPU time).
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
from evalharness.envs.frozen import FROZEN_SEED, frozen_tasks, write_table
from evalharness.envs.sciworld.kinds import EXAMPLE, FAMILY, PUBLISHED, QUOTA, simplifications
from evalharness.envs.sciworld.open.oracle import gold_path, play
from evalharness.envs.sciworld.open.shorten import NOISE, Needs, shorten
from evalharness.envs.sciworld.simulator import Simulator, first_observation, start_score

Answer = Callable[[Sequence[str]], str]
"""Plays actions in a fresh world; what it says to the last of them."""


def spelled_out(plan: Sequence[str], answer: Answer) -> list[str]:
    """`plan` with every `pour A in B`, the simulator's own form, as `pour A into B`, the form of the prompt.

    Things are known by their places ("cup in art studio"), so `pour A in B in C` has two readings; the world
    decides: the one to which it gives the same answer is meant.
    """
    spelled: list[str] = []
    for action in plan:
        readings = _readings(action)
        if len(readings) > 1:
            said = answer([*spelled, action])
            readings = [reading for reading in readings if answer([*spelled, reading]) == said]
        spelled.append(readings[0] if readings else action)
    return spelled


def _readings(action: str) -> list[str]:
    """With each `in` taken for the action's, the last first; the action itself when it is no pouring."""
    if not action.startswith("pour ") or " into " in action:
        return [action]
    places = [match.start() for match in re.finditer(" in ", action)]
    return [f"{action[:place]} into {action[place + 4 :]}" for place in reversed(places)]


HARD_BITS = 67.0
"""Bits of search (`evalharness.envs.difficulty`) from which a task counts as hard. It makes 58 tasks hard; of the
published ones 56 are."""


def shape(task: Task) -> str:
    """An open task up to renaming: colours of boxes, letters of unknown substances and planes are mere names."""
    numbers: dict[str, str] = {}
    renamed = _NAME.sub(
        lambda match: numbers.setdefault(match[0].lower(), f"<{len(numbers)}>"),
        "\n".join((str(task.payload["task"]), task.goal, *task.payload.get("plan", ()))),
    )
    return renamed.lower()


_FIND_OUT = re.compile("Your task is to (determine|measure) ")
"""Goals with an answer to be found by an experiment. The shortest plan
just gives it; the one that is kept makes the experiment."""

_NAME = re.compile(
    r"\b(?:red|green|blue|orange|purple|yellow)(?= box)|(?<=substance )\w\b|(?<=material )\w\b|"
    r"(?<=inclined plane )\w\b|(?<=inclined planes \()\w(?=,)|(?<=, )\w(?=\))",
    re.IGNORECASE,
)


FROZEN = Path(__file__).with_name("open_suite.jsonl")
"""The tasks of suite seed 0."""


def generate(suite_seed: int, kinds: Collection[str] = tuple(QUOTA)) -> Iterator[Task]:
    """The suite's tasks as they are found, numbered as in the whole suite; minutes for all kinds."""
    simulator, first = Simulator(), 0
    try:
        for kind, quota in QUOTA.items():
            if kind in kinds:
                yield from of_kind(simulator, kind, suite_seed, first)
            first += quota
    finally:
        simulator.close()


def of_kind(simulator: Simulator, kind: str, suite_seed: int, first: int) -> Iterator[Task]:
    """Those of one kind, numbered from `first`."""
    frozen = () if suite_seed == FROZEN_SEED else frozen_tasks(FROZEN)
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
    found = 0
    for variation in order:
        if (start := _start_text(simulator, kind, variation)) in starts:
            continue
        task = _accept(simulator, kind, variation, first + found)
        if task is not None and shape(task) not in shapes:
            shapes.add(shape(task))
            starts.add(start)
            found += 1
            yield task
            if found == QUOTA[kind]:
                return
    raise SuiteExhaustedError("ScienceWorld", suite_seed, f"{found} of {QUOTA[kind]} tasks of {kind} fit")


def _bare(kind: str, variation: int, index: int = 0) -> Task:
    """As much of a task as the simulator needs to load it."""
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
    """What a player meets: goal and first observation."""
    simulator.begin(_bare(kind, variation))
    return f"{simulator.task_description()}\n{first_observation(simulator)}"


def _accept(simulator: Simulator, kind: str, variation: int, index: int) -> Task | None:
    """The task of a variation when it is fit for the suite."""
    bare = _bare(kind, variation, index)

    def needs(actions: Sequence[str]) -> int | None:
        return play(simulator, bare, actions).success

    gold = gold_path(simulator, bare)
    goal = simulator.task_description()
    plan = _without_noise(gold, needs)
    if plan is None:
        return None  # the simulator's own solution does not score in full
    shortest = shorten(plan, needs)
    if not _FIND_OUT.match(goal):
        plan = shortest
    if len(shortest) < MIN_TURNS or len(plan) > MAX_TURNS:
        return None
    plan = spelled_out(plan, partial(_answer, simulator, bare))
    if needs(plan) != len(plan):
        return None
    return replace(
        bare,
        goal=goal,
        difficulty=difficulty(search_bits(_choices(simulator, bare, plan)), HARD_BITS),
        payload={**bare.payload, "plan": plan, "start_score": _start_score(simulator, bare)},
    )


def _without_noise(gold: Sequence[str], needs: Needs) -> list[str] | None:
    """The gold path up to success, without what only looks where that is enough; None when it never succeeds."""
    for candidate in ([action for action in gold if not NOISE.fullmatch(action)], gold):
        if (length := needs(candidate)) is not None:
            return list(candidate[:length])
    return None


def _answer(simulator: Simulator, task: Task, actions: Sequence[str]) -> str:
    """What the simulator says to the last of `actions`, from the start of `task`."""
    simulator.begin(task)
    return [simulator.step(action) for action in actions][-1]


def _choices(simulator: Simulator, task: Task, plan: Sequence[str]) -> list[int]:
    """Valid actions before each action of the plan."""
    simulator.begin(task)
    found = []
    for action in plan:
        found.append(len(set(simulator.valid_actions())))
        simulator.step(action)
    return found


def _start_score(simulator: Simulator, task: Task) -> float:
    simulator.begin(task)
    first_observation(simulator)
    return start_score(simulator)


if __name__ == "__main__":
    write_table(FROZEN, (task.to_json() for task in generate(FROZEN_SEED)))
