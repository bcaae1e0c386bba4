"""The environment in the words of the run's perturbation: what policies and agents see of it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from evalharness.base.timing import CallTimes
from evalharness.envs.base import Task
from evalharness.models.base import Environment
from evalharness.protocol.perturb import PlayedSurface


@dataclass(frozen=True)
class Step:
    """What came of an action, or of a reply without one."""

    observation: str
    terminated: bool = False
    valid: bool = False
    subgoals_completed: tuple[int, ...] = ()
    no_effect: bool | None = None
    environment_s: float = 0.0
    """The simulator at work."""
    worker_s: float = 0.0
    """The rest of the wait for it."""


@dataclass
class WordedEnvironment:
    """What it suggests is worded as the policy has to say it."""

    world: Environment
    surface: PlayedSurface
    info: dict[str, Any]
    """What the environment said last of progress and success."""

    @property
    def last_call(self) -> CallTimes:
        return self.world.last_call

    async def reset(self, task: Task) -> tuple[str, str, dict[str, Any]]:
        """Goal, first observation and info."""
        goal, observation, self.info = await self.world.reset(task)
        return self.surface.names(goal), self.surface.observation(observation), self.info

    async def step(self, action: str) -> tuple[str, bool, dict[str, Any]]:
        answer, terminated, self.info = await self.world.step(self.surface.to_world(action))
        return self.surface.observation(answer, action), terminated, self.info

    async def carry_out(self, action: str) -> Step:
        asked = time.perf_counter()
        observation, terminated, info = await self.step(action)
        simulated = self.world.last_call.took_s
        return Step(
            observation,
            terminated,
            info["valid"],
            tuple(info["subgoals_completed"]),
            info.get("no_effect"),
            simulated,
            max(0.0, time.perf_counter() - asked - simulated),
        )

    async def valid_actions(self) -> list[str]:
        # In the canonical order: a random policy then draws the same actions under every perturbation.
        return [self.surface.action(action) for action in await self.world.valid_actions()]

    async def oracle(self) -> list[str]:
        return [self.surface.action(action) for action in await self.world.oracle()]

    async def reference_plans(self) -> dict[str, list[str]]:
        plans = await self.world.reference_plans()
        return {name: [self.surface.action(action) for action in plan] for name, plan in plans.items()}
