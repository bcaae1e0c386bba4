"""ScienceWorld: our adapter against the stock `scienceworld` package, in one run on the same tasks and actions.

    python benchmarks/sciworld_step.py [--tasks 8] [--rounds 2] [--worlds 1] [--json FILE]

Stock means `ScienceWorldEnv.step`, as the published benchmark calls it. Both play the simulator's own solutions, task
by task in turn, each in a Java process of its own; the first round warms both up and is not counted. `--worlds` also
steps that many of our environments in turn in one Java process, as a worker of the harness does. No data is needed.

The stock simulator's exchange of heat differs from one Java process to the next (`envs/sciworld/java.py`), so a
thermometer's reading may be off by a degree or two: one or two of `identical_observations`.

`_ms` is wall time, `_cpu_ms` the CPU time of Python and Java together, Java's compiler threads included. A start is a
new Python that imports everything, starts its Java and shows the first observation.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import psutil
from scienceworld import ScienceWorldEnv as StockEnv

from evalharness.envs.base import Task
from evalharness.envs.sciworld import SPEC, jvm
from evalharness.envs.sciworld.kinds import SIMPLIFICATIONS
from evalharness.envs.sciworld.simulator import Simulator

NAMES = (
    *("boil", "find-animal", "use-thermometer", "chemistry-mix", "lifespan-longest-lived", "freeze"),
    *("measure-melting-point-known-substance", "identify-life-stages-1"),
)


_STARTS = {
    "stock": """
from scienceworld import ScienceWorldEnv
env = ScienceWorldEnv("")
env.load("boil", 3, %r)
env.reset()
""",
    "ours": """
from evalharness.envs.base import Task
from evalharness.envs.sciworld import SPEC
payload = {"task": "boil", "variation": 3, "simplifications": %r}
task = Task("sciworld/agentboard/000", "sciworld", "agentboard", 0, "boil", "easy", "boil", payload=payload)
env = SPEC.make(None)
env.reset(options={"task": task})
""",
}
_CPU = """
import psutil
me = psutil.Process()
print(sum(sum(part.cpu_times()[:2]) for part in (me, *me.children(recursive=True))))
"""


class _Mark(NamedTuple):
    wall: float
    cpu: float


def _mark(java: psutil.Process | None) -> _Mark:
    """Now, for this process and one of its Java processes."""
    times = [psutil.Process().cpu_times(), *([java.cpu_times()] if java else [])]
    return _Mark(time.perf_counter(), sum(part.user + part.system for part in times))


def _our_java() -> psutil.Process:
    assert jvm._shared is not None
    return psutil.Process(jvm._shared.pid)


def _start_cpu_s(code: str) -> float:
    """The least of three."""
    command = [sys.executable, "-c", code % SIMPLIFICATIONS + _CPU]
    root = Path(__file__).resolve().parents[1]
    done = (subprocess.run(command, cwd=root, stdout=subprocess.PIPE, check=True) for _ in range(3))
    return min(float(one.stdout.split()[-1]) for one in done)


def _task(index: int, name: str) -> Task:
    payload = {"task": name, "variation": 3, "simplifications": SIMPLIFICATIONS}
    identity = f"sciworld/agentboard/{index:03d}"
    return Task(
        identity, "sciworld", "agentboard", index, name, "easy", name, labels="simulator", payload=payload
    )


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
    stock_java, java = psutil.Process().children()[-1], None
    spent = dict.fromkeys(("stock reset", "stock step", "reset", "step"), _Mark(0.0, 0.0))
    steps = resets = same = 0
    for number in range(arguments.rounds + 1):
        for task, actions in zip(tasks, solutions, strict=True):
            marks = [_mark(stock_java)]
            stock.load(task.kind, 3, SIMPLIFICATIONS)
            stock.reset()
            marks.append(_mark(stock_java))
            theirs = [stock.step(action)[0] for action in actions]
            marks.append(_mark(stock_java))
            if java is None:
                env.warm()
                java = _our_java()
            marks.append(_mark(java))
            env.reset(options={"task": task})
            marks.append(_mark(java))
            ours = [env.step(action)[0] for action in actions]
            marks.append(_mark(java))
            if number == 0:
                continue
            same += sum(a == b for a, b in zip(theirs, ours, strict=True))
            pairs = [(marks[i], marks[i + 1]) for i in (0, 1, 3, 4)]
            for name, (start, end) in zip(spent, pairs, strict=True):
                spent[name] = _Mark(
                    spent[name].wall + end.wall - start.wall, spent[name].cpu + end.cpu - start.cpu
                )
            steps += len(actions)
            resets += 1
    stock._gateway.shutdown()

    assert java is not None
    figures: dict[str, float] = {"steps": steps, "identical_observations": same}
    for name, mark in spent.items():
        count = steps if name.endswith("step") else resets
        figures[f"{name} ms".replace(" ", "_")] = 1000 * mark.wall / count
        figures[f"{name} cpu ms".replace(" ", "_")] = 1000 * mark.cpu / count
    figures["step_ratio"] = figures["stock_step_ms"] / figures["step_ms"]
    figures["step_cpu_ratio"] = figures["stock_step_cpu_ms"] / figures["step_cpu_ms"]
    if arguments.worlds > 1:
        crowd = [SPEC.make(None) for _ in range(arguments.worlds)]
        for world in crowd:
            world.reset(options={"task": tasks[0]})
        start = _mark(java)
        for action in solutions[0]:
            for world in crowd:
                world.step(action)
        end, turns = _mark(java), len(crowd) * len(solutions[0])
        figures["step_in_turn_ms"] = 1000 * (end.wall - start.wall) / turns
        figures["step_in_turn_cpu_ms"] = 1000 * (end.cpu - start.cpu) / turns
        for world in crowd:
            world.close()
    figures["java_mb"] = java.memory_info().rss / 1e6
    env.close()
    figures["stock_start_cpu_s"] = _start_cpu_s(_STARTS["stock"])
    figures["start_cpu_s"] = _start_cpu_s(_STARTS["ours"])
    figures["start_cpu_ratio"] = figures["stock_start_cpu_s"] / figures["start_cpu_s"]
    for name, value in figures.items():
        print(f"{name:24} {value:10.2f}")
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
