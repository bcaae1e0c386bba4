"""Play an episode with a client's replies in place of a model's.

The evaluation's own loop (`play.loop.play_episode`) plays the episode. So prompt, parser, corrections and scores are
the same as in an evaluation.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, TypeVar

from evalharness.agents.base import Agent, EpisodeStart, ModelReply, Request
from evalharness.base.timing import CallTimes
from evalharness.envs.base import EnvSpec, Task
from evalharness.models.base import Environment, Player, Reply, RequestForm
from evalharness.play import loop
from evalharness.play.workers.process import RemoteEnvironment
from evalharness.protocol.drawn import draw_name, find_surface
from evalharness.protocol.perturb import PlayedSurface
from evalharness.protocol.prompt import Message, PromptFile
from evalharness.protocol.react import ParsedReply
from evalharness.records.episode import Episode, Turn
from evalharness.rl.server.pools import Pools
from evalharness.rl.server.tasks import ServedTask

Reward = Literal["success", "progress_gain"]
Result = TypeVar("Result")


@dataclass(frozen=True)
class EpisodeRules:
    """The rules of play, the same for all sessions."""

    specs: Mapping[str, EnvSpec]
    prompts: Mapping[str, PromptFile]
    surfaces: Mapping[str, PlayedSurface]
    turn_limits: Mapping[str, int]
    """Environment family -> maximum number of turns."""
    keep_thinking: bool = False
    words_seed: int | None = None
    """Seed of the random wording of each `train` episode; None means the fixed wording in `surfaces`."""

    def surface(self, served: ServedTask, episode_id: str) -> PlayedSurface:
        family = served.task.family
        if self.words_seed is None or served.split != "train":
            return self.surfaces[family]
        return find_surface(self.specs[family], draw_name(self.words_seed, episode_id))


@dataclass(frozen=True)
class Answer:
    """The answer to a client's reset or reply."""

    messages: tuple[Message, ...]
    """Messages to append to the conversation before the next reply: system and user message, or the observation."""
    kept: str | None = None
    """The client's last reply as an evaluation keeps it in the conversation; None after a reset."""
    done: bool = False
    reward: float | None = None
    """Reward for the last reply; None after a reset."""
    admissible: tuple[str, ...] | None = None
    """The valid actions, only in an episode with the option `bare`."""


class _UncancelledEnvironment:
    """Wraps the environment for the loop, so that a cancelled call still runs to its end: cancelling it would end the
    worker process, which has episodes of other sessions, too."""

    def __init__(self, environment: RemoteEnvironment) -> None:
        self.environment = environment
        self.progress = 0.0

    @property
    def last_call(self) -> CallTimes:
        return self.environment.last_call

    async def reset(self, task: Task) -> tuple[str, str, dict[str, Any]]:
        goal, observation, info = await _await_to_end(self.environment.reset(task))
        self.progress = info["progress"]
        return goal, observation, info

    async def step(self, action: str) -> tuple[str, bool, dict[str, Any]]:
        return await _await_to_end(self.environment.step(action))

    async def valid_actions(self) -> list[str]:
        return await _await_to_end(self.environment.valid_actions())

    async def oracle(self) -> list[str]:
        return await _await_to_end(self.environment.oracle())

    async def reference_plans(self) -> dict[str, list[str]]:
        return await _await_to_end(self.environment.reference_plans())


async def _await_to_end(call: Awaitable[Result]) -> Result:
    """Await the call. If this task is cancelled, wait until the call has ended, and then raise the cancellation."""
    inner = asyncio.ensure_future(call)
    try:
        return await asyncio.shield(inner)
    except asyncio.CancelledError:
        with contextlib.suppress(Exception):
            await inner
        raise


@dataclass
class _Client(Player):
    """Gives the client's replies to the loop, in place of a model."""

    messages: list[Message] = field(default_factory=list)
    """The conversation, the same list object to which the loop appends."""
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    replies: asyncio.Queue[Reply] = field(default_factory=lambda: asyncio.Queue(1))

    def begin(self, environment: Environment) -> _Client:
        return self

    async def reply(self, messages: list[Message], *, turn: int, form: RequestForm | None = None) -> Reply:
        self.messages = messages
        self.asked.set()
        return await self.replies.get()


