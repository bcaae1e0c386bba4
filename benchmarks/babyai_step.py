"""CPU time of a BabyAI step against minigrid's own simulator.

    python benchmarks/babyai_step.py [--json FILE]

Random walks through the open suite, 30 turns a task, are recorded and played again twice in the same process: through
the adapter (reading the action, planning its moves, observation, progress), and as bare moves on a stock simulator that
draws its view at each of them, with the view put into words once a turn. The ratio holds where the absolute
figures depend on the machine.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from evalharness.envs.babyai.adapter import BabyAIEnv
from evalharness.envs.babyai.levels import make_level
from evalharness.envs.babyai.observation import describe
from evalharness.envs.babyai.tasks import load_tasks
from evalharness.envs.babyai.view import look
from evalharness.envs.base import Task

TURNS = 30


@dataclass(frozen=True)
class Result:
    turns: int
    moves: int
    """Simulator moves; a turn makes several."""
    ours_ms_per_turn: float
    stock_ms_per_turn: float
    ratio: float
    """Ours over the stock simulator's."""


def walk(task: Task) -> tuple[list[str], list[list[int]]]:
    """A random walk: what was said, and the simulator moves that each sentence made."""
    env = BabyAIEnv()
    env.reset(options={"task": task})
    simulator = env._world.simulator
    chance = random.Random(task.id)
    made: list[int] = []
    step = simulator.step

    def recorded(move: int) -> Any:
        made.append(move)
        return step(move)

    simulator.step = recorded
    said, moves = [], []
    for _ in range(TURNS):
        said.append(
            chance.choice([action for action in env.valid_actions() if not action.startswith("check")])
        )
        made.clear()
        terminated = env.step(said[-1])[2]
        moves.append(list(made))
        if terminated:
            break
    return said, moves


def play_ours(task: Task, said: list[str]) -> float:
    env = BabyAIEnv()
    env.reset(options={"task": task})
    start = time.process_time()
    for sentence in said:
        env.step(sentence)
    return time.process_time() - start


def play_stock(task: Task, moves: list[list[int]]) -> float:
    simulator = make_level(task.payload["level"], task.payload["seed"], task.payload.get("parameters"))
    del simulator.gen_obs, simulator._reward  # what `make_level` replaces on the instance
    start = time.process_time()
    for turn in moves:
        for move in turn:
            simulator.step(move)
        describe(look(simulator))
    return time.process_time() - start


def measure() -> Result:
    walks = [(task, *walk(task)) for task in load_tasks("open", None, 0)]
    ours = sum(play_ours(task, said) for task, said, _ in walks)
    stock = sum(play_stock(task, moves) for task, _, moves in walks)
    turns = sum(len(said) for _, said, _ in walks)
    return Result(
        turns=turns,
        moves=sum(len(turn) for _, _, moves in walks for turn in moves),
        ours_ms_per_turn=1000 * ours / turns,
        stock_ms_per_turn=1000 * stock / turns,
        ratio=ours / stock,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", metavar="FILE", help="write the result as JSON (- for stdout)")
    arguments = parser.parse_args()
    result = measure()
    if arguments.json:
        text = json.dumps(asdict(result), indent=2) + "\n"
        if arguments.json == "-":
            sys.stdout.write(text)
        else:
            Path(arguments.json).write_text(text)
    if arguments.json != "-":
        print(
            f"{result.turns} turns, {result.moves} moves; a turn takes {result.ours_ms_per_turn:.2f} ms here,"
        )
        print(f"{result.stock_ms_per_turn:.2f} ms on the stock simulator: ratio {result.ratio:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
