"""Find plans that solve a task: stored plans, or the simulator's own solution (gold path), adapted to the labels.

Every plan is played to prove it; for an open task this happened when its suite was built.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from evalharness.envs.base import MAX_TURNS, Task
from evalharness.envs.sciworld.open.shorten import shorten
from evalharness.envs.sciworld.progress import LabelProgress
from evalharness.envs.sciworld.simulator import Simulator, SimulatorFault


class PlayResult(NamedTuple):
    """Number of actions up to an event; None if the event did not happen."""

    success: int | None
    """Number of actions until the task is solved by the rule of its suite."""
    solved: int | None
    """Number of actions until the simulator itself says that the task is solved."""


def play(simulator: Simulator, task: Task, actions: Sequence[str]) -> PlayResult:
    """Play `actions` from the start of `task`, and stop when the task is solved."""
    simulator.begin(task)
    labels = LabelProgress(task.subgoals)
    solved = None
    for number, action in enumerate(actions, 1):
        try:
            labels.see(simulator.step(action))
        except SimulatorFault:
            break
        score, finished = simulator.verdict()
        if solved is None and finished and score >= 1.0:
            solved = number
        if task.subgoals and labels.success:
            return PlayResult(number, solved)
        if not task.subgoals and (solved is not None or score < 0):
            return PlayResult(solved, solved)
    return PlayResult(None, solved)


def plan(simulator: Simulator, task: Task) -> list[str]:
    """Return a plan whose last action solves `task`; [] if no plan is known. This changes the simulator's state."""
    if "plan" in task.payload:  # an open task, whose plan was proven when its suite was built
        return list(task.payload["plan"])
    for candidate in _candidates(simulator, task):
        length = play(simulator, task, candidate).success
        if length is None:
            continue
        if length <= MAX_TURNS:
            return list(candidate[:length])
        return shorten(candidate, lambda actions: play(simulator, task, actions).success)
    return []


def _candidates(simulator: Simulator, task: Task) -> Iterator[Sequence[str]]:
    if (stored := load_stored_plans().get(plan_key(task))) is not None:
        yield stored
    yield from gold_plans(simulator, task)


def gold_plans(simulator: Simulator, task: Task) -> Iterator[Sequence[str]]:
    """Yield the simulator's own solution, and then this solution adapted to the labels."""
    gold = gold_path(simulator, task)
    yield gold
    if task.subgoals:
        yield fit_to_labels(gold, task.subgoals)


def gold_path(simulator: Simulator, task: Task) -> list[str]:
    simulator.begin(task, gold=True)
    return simulator.gold_path()


def plan_key(task: Task) -> str:
    return f"{task.payload['task']}/{task.payload['variation']}"


@cache
def load_stored_plans() -> Mapping[str, Sequence[str]]:
    """Return `plan_key` -> plan for published tasks. `benchmarks/sciworld_plans.py` wrote these plans."""
    text = files("evalharness.envs.sciworld.open").joinpath("plans.json").read_text(encoding="utf-8")
    plans: dict[str, list[str]] = json.loads(text)
    return plans


def fit_to_labels(gold: Sequence[str], subgoals: Sequence[str]) -> list[str]:
    """Adapt the simulator's solution to the labels: replace its things and containers by those that the labels name.

    This is needed because a label requires a certain animal, container or box, but the simulator accepts others, too.
    """
    wanted = [action for action in map(_action_for, subgoals) if action is not None]
    fitted = list(gold)
    for ours, theirs in _containers(gold, wanted).items():
        fitted = [re.sub(rf"\b{re.escape(ours)}\b", theirs, action) for action in fitted]
    for thing in (action.removeprefix("focus on ") for action in tuple(wanted)):
        carried = any(action.startswith(f"move {thing} to ") for action in wanted)
        if carried and f"pick up {thing}" not in wanted:
            wanted.append(f"pick up {thing}")
    for prefix in ("focus on ", "pick up ", "move "):
        places = [index for index, action in enumerate(fitted) if action.startswith(prefix)]
        named = [action for action in wanted if action.startswith(prefix)]
        if len(named) == 1 and places:
            fitted[places[-1]] = named[0]
    return [*fitted, *wanted]


def _containers(gold: Sequence[str], wanted: Sequence[str]) -> dict[str, str]:
    """Map each container in the simulator's solution to the container that the labels name for the same object."""
    moves = re.compile(r"move (.+?)(?: in inventory)? to (.+)")
    ours, theirs = (
        {match[1]: match[2] for action in actions if (match := moves.fullmatch(action))}
        for actions in (gold, wanted)
    )
    return {
        ours[thing]: theirs[thing] for thing in ours.keys() & theirs.keys() if ours[thing] != theirs[thing]
    }


def _action_for(subgoal: str) -> str | None:
    """Return the action that the simulator answers with the label's sentence; None if we know no such action."""
    text = subgoal.rstrip(".")
    for pattern, action in (
        (r"You focus on the (.+?)( egg)?", r"focus on \1"),
        (r"You move the (.+) to the inventory", r"pick up \1"),
        (r"You move the (.+) to the (.+)", r"move \1 to \2"),
        (r"You move to the (.+)", r"go to \1"),
        (r"The (.+) is now open", r"open \1"),
        (r"The (.+) is now activated", r"activate \1"),
    ):
        match = re.fullmatch(pattern, text)
        if match:
            return match.expand(action)
    return None
