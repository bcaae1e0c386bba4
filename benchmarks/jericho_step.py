"""Cost of a turn of Jericho: the adapter against the bare simulator with the same text clean-up.

    python benchmarks/jericho_step.py DATA_FOLDER [--repeats 40]

Plays every game's oracle plan (then looks around until 30 turns) both ways, alternating, and reports the best of
the repeats.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path

import jericho

from evalharness.envs import specs
from evalharness.envs.jericho.actions import cut_action
from evalharness.envs.jericho.observation import clean

TURNS = 30


def _bare(story: Path, actions: list[str]) -> float:
    """Seconds for `actions` with FrotzEnv, the published cut and the published clean-up; the start is not counted."""
    game = jericho.FrotzEnv(str(story))
    game.reset()
    start = time.perf_counter()
    for action in actions:
        clean(game.step(cut_action(action))[0])
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--repeats", type=int, default=40)
    arguments = parser.parse_args()
    spec = specs()["jericho"]
    environment = spec.make(arguments.data)
    rows = []
    for task in spec.suites.load_tasks("agentboard", arguments.data, 0):
        environment.reset(options={"task": task})
        actions = environment.oracle()[:-1]
        actions += ["look"] * (TURNS - len(actions))
        # The last phrase never comes, so that every repeat plays all 30 turns.
        endless = replace(task, subgoals=(*task.subgoals, "a phrase that no game prints"))
        bare, ours, resets = [], [], []
        for _ in range(arguments.repeats):
            bare.append(_bare(arguments.data / task.payload["story"], actions))
            start = time.perf_counter()
            environment.reset(options={"task": endless})
            resets.append(time.perf_counter() - start)
            start = time.perf_counter()
            for action in actions:
                environment.step(action)
            ours.append(time.perf_counter() - start)
        rows.append(
            {
                "game": task.kind,
                "bare_ms": 1000 * min(bare) / TURNS,
                "adapter_ms": 1000 * min(ours) / TURNS,
                "reset_ms": 1000 * min(resets),
            }
        )
        print(
            f"{task.kind:11} bare {rows[-1]['bare_ms']:.3f} ms  adapter {rows[-1]['adapter_ms']:.3f} ms"
            f"  reset {rows[-1]['reset_ms']:.1f} ms"
        )
    bare_total = sum(float(row["bare_ms"]) for row in rows)
    ours_total = sum(float(row["adapter_ms"]) for row in rows)
    print(
        json.dumps(
            {
                "turn_ms_bare": bare_total / len(rows),
                "turn_ms_adapter": ours_total / len(rows),
                "overhead": ours_total / bare_total - 1,
                "turns_per_s": 1000 * len(rows) / ours_total,
            }
        )
    )


if __name__ == "__main__":
    main()
