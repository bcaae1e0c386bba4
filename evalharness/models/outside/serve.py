"""`--agent external`: the policy whose replies come from outside, from its configuration to its work."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from evalharness.agents.program import Program
from evalharness.base.reading import read_object
from evalharness.config.outside import OutsideConfig
from evalharness.envs.base import Task
from evalharness.models.base import Environment, Player, Reply, RequestForm
from evalharness.models.opened import Opened, Prepared, Reports
from evalharness.models.openenv.door import Door, Gate, is_one_of, listening, token_of
from evalharness.models.outside.application import application
from evalharness.models.outside.hub import Hub, NeverAskedError, Offer
from evalharness.models.outside.messages import Observation
from evalharness.models.outside.process import TOKEN, URL, AgentProcess, command_of
from evalharness.protocol.prompt import Message
from evalharness.records.episode import Episode
from evalharness.records.lines import LineFile, read_lines

FILE = "handouts.jsonl"
"""One line each time that an episode was given to an agent."""


class HandOuts:
    def __init__(self, folder: Path) -> None:
        """Raises UserError for a damaged file."""
        self._file = LineFile(folder / FILE)
        self._file.drop_torn_line()
        self._counts = Counter(read_lines(folder / FILE, "the episode counts as not given out", _key))

    def note(self, key: tuple[str, int]) -> int:
        """How often this one has been given out now. Raises StoreError."""
        times = self._counts[key] + 1
        self._file.append({"time": time.time(), "task_id": key[0], "sample": key[1], "times": times})
        self._counts[key] = times
        return times

    def close(self) -> None:
        self._file.close()


def _key(raw: bytes) -> tuple[str, int]:
    line = read_object(raw)
    return str(line["task_id"]), int(line["sample"])


LOG = "agent.log"
"""What the processes of `--agent-command` printed."""
_SESSIONS, _WAITING = 1024, 64
_FAREWELL_S = 2.0
"""Seconds in which agents that ask for a next episode hear that there is none."""
_NOTE = logging.getLogger("evalharness")


@dataclass
class Started:
    """How processes are started for episodes."""

    command: Sequence[str]
    log: Path
    url: str
    hub: Hub
    program: Program
    """Its files at the run's start."""
    broken: str | None = None
    """Why none of them will ever play."""
    ending: set[asyncio.Task[None]] = field(default_factory=set)

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
        if edited := started.program.edited():
            started.broken = (
                f"{edited[0]} has changed since the run began (--agent-command): undo it, or choose -o DIR"
            )
            raise NeverAskedError(started.broken)
        about = f"{self.task.id}, sample {self.sample}"
        self.process = await AgentProcess.start(
            started.command, about, started.log, url=started.url, token=offer.token
        )
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


def prepare_outside(name: str, config: OutsideConfig) -> Prepared:
    """`name`: what the user calls the agent. Raises UserError for a command that cannot be started."""
    command = None if config.agent_command is None else command_of(config.agent_command)
    token = None if command is not None else token_of(TOKEN, needed=True)
    identity: dict[str, Any] = {"kind": "external", "name": name}

    @asynccontextmanager
    async def opened(folder: Path, reports: Reports) -> AsyncIterator[Opened]:
        async with AsyncExitStack() as stack:
            handouts = HandOuts(folder)
            stack.callback(handouts.close)
            hub = Hub(config.agent_wait, handouts.note)
            door = Door(
                lambda given: is_one_of(given, [*hub.tokens(), *([token] if token else [])]),
                f"give the token of ${TOKEN}, or the one that the run printed: Authorization: Bearer TOKEN",
            )
            host, port = config.address
            url = await stack.enter_async_context(
                listening(
                    application(hub, door, Gate(_SESSIONS, _WAITING)),
                    host,
                    port,
                    backlog=_SESSIONS + _WAITING,
                    flags="agent_listen: HOST:PORT in --config FILE",
                )
            )
            started = None if command is None else Started(command, folder / LOG, url, hub, config.program[1])
            policy = OutsidePolicy(hub, config.turn_time_limit, started)
            stack.push_async_callback(policy.close)
            if started is None:
                _NOTE.info(f"waiting for agents: export {URL}={url} {TOKEN}={token}")
            yield Opened(policy, failure=lambda: started.broken if started is not None else None)
            await hub.close()
            if started is None:
                await asyncio.sleep(_FAREWELL_S)

    return Prepared(
        identity,
        opened,
        lambda: f"{command[0]} for each episode" if command else f"agents at {config.agent_listen}",
    )
