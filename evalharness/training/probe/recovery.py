"""What one action after an error is worth, by the simulator: another one? taken? can the task still be solved?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from evalharness.base.errors import UserError
from evalharness.envs.base import MAX_TURNS, Task
from evalharness.envs.teaching import Decision, Seeker, Teaching
from evalharness.models.base import Environment
from evalharness.results.behaviour.turns import plain
from evalharness.training.probe.prefixes import Prefix


@dataclass(frozen=True)
class Recovery:
    """Of one reply."""

    action: str | None
    """None: a format error."""
    another: bool = False
    """The action is none of the errors just made."""
    valid: bool = False
    """The world takes it."""
    solvable: bool = False
    """It is valid, another one, and what follows of the plan, or the family's agent without privileged information,
    solves the task after it. False where neither does: that proves nothing about other ways."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class RecoveryCheck:
    """The simulator, at one prefix."""

    environment: Environment
    task: Task
    world: Teaching
    prefix: Prefix

    async def of(self, action: str | None) -> Recovery:
        """Raises UserError, InfrastructureError."""
        if action is None:
            return Recovery(None)
        another = plain(action) not in map(plain, self.prefix.errors)
        await self.begin()
        _, _, info = await self.environment.step(action)
        if not another or not info["valid"]:
            return Recovery(action, another, info["valid"])
        solved = info["success"] or await self._by_plan(action) or await self._by_agent(action)
        return Recovery(action, another, True, solved)

    async def begin(self) -> str:
        """Play the prefix; the last observation. Raises UserError where the world says something else."""
        _, observation, _ = await self.environment.reset(self.task)
        for action in self.prefix.said:
            observation, _, _ = await self.environment.step(action)
        if not self.prefix.messages[-1]["content"].endswith(observation):
            raise UserError(
                f"{self.prefix.key}: the world answers otherwise than in the prefix (made in other words, with "
                "--perturb, or by an earlier version?); make prefixes anew with: evalharness refine grounded"
            )
        return observation

    async def _by_plan(self, action: str) -> bool:
        """The rest of the plan from some step on; first from where the prefix stands."""
        here = len(self.prefix.said) - len(self.prefix.errors)
        plan = self.prefix.plan
        orders = [here, here + 1, *range(here - 1, -1, -1)]
        for first in orders:
            if first < len(plan) and await self._solves([action, *plan[first:]]):
                return True
        return False

    async def _solves(self, actions: Sequence[str]) -> bool:
        await self.begin()
        for action in actions:
            _, terminated, info = await self.environment.step(action)
            if terminated or info["success"]:
                return bool(info["success"])
        return False

    async def _by_agent(self, action: str) -> bool:
        seeker = self.world.seeker(self.task)
        if seeker is None:
            return False
        _, before, info = await self.environment.reset(self.task)
        await self._decided(seeker, before)
        for said in (*self.prefix.said, action):
            after, _, info = await self.environment.step(said)
            if info["valid"] and not info.get("no_effect"):
                seeker.saw(said, before, after, tuple(info["subgoals_completed"]))
                before = after
        for _ in range(MAX_TURNS):
            decision = await self._decided(seeker, before)
            if decision is None:
                return False
            after, terminated, info = await self.environment.step(decision.action)
            if terminated or info["success"]:
                return bool(info["success"])
            seeker.saw(decision.action, before, after, tuple(info["subgoals_completed"]))
            before = after
        return False

    async def _decided(self, seeker: Seeker, observation: str) -> Decision | None:
        valid = await self.environment.valid_actions() if seeker.reads_valid else []
        return seeker.next(observation, valid)
