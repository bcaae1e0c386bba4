"""ALFWorld: our adapter against the stock TextWorld environment, in one run on the same games and actions.

    python benchmarks/alfworld_step.py DATA [--games 6] [--steps 30] [--policy] [--json FILE]

DATA is the data folder that holds `agentboard/alfworld`. Stock means TextWorld's PDDL environment with admissible
commands at every step, as ALFWorld's own wrapper asks for; `--policy` also asks its planner for a plan at every
step, as its expert set-up does. Every observation is compared on the way, so the two did the same work. Times
are CPU time of this process: neither side waits for anything, and a busy machine does not blur the ratio.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from pathlib import Path

from evalharness.envs.alfworld import SPEC
from evalharness.envs.alfworld.stock import TextWorldGame
from evalharness.envs.alfworld.tasks import read_game
from evalharness.envs.alfworld.world import World


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--games", type=int, default=6)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--policy", action="store_true", help="stock also computes a plan at every step")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    arguments = parser.parse_args()

    tasks = SPEC.suites.load_tasks("agentboard", arguments.data, 0)
    chosen = tasks[:: max(1, len(tasks) // arguments.games)][: arguments.games]
    seconds = dict.fromkeys(("stock reset", "stock step", "reset", "step"), 0.0)
    steps = 0
    env = SPEC.make(arguments.data)
    for task in chosen:
        game = json.loads(read_game(arguments.data, task.payload["game"]))
        actions = _walk(World(game), arguments.steps, task.id)

        start = time.process_time()
        stock = TextWorldGame(game, policy=arguments.policy)
        texts = [stock.reset()]
        seconds["stock reset"] += time.process_time() - start
        start = time.process_time()
        for action in actions:
            texts.append(stock.step(action))
            stock.won  # noqa: B018  (what an adapter reads at every step)
            stock.commands()
        seconds["stock step"] += time.process_time() - start

        start = time.process_time()
        env.reset(options={"task": task})
        seconds["reset"] += time.process_time() - start
        start = time.process_time()
        seen = [env.step(action)[0] for action in actions]
        seconds["step"] += time.process_time() - start
        assert all(text.endswith(ours) for text, ours in zip(texts[1:], seen, strict=True))
        steps += len(actions)

    figures = {
        "games": len(chosen),
        "steps": steps,
        "policy": arguments.policy,
        "stock_reset_ms": 1000 * seconds["stock reset"] / len(chosen),
        "reset_ms": 1000 * seconds["reset"] / len(chosen),
        "stock_step_ms": 1000 * seconds["stock step"] / steps,
        "step_ms": 1000 * seconds["step"] / steps,
        "reset_ratio": seconds["stock reset"] / seconds["reset"],
        "step_ratio": seconds["stock step"] / seconds["step"],
    }
    for name, value in figures.items():
        print(f"{name:16} {value:.4g}" if isinstance(value, float) else f"{name:16} {value}")
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1) + "\n")


def _walk(world: World, steps: int, seed: str) -> list[str]:
    """Random actions, `look` left out (the adapter answers it from memory, as published)."""
    rng = random.Random(seed)
    world.reset()
    actions: list[str] = []
    while len(actions) < steps and not world.won:
        actions.append(rng.choice(sorted(set(world.commands()) - {"look"})))
        world.step(actions[-1])
    return actions


if __name__ == "__main__":
    main()
