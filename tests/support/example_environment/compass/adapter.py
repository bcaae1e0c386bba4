from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

from evalharness.envs.base import Info, TextEnv, task_of

DIRECTIONS = ("north", "east", "south", "west")


class CompassEnv(TextEnv):
    """Turn left and right until you face the goal.

    For tests of the harness, an action `fault KIND` breaks this process the first time that anybody asks.
    """

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        self.task = task_of(options)
        self.wanted = self.task.subgoals[0]
        self.facing = 0 if self.wanted != "north" else 2
        return f"You face {DIRECTIONS[self.facing]}.", dict(self._info(True, False))

    def _info(self, valid: bool, completed: bool) -> Info:
        done = DIRECTIONS[self.facing] == self.wanted
        return Info(
            progress=float(done),
            success=done,
            solved=done,
            valid=valid,
            subgoals_completed=(0,) if completed else (),
        )

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if action.startswith("fault "):
            self._fault(action.removeprefix("fault "))
        turns = {"turn left": -1, "turn right": 1}
        if action not in turns:
            return "You cannot do that.", 0.0, False, False, dict(self._info(False, False))
        self.facing = (self.facing + turns[action]) % 4
        done = DIRECTIONS[self.facing] == self.wanted
        return f"You face {DIRECTIONS[self.facing]}.", float(done), done, False, dict(self._info(True, done))

    def _fault(self, kind: str) -> None:
        marker = Path(os.environ["COMPASS_FAULTS"]) / f"{self.task.index}-{kind}"
        if marker.exists() and not kind.startswith("always"):
            return
        marker.touch()
        match kind.removeprefix("always "):
            case "exit":
                os._exit(7)
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "stop":
                os.kill(os.getpid(), signal.SIGSTOP)
            case "hang":
                time.sleep(600)
            case "raise":
                raise RuntimeError("the needle fell off")
            case "leak":
                self.leaked = bytes(range(256)) * 2**19  # 128 MB that stay
            case "garbage":
                os.write(int(os.environ.get("COMPASS_STDOUT", "1")), b"noise on standard output\n")

    @property
    def goal(self) -> str:
        return self.task.goal

    def valid_actions(self) -> list[str]:
        return ["check valid actions", "turn left", "turn right"]

    def oracle(self) -> list[str]:
        distance = (DIRECTIONS.index(self.wanted) - self.facing) % 4
        return ["turn left"] if distance == 3 else ["turn right"] * distance
