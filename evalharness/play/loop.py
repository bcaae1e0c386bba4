"""Play an episode with an agent, a model and an environment."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from evalharness.agents.base import Agent, ContextFullError, EpisodeStart
from evalharness.agents.guard import Guarded
from evalharness.agents.react import ReactAgent
from evalharness.base.timing import CallTimes
from evalharness.envs.base import MAX_TURNS, Task
from evalharness.models.base import Environment, Player, PolicyStoppedError
from evalharness.models.completion import ContentFilteredError
from evalharness.play.dialogue import Dialogue, TurnReply
from evalharness.protocol.perturb import PlayedSurface
from evalharness.protocol.prompt import PromptFile
from evalharness.protocol.react import STOP_SEQUENCES
from evalharness.records.episode import EndedBy, Episode, Turn, read_environment_end


@dataclass(frozen=True)
class ActionResult:
    """The result of a turn: the environment's answer, or the correction of a reply without an action."""

    observation: str
    terminated: bool = False
    valid: bool = False
    subgoals_completed: tuple[int, ...] = ()
    no_effect: bool | None = None
    environment_s: float = 0.0
    """Seconds that the simulator needed."""
    worker_s: float = 0.0
    """Seconds of waiting for the simulator's process, without the simulator's own time."""


@dataclass
class WordedEnvironment:
    """An environment whose texts and actions have the wording of the run's perturbation."""

    world: Environment
    surface: PlayedSurface
    info: dict[str, Any]
    """The info of the environment's last answer, such as progress and success."""

    @property
    def last_call(self) -> CallTimes:
        return self.world.last_call

    async def reset(self, task: Task) -> tuple[str, str, dict[str, Any]]:
        """Reset the environment; return goal, first observation and info."""
        goal, observation, self.info = await self.world.reset(task)
        return self.surface.names(goal), self.surface.observation(observation), self.info

    async def step(self, action: str) -> tuple[str, bool, dict[str, Any]]:
        answer, terminated, self.info = await self.world.step(self.surface.to_world(action))
        return self.surface.observation(answer, action), terminated, self.info

    async def carry_out(self, action: str) -> ActionResult:
        began = time.perf_counter()
        observation, terminated, info = await self.step(action)
        simulated = self.world.last_call.took_s
        return ActionResult(
            observation,
            terminated,
            info["valid"],
            tuple(info["subgoals_completed"]),
            info.get("no_effect"),
            simulated,
            max(0.0, time.perf_counter() - began - simulated),
        )

    async def valid_actions(self) -> list[str]:
        # Keep the order of the unperturbed actions: a random policy then chooses the same ones when perturbed.
        return [self.surface.from_world(action) for action in await self.world.valid_actions()]

    async def oracle(self) -> list[str]:
        return [self.surface.from_world(action) for action in await self.world.oracle()]

    async def reference_plans(self) -> dict[str, list[str]]:
        plans = await self.world.reference_plans()
        return {name: [self.surface.from_world(action) for action in plan] for name, plan in plans.items()}


