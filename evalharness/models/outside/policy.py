"""The policy whose replies come from outside."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from evalharness.envs.base import Task
from evalharness.models.base import Environment, Player, Reply, RequestForm
from evalharness.models.outside.hub import Hub, NeverAskedError, Offer
from evalharness.models.outside.messages import Observation
from evalharness.models.outside.process import AgentLog, AgentProcess
from evalharness.protocol.prompt import Message
from evalharness.records.episode import Episode


@dataclass
class Started:
    """How processes are started for episodes."""

    command: Sequence[str]
    log: AgentLog
    url: str
    hub: Hub
    broken: str | None = None
    """Why none of them will ever play."""
    ending: set[asyncio.Task[None]] = field(default_factory=set)

    async def process(self, about: str, token: str) -> AgentProcess:
        return await AgentProcess.start(self.command, about, self.log, url=self.url, token=token)

    def end(self, process: AgentProcess, token: str) -> None:
        """While other episodes go on."""
        task = asyncio.create_task(self._end(process, token))
        self.ending.add(task)
        task.add_done_callback(self.ending.discard)

    async def _end(self, process: AgentProcess, token: str) -> None:
        try:
            await process.end()
        finally:
            self.hub.forget_token(token)


@dataclass
class _OutsidePlayer(Player):
    """Shows the agent what the loop would send to a model; its replies are the agent's actions."""

    policy: OutsidePolicy
    task: Task
    sample: int
    offer: Offer | None = None
    process: AgentProcess | None = None
    _watching: asyncio.Task[None] | None = None

    async def reply(self, messages: list[Message], *, turn: int, form: RequestForm | None = None) -> Reply:
        """Raises PolicyStoppedError, AbortedError, NeverAskedError."""
        observation = Observation.model_validate_json(messages[-1]["content"])
        if self.offer is None:
            self.offer = await self._open(observation)
        else:
            self.offer.show(observation)
        action = await self.offer.next_action(self.policy.turn_s)
        return Reply(action.text, reasoning=action.thought)

    def finished(self, episode: Episode) -> Episode:
        if self.offer is None:
            return episode
        text = episode.turns[-1].observation if episode.turns else episode.first_observation
        self._end(Observation(text=text, goal=self.offer.opening.goal, turns_left=0))
        return replace(episode, outside=self.offer.said())

    def void(self) -> None:
        self._end(None)

    def _end(self, last: Observation | None) -> None:
        if self._watching is not None:
            self._watching.cancel()
        if self.offer is not None:
            self.offer.end(last)
            if self.process is not None and self.policy.started is not None:
                self.policy.started.end(self.process, self.offer.token or "")

    async def _open(self, opening: Observation) -> Offer:
        hub, started = self.policy.hub, self.policy.started
        key = self.task.id, self.sample
        if started is None:
            offer = self.offer = await hub.offer(key, opening)
            await hub.wait_claimed(offer)
            return offer
        offer = self.offer = await hub.offer(key, opening, secrets.token_urlsafe(24))
        assert offer.token is not None
        self.process = await started.process(f"{self.task.id}, sample {self.sample}", offer.token)
        claimed = asyncio.create_task(offer.claimed.wait())
        exited = asyncio.create_task(self.process.wait())
        try:
            await asyncio.wait({claimed, exited}, timeout=hub.wait_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            claimed.cancel()
            exited.cancel()
        if not offer.claimed.is_set():
            why = (
                f"ended with status {exited.result()}"
                if exited.done()
                else f"was silent for {hub.wait_s:g} s"
            )
            said = f"the agent's process {why} before it asked for its episode: {self.process.last_words}"
            if not hub.ever_claimed:
                started.broken = f"{said} (--agent-command; see agent.log)"
            raise NeverAskedError(said)
        self._watching = asyncio.create_task(self._watch(self.process, offer))
        return offer

    async def _watch(self, process: AgentProcess, offer: Offer) -> None:
        await process.wait()
        offer.stop("exited")


@dataclass
class OutsidePolicy:
    hub: Hub
    turn_s: float
    """Seconds that an agent has for a turn."""
    started: Started | None = None
    """None: agents come by themselves."""

    def player(self, task: Task, sample: int, environment: Environment) -> Player:
        return _OutsidePlayer(self, task, sample)

    async def close(self) -> None:
        await self.hub.close()
        if self.started is not None:
            while self.started.ending:
                await asyncio.gather(*self.started.ending, return_exceptions=True)
