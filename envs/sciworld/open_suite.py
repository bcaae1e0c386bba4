"""The open suite: (task, variation) pairs of the simulator that are not in the published set, proven solvable in time.

Kinds and their numbers are fixed in `QUOTA`. The variations of a kind are tried in an order drawn from the suite seed;
one is taken when the simulator's own solution, shortened by replay until no single action can be left out, has 3 to
30 turns, and no task taken before is the same up to renaming. Where the goal asks to determine or measure something
the plan keeps the simulator's experiment, although naming the answer would do. Suite seed 0 is frozen in
`open_suite.json`; `python -m envs.sciworld.open_suite` makes that file anew (seven minutes of CPU time).
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import Any

from envs.base import MAX_TURNS, MIN_TURNS, InvalidTaskError, Task
from envs.difficulty import difficulty, search_bits
from envs.sciworld.adapter import first_observation, start_score
from envs.sciworld.kinds import EXAMPLE, FAMILY, OPEN_VERSION, PUBLISHED, QUOTA, simplifications
from envs.sciworld.oracle import gold_path, play
from envs.sciworld.readings import spelled_out
from envs.sciworld.shorten import NOISE, Needs, shorten
from envs.sciworld.simulator import Simulator

FROZEN_SEED = 0
FROZEN = Path(__file__).with_name("open_suite.json")

HARD_BITS = 67.0
"""Bits of search (`envs.difficulty`) from which a task counts as hard. It makes 58 tasks hard; of the published ones
56 are."""


@dataclass(frozen=True)
class OpenCase:
    """One task of the open suite before it is a `Task`."""

    task: str
    variation: int
    simplifications: str
    goal: str
    """The simulator's own task description."""
    plan: tuple[str, ...]
    choices: tuple[int, ...]
    """Valid actions before each action of the plan."""
    start_score: float = 0.0
    """What the simulator gives for what is there before the first action: no progress."""

    def shape(self) -> str:
        """The task up to renaming: colours of boxes, letters of unknown substances and planes are mere names."""
        numbers: dict[str, str] = {}
        renamed = _NAME.sub(
            lambda match: numbers.setdefault(match[0].lower(), f"<{len(numbers)}>"),
            "\n".join((self.task, self.goal, *self.plan)),
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


def load_open(suite_seed: int) -> list[Task]:
    """The suite of this seed: read from its table for seed 0, else made anew, which takes minutes."""
    cases = frozen_cases() if suite_seed == FROZEN_SEED else generate_cases(suite_seed)
    return [_task(index, case) for index, case in enumerate(cases)]


def generate_open(suite_seed: int) -> Iterator[Task]:
    """The tasks of a suite as they are found, without a look at the frozen table."""
    for index, case in enumerate(generate_cases(suite_seed)):
        yield _task(index, case)


def generate_cases(suite_seed: int) -> Iterator[OpenCase]:
    simulator = Simulator()
    try:
        for kind in QUOTA:
            yield from _of_kind(simulator, kind, suite_seed)
    finally:
        simulator.close()


def _of_kind(simulator: Simulator, kind: str, suite_seed: int) -> Iterator[OpenCase]:
    taken = {*PUBLISHED.get(kind, ()), *(variation for task, variation in EXAMPLE if task == kind)}
    order = [variation for variation in range(simulator.variations(kind)) if variation not in taken]
    random.Random(f"sciworld open {suite_seed} {kind}").shuffle(order)
    shapes: set[str] = set()
    for variation in order:
        case = _accept(simulator, kind, variation)
        if case is not None and case.shape() not in shapes:
            shapes.add(case.shape())
            yield case
            if len(shapes) == QUOTA[kind]:
                return
    raise RuntimeError(f"suite seed {suite_seed}: only {len(shapes)} tasks of {kind} fit, of {QUOTA[kind]}")


def _accept(simulator: Simulator, kind: str, variation: int) -> OpenCase | None:
    """The case of a variation when it is fit for the suite."""
    bare = _task(0, OpenCase(kind, variation, simplifications(kind), "", (), ()))

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
    choices = _choices(simulator, bare, plan)
    return OpenCase(
        kind,
        variation,
        simplifications(kind),
        goal,
        tuple(plan),
        choices,
        _start_score(simulator, bare),
    )


def _without_noise(gold: Sequence[str], needs: Needs) -> list[str] | None:
    """The gold path up to success, without what only looks where that is enough; None when it never succeeds."""
    for candidate in ([action for action in gold if not NOISE.fullmatch(action)], gold):
        if (length := needs(candidate)) is not None:
            return list(candidate[:length])
    return None


def _start(simulator: Simulator, task: Task) -> None:
    payload = task.payload
    simulator.load(str(payload["task"]), int(payload["variation"]), str(payload["simplifications"]))


def _answer(simulator: Simulator, task: Task, actions: Sequence[str]) -> str:
    """What the simulator says to the last of `actions`, from the start of `task`."""
    _start(simulator, task)
    return [simulator.step(action) for action in actions][-1]


def _choices(simulator: Simulator, task: Task, plan: Sequence[str]) -> tuple[int, ...]:
    _start(simulator, task)
    found = []
    for action in plan:
        found.append(len(set(simulator.valid_actions())))
        simulator.step(action)
    return tuple(found)


def _start_score(simulator: Simulator, task: Task) -> float:
    _start(simulator, task)
    first_observation(simulator)
    return start_score(simulator)


def _task(index: int, case: OpenCase) -> Task:
    return Task(
        id=f"{FAMILY}/open/{index:03d}",
        family=FAMILY,
        suite="open",
        index=index,
        goal=case.goal,
        difficulty=difficulty(search_bits(case.choices), HARD_BITS),
        kind=case.task,
        labels="simulator",
        payload={
            "task": case.task,
            "variation": case.variation,
            "simplifications": case.simplifications,
            "plan": list(case.plan),
            "start_score": case.start_score,
        },
    )


def content_hash(cases: Sequence[OpenCase]) -> str:
    """SHA-256 over the canonical JSON of all cases."""
    text = json.dumps([asdict(case) for case in cases], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


@cache
def frozen_cases() -> tuple[OpenCase, ...]:
    """The suite of seed 0 as it is kept in the repository, checked against its content hash."""
    stored = json.loads(FROZEN.read_text(encoding="utf-8"))
    cases = tuple(map(_read, stored["cases"]))
    if content_hash(cases) != stored["sha256"]:
        raise InvalidTaskError(f"{FROZEN.name} does not match its content hash; reinstall evalharness")
    return cases


def _read(row: Mapping[str, Any]) -> OpenCase:
    return OpenCase(**{**row, "plan": tuple(row["plan"]), "choices": tuple(row["choices"])})


def _freeze() -> None:
    cases: list[OpenCase] = []
    numbers = count(1)
    for case in generate_cases(FROZEN_SEED):
        cases.append(case)
        print(
            next(numbers), case.task, case.variation, f"{len(case.plan)} turns", file=sys.stderr, flush=True
        )
    head = {"suite_seed": FROZEN_SEED, "version": OPEN_VERSION, "sha256": content_hash(cases)}
    lines = ",\n".join(json.dumps(asdict(case)) for case in cases)
    FROZEN.write_text(f'{json.dumps(head)[:-1]}, "cases": [\n{lines}\n]}}\n', encoding="utf-8")


if __name__ == "__main__":
    _freeze()