class Bare(Agent):
    """Agent without prompt and parser, for trainers that have their own. The whole reply is the action."""

    name: ClassVar[str] = "bare"
    needs_valid_actions: ClassVar[bool] = True
    admissible: tuple[str, ...] = ()
    """The valid actions; empty at the end of an episode."""

    def start(self, episode: EpisodeStart) -> None:
        self._messages: list[Message] = []
        self._hear(episode.observation, episode.valid_actions)

    def request(self) -> Request:
        return Request(self._messages)

    def read(self, said: ModelReply) -> ParsedReply:
        self._messages.append({"role": "assistant", "content": said.text})
        return ParsedReply("", said.text, said.text, ())

    def observe(self, observation: str, valid_actions: tuple[str, ...] | None = None) -> None:
        self._hear(observation, valid_actions)

    def correction(self, parsed: ParsedReply) -> str:
        return ""  # every reply is an action

    def _hear(self, observation: str, valid_actions: tuple[str, ...] | None) -> None:
        self._messages.append({"role": "user", "content": observation})
        self.admissible = valid_actions or ()


class RunningEpisode:
    """An episode from the reset to the end."""

    def __init__(
        self,
        served: ServedTask,
        reward: Reward,
        episode_id: str,
        surface: PlayedSurface,
        bare: Bare | None = None,
    ) -> None:
        self.served = served
        self.surface = surface
        self.reward: Reward = reward
        self.episode_id = episode_id
        self.bare = bare
        self.replies: list[Reply] = []
        self.turns: list[Turn] = []
        self.result: Episode | None = None
        self.world: _UncancelledEnvironment | None = None
        self._client = _Client()
        self._sent_messages = 0
        self._play: asyncio.Task[None] | None = None

    @property
    def over(self) -> bool:
        return self._play is not None and self._play.done()

    @property
    def progress(self) -> float:
        if self.turns:
            return self.turns[-1].progress
        return 0.0 if self.world is None else self.world.progress

    async def begin(self, pools: Pools, rules: EpisodeRules) -> Answer:
        """Begin the episode. Raises InfrastructureError, UserError, BusyError."""
        self._play = asyncio.create_task(self._run(pools, rules))
        return await self._next_answer()

    async def say(self, reply: Reply) -> Answer:
        before, number = self.progress, len(self.turns)
        self.replies.append(reply)
        self._client.asked.clear()
        self._client.replies.put_nowait(reply)
        answer = await self._next_answer()
        assert len(self.turns) == number + 1
        gained = self.turns[-1].progress - before
        success = self.result is not None and self.result.success
        reward = gained if self.reward == "progress_gain" else float(success)
        return replace(
            answer,
            messages=answer.messages[1:],
            kept=answer.messages[0]["content"],
            done=self.result is not None,
            reward=reward,
        )

    async def close(self) -> None:
        """End the episode after the running call, and return the simulator to its pool."""
        if self._play is not None:
            self._play.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await self._play

    async def _run(self, pools: Pools, rules: EpisodeRules) -> None:
        task = self.served.task
        own_words = rules.specs[task.family].suites.own_words
        if self.bare is not None and own_words is not None:
            task = own_words(task)
        async with pools.environment(task.family) as environment:
            self.world = _UncancelledEnvironment(environment)
            self.result = await loop.play_episode(
                task,
                self.world,
                self._client.begin,
                prompt=rules.prompts[task.family],
                surface=self.surface,
                agent=self.bare,
                max_turns=rules.turn_limits[task.family],
                keep_thinking=rules.keep_thinking,
                on_turn=self.turns.append,
            )

    async def _next_answer(self) -> Answer:
        """Wait until the loop asks for a reply or ends. Return the messages appended since the last call."""
        assert self._play is not None
        asked = asyncio.ensure_future(self._client.asked.wait())
        try:
            await asyncio.wait({asked, self._play}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            asked.cancel()
        if self._play.done():
            self._play.result()  # raises the loop's exception if it failed
        new = tuple(self._client.messages[self._sent_messages :])
        self._sent_messages = len(self._client.messages)
        return Answer(new, admissible=None if self.bare is None else self.bare.admissible)