async def play_episode(
    task: Task,
    environment: Environment,
    open_player: Callable[[Environment], Player],
    *,
    prompt: PromptFile,
    surface: PlayedSurface,
    agent: Agent | None = None,
    sample: int = 0,
    max_turns: int = MAX_TURNS,
    keep_thinking: bool = False,
    on_turn: Callable[[Turn], None] = lambda turn: None,
) -> Episode:
    """Play one episode of `task` with a new `agent` (None: `react`). `keep_thinking`: keep reasoning in the messages.
    Raises AgentFaultError, and infrastructure errors, after which the caller starts the episode again."""
    started, clock = time.time(), time.perf_counter()
    surface = surface.for_game(task.words)
    world, guarded = WordedEnvironment(environment, surface, {}), Guarded(agent or ReactAgent())
    before = time.perf_counter()
    goal, first, _ = await world.reset(task)
    simulated = environment.last_call.took_s
    waited = max(0.0, time.perf_counter() - before - simulated)
    start = EpisodeStart(
        task.id, task.family, task.kind, goal, first, max_turns, surface.prompt(prompt.for_kind(task.kind)),
        surface.perturbed, await _valid_actions(world, guarded), keep_thinking,
    )  # fmt: skip
    guarded.start(start)
    dialogue = Dialogue(guarded, open_player(world))
    turns, ended_by = await _play_turns(world, dialogue, max_turns, on_turn)
    outcome: dict[str, Any] = {key: world.info[key] for key in ("progress", "success", "solved")}
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
        first_observation=first,
        turns=tuple(turns),
        **outcome,
        ended_by=ended_by,
        trims=tuple(dialogue.trims),
        subgoals=task.subgoals,
        task_hash=task.content_hash,
        prompt_hash=prompt.sha256,
        policy_s=sum(turn.policy_s for turn in turns),
        environment_s=simulated + sum(turn.environment_s for turn in turns),
        started=started,
        wall_s=time.perf_counter() - clock,
        worker_s=waited + sum(turn.worker_s for turn in turns),
        plan=dialogue.plan,
        figures=dict(world.info.get("figures", {})),
        further=tuple(dialogue.further),
        first_valid_actions=start.valid_actions,
        words=task.words,
    )


async def _play_turns(
    world: WordedEnvironment,
    dialogue: Dialogue,
    max_turns: int,
    on_turn: Callable[[Turn], None],
) -> tuple[list[Turn], EndedBy]:
    """Play turns until the environment, the turn limit, the context, a content filter or the policy ends them."""
    agent, turns = dialogue.agent, list[Turn]()
    while len(turns) < max_turns:
        try:
            answer = await dialogue.ask(len(turns) + 1)
        except PolicyStoppedError:
            return turns, "policy_stopped"
        except ContextFullError:
            return turns, "context_full"
        except ContentFilteredError:
            return turns, "content_filter"
        action = answer.parsed.action
        result = (
            ActionResult(agent.correction(answer.parsed)) if action is None else await world.carry_out(action)
        )
        goes_on = not result.terminated and len(turns) + 1 < max_turns
        valid_actions = await _valid_actions(world, agent) if goes_on else None
        agent.observe(result.observation, valid_actions)
        turns.append(_turn(len(turns) + 1, answer, result, world.info["progress"], valid_actions))
        on_turn(turns[-1])
        if result.terminated:
            return turns, read_environment_end(world.info)
    return turns, "turn_limit"


async def _valid_actions(world: WordedEnvironment, agent: Guarded) -> tuple[str, ...] | None:
    return tuple(await world.valid_actions()) if agent.wants_valid_actions else None


def _turn(
    number: int,
    answer: TurnReply,
    result: ActionResult,
    progress: float,
    valid_actions: tuple[str, ...] | None,
) -> Turn:
    reply, parsed = answer.reply, answer.parsed
    return Turn(
        turn=number,
        reply=reply.text,
        thought=parsed.thought,
        action=parsed.action,
        observation=result.observation,
        progress=progress,
        valid=result.valid,
        format_errors=parsed.errors,
        subgoals_completed=result.subgoals_completed,
        no_effect=result.no_effect,
        finish_reason=reply.finish_reason,
        prompt_tokens=reply.prompt_tokens,
        completion_tokens=reply.completion_tokens,
        cached_tokens=reply.cached_tokens,
        policy_s=answer.policy_s,
        latency_s=reply.latency,
        failed_tries=reply.failed_tries,
        environment_s=result.environment_s,
        worker_s=result.worker_s,
        reasoning=parsed.reasoning or reply.reasoning.strip(),
        reasoning_tokens=reply.reasoning_tokens,
        calls=reply.calls,
        further=answer.further,
        valid_actions=valid_actions,
        sent=answer.sent,
        stopped_by=None if reply.stopped_by in STOP_SEQUENCES else reply.stopped_by,
        prompt_cut=answer.prompt_cut,
    )
