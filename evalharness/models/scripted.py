"""Policies without a model: an oracle, uniformly random valid actions, the replies of an earlier run."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from evalharness.base.errors import UserError
from evalharness.envs.base import Task
from evalharness.envs.surface import ActionSurface
from evalharness.models.base import Environment, Player, PolicyStoppedError, Reply, RequestForm
from evalharness.protocol.prompt import Message


def _say(thought: str, action: str, *, plan: str | None = None) -> Reply:
    return Reply(f"Thought: {thought}\nAction: {action}", plan=plan)


@dataclass
class _OraclePlayer(Player):
    environment: Environment
    plan: Sequence[str] | None = None

    async def reply(self, messages: list[Message], *, turn: int, form: RequestForm | None = None) -> Reply:
        if self.plan is None:
            self.plan = await self.environment.oracle()
        if turn > len(self.plan):
            raise PolicyStoppedError("no plan is known" if not self.plan else "the plan is at its end")
        return _say(f"Step {turn} of {len(self.plan)} of the plan.", self.plan[turn - 1])


class OraclePolicy:
    """Carries out the environment's own plan for the task."""

    def player(self, task: Task, sample: int, environment: Environment) -> Player:
        return _OraclePlayer(environment)

    async def close(self) -> None:
        pass


@dataclass
class _ReferencePlayer(Player):
    environment: Environment
    number: int
    plan: Sequence[str] | None = None
    name: str = ""

    async def reply(self, messages: list[Message], *, turn: int, form: RequestForm | None = None) -> Reply:
        if self.plan is None:
            plans = await self.environment.reference_plans()
            if self.number >= len(plans):
                raise PolicyStoppedError("there is no such plan")
            self.name, self.plan = list(plans.items())[self.number]
        if turn > len(self.plan):
            raise PolicyStoppedError("the plan is at its end")
        return _say(f"The {self.name} plan.", self.plan[turn - 1], plan=self.name)


class ReferencePolicy:
    """Carries out the environment's reference plans, one a sample. For the audit of labels."""

    def player(self, task: Task, sample: int, environment: Environment) -> Player:
        return _ReferencePlayer(environment, sample)

    async def close(self) -> None:
        pass


@dataclass
class _RandomPlayer(Player):
    environment: Environment
    stream: random.Random
    help_surface: ActionSurface

    async def reply(self, messages: list[Message], *, turn: int, form: RequestForm | None = None) -> Reply:
        offered = await self.environment.valid_actions()
        actions = [action for action in offered if self.help_surface.parse(action.lower()) is None]
        if not actions:
            raise PolicyStoppedError("no valid action")
        return _say("Any valid action will do.", self.stream.choice(actions))


@dataclass
class RandomPolicy:
    """Picks uniformly among the valid actions, asking for help (`Actions.help_action`) excepted.

    The choices of an episode depend on (seed, task, sample) alone.
    """

    seed: int
    help_actions: Mapping[str, str]
    """Family -> the template of its help action, where it has one."""

    def player(self, task: Task, sample: int, environment: Environment) -> Player:
        template = self.help_actions.get(task.family)
        asks_for_help = ActionSurface({} if template is None else {"help": template})
        return _RandomPlayer(environment, random.Random(f"{self.seed}/{task.id}/{sample}"), asks_for_help)

    async def close(self) -> None:
        pass


@dataclass
class _ReplayPlayer(Player):
    replies: Sequence[str]

    async def reply(self, messages: list[Message], *, turn: int, form: RequestForm | None = None) -> Reply:
        if turn > len(self.replies):
            raise PolicyStoppedError("the recorded episode is at its end")
        return Reply(self.replies[turn - 1])


@dataclass
class ReplayPolicy:
    """Says again what the policy of an earlier run said."""

    replies: Mapping[tuple[str, int], Sequence[str]] = field(default_factory=dict)
    """(task id, sample) -> raw replies in order."""

    def player(self, task: Task, sample: int, environment: Environment) -> Player:
        try:
            return _ReplayPlayer(self.replies[task.id, sample])
        except KeyError:
            raise UserError(f"the replayed run has no episode of {task.id}, sample {sample}") from None

    async def close(self) -> None:
        pass
