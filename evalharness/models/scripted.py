"""Policies without a model: the oracle, uniformly random valid actions, the replies of an earlier run."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from evalharness.base.errors import UserError
from evalharness.envs.base import Actions, Task
from evalharness.envs.surface import ActionSurface
from evalharness.models.base import Environment, Player, Policy, PolicyStoppedError, Reply, RequestForm
from evalharness.protocol.prompt import Message


def _say(thought: str, action: str, *, plan: str | None = None) -> Reply:
    return Reply(f"Thought: {thought}\nAction: {action}", plan=plan)


@dataclass
class _ScriptPlayer(Player):
    """Gives the replies of a list in order, one in each turn."""

    load: Callable[[], Awaitable[Sequence[Reply]]]
    replies: Sequence[Reply] | None = None

    async def reply(self, messages: list[Message], *, turn: int, form: RequestForm | None = None) -> Reply:
        if self.replies is None:
            self.replies = await self.load()
        if turn > len(self.replies):
            raise PolicyStoppedError("the script is at its end")
        return self.replies[turn - 1]


class OraclePolicy(Policy):
    """Follows the environment's own plan for the task."""

    def player(self, task: Task, sample: int, environment: Environment) -> Player:
        async def load() -> list[Reply]:
            plan = await environment.oracle()
            return [_say(f"Step {n} of {len(plan)} of the plan.", action) for n, action in enumerate(plan, 1)]

        return _ScriptPlayer(load)


class ReferencePolicy(Policy):
    """Follows one reference plan of the environment in each sample; the audit of subgoal labels uses this policy."""

    def player(self, task: Task, sample: int, environment: Environment) -> Player:
        async def load() -> list[Reply]:
            plans = list((await environment.reference_plans()).items())
            return [
                _say(f"The {name} plan.", action, plan=name)
                for name, plan in plans[sample : sample + 1]
                for action in plan
            ]

        return _ScriptPlayer(load)


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
class RandomPolicy(Policy):
    """Chooses uniformly among the valid actions except the help action (`Actions.help_action`).

    The choices of an episode depend only on (seed, task, sample).
    """

    seed: int
    actions: Mapping[str, Actions]
    """Family -> its actions."""

    def player(self, task: Task, sample: int, environment: Environment) -> Player:
        template = self.actions[task.family].help_in(task.words)
        asks_for_help = ActionSurface({} if template is None else {"help": template})
        return _RandomPlayer(environment, random.Random(f"{self.seed}/{task.id}/{sample}"), asks_for_help)


@dataclass
class ReplayPolicy(Policy):
    """Repeats the replies of an earlier run."""

    replies: Mapping[tuple[str, int], Sequence[Reply]] = field(default_factory=dict)
    """(task id, sample) -> replies in order."""

    def player(self, task: Task, sample: int, environment: Environment) -> Player:
        replies = self.replies.get((task.id, sample))
        if replies is None:
            raise UserError(f"the replayed run has no episode of {task.id}, sample {sample}")

        async def load() -> Sequence[Reply]:
            return replies

        return _ScriptPlayer(load)
