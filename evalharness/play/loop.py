"""The chat loop: an environment and a policy make an episode."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from evalharness.base.timing import CallTimes
from evalharness.envs.base import MAX_TURNS, Task
from evalharness.models.base import ContextOverflowError, Environment, Player, PolicyStoppedError, Reply
from evalharness.protocol import react, tools
from evalharness.protocol.perturb import PlayedSurface
from evalharness.protocol.prompt import Message, PromptFile
from evalharness.records.episode import EndedBy, Episode, Trim, Turn


class _ContextFullError(Exception):
    """What has to stay in the conversation does not fit the model's context."""


@dataclass
class _Conversation:
    """Messages that are only ever appended to (so that a server's prefix cache holds), until the context is full."""

    messages: list[Message]
    head: int
    """How many messages at the front are never dropped: system, instruction, example, goal, first observation."""
    trims: list[Trim] = field(default_factory=list)

    def append(self, turn: list[Message]) -> None:
        """The two messages of a turn: what the model said, what it observed then."""
        assert len(turn) == 2
        self.messages += turn

    def drop_older_half(self, turn: int) -> None:
        """Half of the turns at once, oldest first: the prefix cache is lost once, not at every turn from here on. The
        newest turn stays: without its observation the model would not know what its action did."""
        turns = (len(self.messages) - self.head) // 2
        if turns < 2:
            raise _ContextFullError
        dropped = min((turns + 1) // 2, turns - 1)
        del self.messages[self.head : self.head + 2 * dropped]
        self.trims.append(Trim(turn, dropped))


@dataclass(frozen=True)
class _Speaking:
    """The world as a policy may consult it: what it suggests is worded as the policy has to say it."""

    world: Environment
    surface: PlayedSurface

    @property
    def last_call(self) -> CallTimes:
        return self.world.last_call

    async def reset(self, task: Task) -> tuple[str, str, dict[str, Any]]:
        return await self.world.reset(task)

    async def step(self, action: str) -> tuple[str, bool, dict[str, Any]]:
        return await self.world.step(action)

    async def valid_actions(self) -> list[str]:
        # In the canonical order: a random policy then draws the same actions under every perturbation.
        return [self.surface.action(action) for action in await self.world.valid_actions()]

    async def oracle(self) -> list[str]:
        return [self.surface.action(action) for action in await self.world.oracle()]

    async def reference_plans(self) -> dict[str, list[str]]:
        plans = await self.world.reference_plans()
        return {name: [self.surface.action(action) for action in plan] for name, plan in plans.items()}


async def _ask(player: Player, conversation: _Conversation, turn: int) -> Reply:
    while True:
        try:
            return await player.reply(conversation.messages, turn=turn)
        except ContextOverflowError:
            conversation.drop_older_half(turn)


def opening(
    task: Task,
    goal: str,
    observation: str,
    *,
    prompt: PromptFile,
    surface: PlayedSurface,
    max_turns: int,
    acts_by_tools: bool,
) -> list[Message]:
    """What a model reads before its first reply; `goal` and `observation` in the episode's words."""
    shown = surface.prompt(prompt.for_kind(task.kind))
    if acts_by_tools:
        shown = shown.for_tools(tools.FORMAT_RULES)
    return shown.messages(surface.perturbed, goal, observation, max_turns=max_turns)


async def play(
    task: Task,
    environment: Environment,
    open_player: Callable[[Environment], Player],
    *,
    prompt: PromptFile,
    surface: PlayedSurface,
    sample: int = 0,
    max_turns: int = MAX_TURNS,
    keep_thinking: bool = False,
    acts_by_tools: bool = False,
    on_turn: Callable[[Turn], None] = lambda turn: None,
    on_reply: Callable[[Reply], None] = lambda reply: None,
) -> Episode:
    """Play `task` to its end. `keep_thinking`: reasoning stays in the conversation.

    Infrastructure errors pass through: the caller starts the episode over."""
    started, clock = time.time(), time.perf_counter()
    goal, first_observation, info = await environment.reset(task)
    environment_s = environment.last_call.took_s
    worker_s = time.perf_counter() - clock - environment_s
    goal, first_observation = surface.names(goal), surface.observation(first_observation)
    messages = opening(
        task,
        goal,
        first_observation,
        prompt=prompt,
        surface=surface,
        max_turns=max_turns,
        acts_by_tools=acts_by_tools,
    )
    conversation = _Conversation(messages, len(messages))
    player = open_player(_Speaking(environment, surface))
    turns: list[Turn] = []
    plan: str | None = None
    ended_by: EndedBy = "turn_limit"
    while len(turns) < max_turns:
        number = len(turns) + 1
        before = time.perf_counter()
        try:
            reply = await _ask(player, conversation, number)
        except PolicyStoppedError:
            ended_by = "policy_stopped"
            break
        except _ContextFullError:
            ended_by = "context_full"
            break
        answered = time.perf_counter()
        plan = reply.plan or plan
        on_reply(reply)
        truncated = reply.finish_reason == "length"
        if acts_by_tools:
            parsed = tools.parse_calls(
                reply.text, reply.calls, reasoning=reply.reasoning, truncated=truncated
            )
        else:
            parsed = react.parse(
                reply.text, reasoning=reply.reasoning, stopped_by=reply.stopped_by, truncated=truncated
            )
        terminated = False
        completed: tuple[int, ...] = ()
        valid, no_effect = False, None
        simulated = waited = 0.0
        if parsed.action is None:
            observation = tools.correction(parsed) if acts_by_tools else react.correction(parsed)
        else:
            asked = time.perf_counter()
            answer, terminated, info = await environment.step(surface.to_world(parsed.action))
            simulated = environment.last_call.took_s
            waited = time.perf_counter() - asked - simulated
            observation = surface.observation(answer, parsed.action)
            valid, completed = info["valid"], tuple(info["subgoals_completed"])
            no_effect = info.get("no_effect")
        says = partial(tools.turn_messages, calls=reply.calls) if acts_by_tools else react.turn_messages
        conversation.append(says(parsed, observation=observation, keep_thinking=keep_thinking))
        turn = Turn(
            turn=number,
            reply=reply.text,
            thought=parsed.thought,
            action=parsed.action,
            observation=observation,
            progress=info["progress"],
            valid=valid,
            format_errors=parsed.errors,
            subgoals_completed=completed,
            no_effect=no_effect,
            finish_reason=reply.finish_reason,
            prompt_tokens=reply.prompt_tokens,
            completion_tokens=reply.completion_tokens,
            cached_tokens=reply.cached_tokens,
            policy_s=answered - before,
            latency_s=reply.latency,
            failed_tries=reply.failed_tries,
            environment_s=simulated,
            worker_s=max(0.0, waited),
            reasoning=parsed.reasoning,
            reasoning_tokens=reply.reasoning_tokens,
            calls=reply.calls,
        )
        turns.append(turn)
        on_turn(turn)
        if terminated:
            ended_by = "success" if info["success"] else "environment"
            break
    return Episode(
        task_id=task.id,
        family=task.family,
        suite=task.suite,
        kind=task.kind,
        difficulty=task.difficulty,
        labels=task.labels,
        sample=sample,
        perturbation=surface.name,
        goal=goal,
        first_observation=first_observation,
        turns=tuple(turns),
        progress=info["progress"],
        success=info["success"],
        solved=info["solved"],
        ended_by=ended_by,
        trims=tuple(conversation.trims),
        subgoals=task.subgoals,
        task_hash=task.content_hash,
        prompt_hash=prompt.sha256,
        policy_s=sum(turn.policy_s for turn in turns),
        environment_s=environment_s + sum(turn.environment_s for turn in turns),
        started=started,
        wall_s=time.perf_counter() - clock,
        worker_s=max(0.0, worker_s) + sum(turn.worker_s for turn in turns),
        plan=plan,
        figures=dict(info.get("figures", {})),
    )
