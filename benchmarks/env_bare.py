"""The bound of `env_sessions.py`: the same actions in one process, without a server, ours and the stock library's.

    python benchmarks/env_bare.py alfworld sciworld [--tasks 8] [--turns 8] [--json FILE]

Random walks through tasks of suite seed 0 are recorded, valid action by valid action, and played again: by our
environment, one world after the other, and by the stock library where it is installed (TextWorld's PDDL environment
with admissible commands at every step, as ALFWorld wraps it; `ScienceWorldEnv.step`; a world has a process of its own,
as one actor or one Java process an environment). Each in a new process; the first round warms up. Times are CPU time
of the process and its children: a busy machine does not blur them.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Protocol

import psutil

from evalharness.envs import specs
from evalharness.envs.base import Task, TextEnv
from evalharness.suites.selection import family_tasks

_ENOUGH_S, _MOST_ROUNDS = 1.0, 50
"""CPU seconds to be measured; a child's clock has steps of 10 ms."""
FAMILIES = ("alfworld", "babyai", "sciworld", "pddl", "jericho", "hotpotqa")


@dataclass(frozen=True)
class Walk:
    """Actions none of which ends the episode."""

    task: Task
    actions: tuple[str, ...]


@dataclass(frozen=True)
class Bare:
    step_ms: float
    reset_ms: float
    mb: float
    """Resident, of the process and its children, with one world."""


class _World(Protocol):
    def reset(self, task: Task) -> object: ...
    def step(self, action: str) -> object: ...


class _Ours:
    def __init__(self, family: str) -> None:
        self.environment: TextEnv = specs()[family].make(None)

    def reset(self, task: Task) -> object:
        return self.environment.reset(options={"task": task})

    def step(self, action: str) -> object:
        return self.environment.step(action)


class _StockAlfworld:
    def reset(self, task: Task) -> object:
        from evalharness.envs.alfworld.adapter import _game
        from evalharness.envs.alfworld.stock import TextWorldGame

        self.world = TextWorldGame(_game(task, None))
        return self.world.reset()

    def step(self, action: str) -> object:
        return self.world.step(action), self.world.won, self.world.commands()


class _StockScienceWorld:
    def __init__(self) -> None:
        from scienceworld import ScienceWorldEnv

        self.world: Any = ScienceWorldEnv("")

    def reset(self, task: Task) -> object:
        payload = task.payload
        self.world.load(payload["task"], payload["variation"], payload["simplifications"])
        return self.world.reset()

    def step(self, action: str) -> object:
        return self.world.step(action)


_STOCK: dict[str, Callable[[], _World]] = {"alfworld": _StockAlfworld, "sciworld": _StockScienceWorld}


def walks(family: str, tasks: int, turns: int) -> list[Walk]:
    """Of tasks spread over the suite."""
    return _elsewhere(_walks, family, tasks, turns)


def _walks(family: str, tasks: int, turns: int) -> list[Walk]:
    chosen = family_tasks(specs()[family], "open", None, 0)
    return [_walk(_Ours(family).environment, task, turns) for task in chosen[:: -(-len(chosen) // tasks)]]


def _walk(environment: TextEnv, task: Task, turns: int) -> Walk:
    chance, actions = random.Random(task.id), list[str]()
    ending = set[str]()
    environment.reset(options={"task": task})
    while len(actions) < turns:
        offered = [a for a in environment.valid_actions() if not a.startswith("check") and a not in ending]
        action = chance.choice(offered)
        if not environment.step(action)[2]:
            actions.append(action)
            continue
        ending.add(action)
        environment.reset(options={"task": task})
        for done in actions:
            environment.step(done)
    return Walk(task, tuple(actions))


def ours(family: str, recorded: Sequence[Walk]) -> Bare:
    return _elsewhere(_play, family, recorded, False)


def stock(family: str, recorded: Sequence[Walk]) -> Bare | None:
    """None where there is no stock library to play with, or it is not installed."""
    if family not in _STOCK:
        return None
    try:
        return _elsewhere(_play, family, recorded, True)
    except (ImportError, RuntimeError):
        return None


def _play(family: str, recorded: Sequence[Walk], of_stock: bool) -> Bare:
    world = _STOCK[family]() if of_stock else _Ours(family)
    for walk in recorded:  # the first round warms up, and starts what has a process of its own
        _through(world, walk, [])
    children = psutil.Process().children(recursive=True)
    resets = steps = 0.0
    rounds = 0
    while rounds == 0 or (resets + steps < _ENOUGH_S and rounds < _MOST_ROUNDS):
        rounds += 1
        for walk in recorded:
            reset, stepped = _through(world, walk, children)
            resets, steps = resets + reset, steps + stepped
    count = rounds * sum(len(walk.actions) for walk in recorded)
    mb = used(psutil.Process().pid).mb
    return Bare(1000 * steps / count, 1000 * resets / (rounds * len(recorded)), mb)


def _through(world: _World, walk: Walk, children: Sequence[psutil.Process]) -> tuple[float, float]:
    """CPU seconds of the reset and of all steps."""
    marks = [_cpu_s(children)]
    world.reset(walk.task)
    marks.append(_cpu_s(children))
    for action in walk.actions:
        world.step(action)
    marks.append(_cpu_s(children))
    return marks[1] - marks[0], marks[2] - marks[1]


def _cpu_s(children: Sequence[psutil.Process]) -> float:
    return time.process_time() + sum(sum(child.cpu_times()[:2]) for child in children)


@dataclass(frozen=True)
class Used:
    """Of a process and its children."""

    processes: int
    mb: float
    """Resident."""
    cpu_s: float


def used(pid: int) -> Used:
    process = psutil.Process(pid)
    count, size, cpu = 0, 0, 0.0
    for each in [process, *process.children(recursive=True)]:
        try:
            size += each.memory_info().rss
            cpu += sum(each.cpu_times()[:2])
        except psutil.NoSuchProcess:
            continue
        count += 1
    return Used(count, size / 2**20, cpu)


def _elsewhere(function: Callable[..., Any], *arguments: Any) -> Any:
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        return process.submit(function, *arguments).result()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("families", nargs="*", default=FAMILIES)
    parser.add_argument("--tasks", type=int, default=8)
    parser.add_argument("--turns", type=int, default=8)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    arguments = parser.parse_args()
    found: dict[str, Any] = {}
    for family in arguments.families:
        recorded = walks(family, arguments.tasks, arguments.turns)
        theirs = stock(family, recorded)
        found[family] = {
            "ours": asdict(ours(family, recorded)),
            "stock": None if theirs is None else asdict(theirs),
        }
        print(family, json.dumps(found[family]), flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
