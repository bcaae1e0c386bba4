from __future__ import annotations

from typing import Any

from evalharness.envs.base import TextEnv, task_of

STEPS = {"go right": 1, "go left": -1}


class RingEnv(TextEnv):
    """Walk around a ring from room 0 until you are in the room that the goal names."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        self.task = task_of(options)
        self.rooms, self.wanted, self.room = 5 + self.task.index % 26, 1 + self.task.index % 2, 0
        return self._seen(), self._info(True, False)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if action not in STEPS:
            return "You cannot do that.", 0.0, False, False, self._info(False, False)
        self.room = (self.room + STEPS[action]) % self.rooms
        done = self.room == self.wanted
        return self._seen(), float(done), done, False, self._info(True, done)

    def _seen(self) -> str:
        return f"You are in room {self.room} of {self.rooms}."

    def _info(self, valid: bool, completed: bool) -> dict[str, Any]:
        done = self.room == self.wanted
        return self.info(progress=float(done), success=done, valid=valid, completed=(0,) if completed else ())

    @property
    def goal(self) -> str:
        return self.task.goal

    def valid_actions(self) -> list[str]:
        return sorted(STEPS)

    def oracle(self) -> list[str]:
        return ["go right"] * self.wanted
