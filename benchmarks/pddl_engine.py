"""Steps per second of our PDDL environment against pddlgym, each with its valid actions at every step.

    python benchmarks/pddl_engine.py [--episodes 20] [--json FILE]

One run plays the same random walks through both, domain by domain, in the same process, so the ratios hold where
the absolute figures depend on the machine. Ours includes reading the action's text and wording observation and
valid actions; pddlgym's (Python 3.11, `pip install 'evalharness[stock]'`) is the bare simulator.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from evalharness.envs.base import Task
from evalharness.envs.pddl import SPEC
from evalharness.envs.pddl.engine import GroundAction
from evalharness.envs.pddl.problem import DOMAINS
from evalharness.envs.pddl.wording import action_text

TURNS = 30


@dataclass(frozen=True)
class Result:
    domain: str
    steps: int
    ours_steps_per_second: float
    pddlgym_steps_per_second: float
    ratio: float
    """Ours over pddlgym's."""


def pddlgym_env(task: Task, folder: Path) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pddlgym.core import PDDLEnv

    (folder / "problems").mkdir(parents=True)
    (folder / "domain.pddl").write_text(task.payload["domain"])
    (folder / "problems" / "problem.pddl").write_text(task.payload["problem"])
    return PDDLEnv(
        str(folder / "domain.pddl"),
        str(folder / "problems"),
        operators_as_actions=True,
        dynamic_action_space=True,
    )


def walk_pddlgym(task: Task, folder: Path, episodes: int) -> tuple[list[list[tuple[str, ...]]], float, int]:
    """Random walks as (name, *arguments) lists, CPU seconds, steps."""
    env = pddlgym_env(task, folder)
    walks: list[list[tuple[str, ...]]] = []
    seconds, steps = 0.0, 0
    for episode in range(episodes):
        rng = random.Random(episode)
        walk: list[tuple[str, ...]] = []
        state, _ = env.reset()
        env.action_space.all_ground_literals(state)  # grounds the actions once, which is not timed
        start = time.process_time()
        for _ in range(TURNS):
            action = rng.choice(sorted(env.action_space.all_ground_literals(state)))
            walk.append((action.predicate.name, *(variable.name for variable in action.variables)))
            state, _, done, _, _ = env.step(action)
            steps += 1
            if done:
                break
        seconds += time.process_time() - start
        walks.append(walk)
    return walks, seconds, steps


def walk_ours(task: Task, walks: list[list[tuple[str, ...]]]) -> float:
    """CPU seconds for the same walks, in words."""
    env: Any = SPEC.make(None)
    seconds = 0.0
    for walk in walks:
        env.reset(options={"task": task})
        texts = [action_text(GroundAction(name, tuple(arguments), 0, 0, 0)) for name, *arguments in walk]
        start = time.process_time()
        for text in texts:
            valid = env.valid_actions()
            assert text.strip() in valid, f"{text!r} is no valid action here"
            env.step(text)
        seconds += time.process_time() - start
    return seconds


def measure(task: Task, episodes: int) -> Result:
    with tempfile.TemporaryDirectory() as folder:
        walks, theirs, steps = walk_pddlgym(task, Path(folder) / "pddl", episodes)
    ours = walk_ours(task, walks)
    return Result(task.kind, steps, round(steps / ours, 1), round(steps / theirs, 1), round(theirs / ours, 1))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=20, help=f"walks of {TURNS} steps a domain")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results here")
    options = parser.parse_args()
    if sys.version_info >= (3, 12):
        print("pddlgym needs Python 3.11; run this with it", file=sys.stderr)
        return 2
    tasks = SPEC.suites.load_tasks("open", None, 0)
    results = []
    print(f"{'domain':<12}{'steps':>7}{'ours /s':>12}{'pddlgym /s':>12}{'ratio':>8}")
    for kind in DOMAINS:
        middle = [task for task in tasks if task.kind == kind]
        result = measure(middle[len(middle) // 2], options.episodes)
        results.append(result)
        print(
            f"{result.domain:<12}{result.steps:>7}{result.ours_steps_per_second:>12,.0f}"
            f"{result.pddlgym_steps_per_second:>12,.0f}{result.ratio:>8.1f}"
        )
    if options.json:
        options.json.write_text(json.dumps([asdict(result) for result in results], indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
