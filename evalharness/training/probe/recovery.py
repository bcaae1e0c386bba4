"""What one action after an error is worth, by the simulator: another one? taken? can the task still be solved?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evalharness.base.errors import UserError
from evalharness.envs.base import MAX_TURNS
from evalharness.results.behaviour.turns import plain
from evalharness.training.grounded.draft import NoTrajectoryError, Stage
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


@dataclass(frozen=True)
class RecoveryCheck:
    """The simulator, at one prefix."""

    stage: Stage
    prefix: Prefix

    async def of(self, action: str | None) -> Recovery:
        """Raises UserError, InfrastructureError."""
        if action is None:
            return Recovery(None)
        another = plain(action) not in map(plain, self.prefix.errors)
        await self.begin()
        _, _, info = await self.stage.step(action)
        if not another or not info["valid"]:
            return Recovery(action, another, info["valid"])
        solved = info["success"] or await self._by_plan(action) or await self._by_agent(action)
        return Recovery(action, another, True, solved)

    async def begin(self) -> None:
        """Play the prefix. Raises UserError where the world says something else."""
        _, observation, _ = await self.stage.environment.reset(self.stage.task)
        for action in self.prefix.said:
            observation, _, _ = await self.stage.step(action)
        if not self.prefix.messages[-1]["content"].endswith(observation):
            raise UserError(
                f"{self.prefix.key}: the world answers otherwise than in the prefix (made in other words, with "
                "--perturb, or by an earlier version?); make prefixes anew with: evalharness refine grounded"
            )

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
            _, terminated, info = await self.stage.step(action)
            if terminated or info["success"]:
                return bool(info["success"])
        return False

    async def _by_agent(self, action: str) -> bool:
        seeker = self.stage.world.seeker(self.stage.task)
        if seeker is None:
            return False
        _, before, _ = await self.stage.environment.reset(self.stage.task)
        await self.stage.decided(seeker, before)
        for said in (*self.prefix.said, action):
            after, _, info = await self.stage.step(said)
            if info["valid"] and not info.get("no_effect"):
                seeker.saw(said, before, after, tuple(info["subgoals_completed"]))
                before = after
        try:
            await self.stage.continued(seeker, before, MAX_TURNS, "")
        except NoTrajectoryError:
            return False
        return True
