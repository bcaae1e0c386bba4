"""Make `envs/sciworld/open/plans.json`: a short plan for every published task that has one.

    python benchmarks/sciworld_plans.py DATA [ROW ...]

DATA is the data folder with the published labels; with row numbers only those are made anew. Half an hour or so, since
each shortening plays its task hundreds of times. A plan that also satisfies the simulator is preferred to a shorter one
that satisfies the labels alone.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from evalharness.envs.base import MAX_TURNS, Task
from evalharness.envs.sciworld.open.oracle import gold_plans, plan_key, play
from evalharness.envs.sciworld.open.shorten import shorten
from evalharness.envs.sciworld.simulator import Simulator
from evalharness.envs.sciworld.tasks import load_tasks

PLANS = Path(__file__).parents[1] / "envs" / "sciworld" / "open" / "plans.json"


def short_plan(simulator: Simulator, task: Task) -> tuple[list[str], bool] | None:
    """(plan, whether it also satisfies the simulator), or None when no gold path satisfies the labels."""
    for candidate in gold_plans(simulator, task):
        outcome = play(simulator, task, candidate)
        if outcome.success is None:
            continue
        if outcome.solved is not None:

            def both(actions: object) -> int | None:
                outcome = play(simulator, task, actions)  # type: ignore[arg-type]
                return None if outcome.solved is None else outcome.success

            plan = shorten(candidate, both)
            if len(plan) <= MAX_TURNS:
                return plan, True
        return shorten(candidate, lambda actions: play(simulator, task, actions).success), False
    return None


def write(plans: dict[str, list[str]]) -> None:
    """One plan a line, so that a change shows."""
    lines = (f"{json.dumps(key)}: {json.dumps(plan)}" for key, plan in sorted(plans.items()))
    PLANS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("rows", type=int, nargs="*")
    arguments = parser.parse_args()
    plans: dict[str, list[str]] = json.loads(PLANS.read_text(encoding="utf-8")) if arguments.rows else {}
    simulator = Simulator()
    for task in load_tasks("agentboard", arguments.data, 0):
        if arguments.rows and task.index not in arguments.rows:
            continue
        found = short_plan(simulator, task)
        if found is None:
            plans.pop(plan_key(task), None)
            print(f"{task.id} {plan_key(task)}: no plan", flush=True)
            continue
        plans[plan_key(task)] = found[0]
        verdict = "labels and simulator" if found[1] else "labels only"
        print(f"{task.id} {plan_key(task)}: {len(found[0])} turns, {verdict}", flush=True)
        write(plans)
    simulator.close()


if __name__ == "__main__":
    main()
