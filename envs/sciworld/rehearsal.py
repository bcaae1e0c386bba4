"""Play a few turns in another Java process, which then writes its loaded classes to an archive (see `archive`)."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from evalharness.envs.sciworld import jvm
from evalharness.envs.sciworld.kinds import SIMPLIFICATIONS
from evalharness.envs.sciworld.simulator import Simulator

_TURNS = (
    *("look around", "inventory", "go to hallway", "go to kitchen", "open cupboard", "look in cupboard"),
    *("pick up thermometer", "move thermometer to inventory", "use thermometer on orange", "focus on orange"),
    *("activate stove", "open freezer", "look at table", "wait1", "0", "no such thing", "task"),
)


def main(arguments: Sequence[str]) -> int:
    executable, *flags = arguments
    process = jvm.Jvm(executable, flags, patience=100)
    jvm.use(process)
    simulator = Simulator()
    simulator.load("boil", 0, SIMPLIFICATIONS)
    for turn in _TURNS:
        simulator.step(turn)
    simulator.inventory()
    simulator.valid_actions()
    simulator.close()  # this ends Java, which writes the archive at its end
    return 0 if process.exit_status == 0 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
