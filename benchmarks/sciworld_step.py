"""ScienceWorld: our adapter against the stock `scienceworld` package, in one run on the same tasks and actions.

    python benchmarks/sciworld_step.py [--tasks 8] [--rounds 2] [--worlds 1] [--json FILE]

Stock means `ScienceWorldEnv.step`, as the published benchmark calls it. Both play the simulator's own solutions, task
by task in turn, each in a Java process of its own; the first round warms both up and is not counted. `--worlds` also
steps that many of our environments in turn in one Java process, as a worker of the harness does. No data is needed.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from scienceworld import ScienceWorldEnv as StockEnv

from envs.base import Task
from envs.sciworld import SPEC, jvm
from envs.sciworld.kinds import SIMPLIFICATIONS
from envs.sciworld.simulator import Simulator

NAMES = (
    *("boil", "find-animal", "use-thermometer", "chemistry-mix", "lifespan-longest-lived", "freeze"),
    *("measure-melting-point-known-substance", "identify-life-stages-1"),
)


def _task(index: int, name: str) -> Task:
    payload = {"task": name, "variation": 3, "simplifications": SIMPLIFICATIONS}
    identity = f"sciworld/open/{index:03d}"
    return Task(identity, "sciworld", "open", index, name, "easy", name, labels="simulator", payload=payload)


def _solutions(tasks: list[Task]) -> list[list[str]]:
    simulator = Simulator()
    found = []
    for task in tasks:
        simulator.load(task.kind, 3, SIMPLIFICATIONS, gold=True)
        found.append(simulator.gold_path())
    simulator.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--worlds", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    arguments = parser.parse_args()

    tasks = [_task(index, name) for index, name in enumerate(NAMES[: arguments.tasks])]
    solutions = _solutions(tasks)
    env, stock = SPEC.make(None), StockEnv("")
    seconds = dict.fromkeys(("stock reset", "stock step", "reset", "step"), 0.0)
    steps = resets = same = 0
    for number in range(arguments.rounds + 1):
        counted = number > 0
        for task, actions in zip(tasks, solutions, strict=True):
            marks = [time.perf_counter()]
            stock.load(task.kind, 3, SIMPLIFICATIONS)
            stock.reset()
            marks.append(time.perf_counter())
            theirs = [stock.step(action)[0] for action in actions]
            marks.append(time.perf_counter())
            env.reset(options={"task": task})
            marks.append(time.perf_counter())
            ours = [env.step(action)[0] for action in actions]
            marks.append(time.perf_counter())
            if not counted:
                continue
            for name, start, end in zip(seconds, marks[:-1], marks[1:], strict=True):
                seconds[name] += end - start
            steps += len(actions)
            resets += 1
            same += sum(a == b for a, b in zip(theirs, ours, strict=True))
    stock._gateway.shutdown()

    assert jvm._shared is not None
    figures: dict[str, float] = {
        "steps": steps,
        "identical_observations": same,
        "stock_reset_ms": 1000 * seconds["stock reset"] / resets,
        "reset_ms": 1000 * seconds["reset"] / resets,
        "stock_step_ms": 1000 * seconds["stock step"] / steps,
        "step_ms": 1000 * seconds["step"] / steps,
        "step_ratio": seconds["stock step"] / seconds["step"],
    }
    if arguments.worlds > 1:
        crowd = [SPEC.make(None) for _ in range(arguments.worlds)]
        for world in crowd:
            world.reset(options={"task": tasks[0]})
        start = time.perf_counter()
        for action in solutions[0]:
            for world in crowd:
                world.step(action)
        turns = len(crowd) * len(solutions[0])
        figures["step_in_turn_ms"] = 1000 * (time.perf_counter() - start) / turns
    figures["java_mb"] = jvm._shared.resident_bytes / 1e6
    env.close()
    for name, value in figures.items():
        print(f"{name:24} {value:10.2f}")
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
