"""The policy of `--agent external`: a program outside the harness chooses the actions."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from evalharness.agents.program import Program
from evalharness.base.errors import UserError
from evalharness.base.reading import read_object
from evalharness.config.outside import OutsideConfig
from evalharness.door.door import Door, is_one_of, listen
from evalharness.envs.base import Task
from evalharness.models.base import Environment, Player, Reply, RequestForm
from evalharness.models.opened import Opened, Prepared, Reports
from evalharness.protocol.prompt import Message
from evalharness.records.episode import Episode
from evalharness.records.lines import LineFile, read_lines
from evalharness.rl.outside.application import application
from evalharness.rl.outside.messages import Observation
from evalharness.rl.outside.process import TOKEN, AgentProcess, split_command
from evalharness.rl.outside.session import NeverAskedError, Session, Sessions

FILE = "handouts.jsonl"
"""The file that records each time an episode was given to an agent, to reveal repeated attempts."""


class HandOuts:
    def __init__(self, folder: Path) -> None:
        """Read `handouts.jsonl` in `folder`. Raises UserError if the file is damaged."""
        self._file = LineFile(folder / FILE)
        self._file.drop_torn_line()
        self._counts = Counter(read_lines(folder / FILE, "the episode counts as not given out", _key))

    def note(self, key: tuple[str, int]) -> int:
        """Record that the episode was given to an agent, and return how often it has been. Raises StoreError."""
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
"""The file with the output of the processes of `--agent-command`."""


@dataclass
class OutsidePolicy:
    """A policy that starts a process for each episode."""

    command: Sequence[str]
    log: Path
    url: str
    sessions: Sessions
    program: Program
    """Hashes of the program's files when the run started."""
    wait_s: float
    """Time limit in seconds from the start of a process to its request for the episode."""
    turn_s: float
    """Time limit in seconds for each action."""
    broken: str | None = None
    """Error message if no agent process could play; the run stops then."""
    _ending: set[asyncio.Task[None]] = field(default_factory=set)

    def player(self, task: Task, sample: int, environment: Environment) -> Player:
        return _OutsidePlayer(self, task, sample)

    def end_process(self, process: AgentProcess, session: Session) -> None:
        """End the process in the background, while other episodes continue."""
        task = asyncio.create_task(self._end(process, session))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def _end(self, process: AgentProcess, session: Session) -> None:
        try:
            await process.end()
        finally:
            self.sessions.by_token.pop(session.token, None)

    async def close(self) -> None:
        while self._ending:
            await asyncio.gather(*self._ending, return_exceptions=True)


@dataclass
class _OutsidePlayer(Player):
    """Sends the loop's messages to the process, whose replies are the agent's actions."""

    policy: OutsidePolicy
    task: Task
    sample: int
    session: Session | None = None
    process: AgentProcess | None = None
    _watching: asyncio.Task[None] | None = None

    async def reply(self, messages: list[Message], *, turn: int, form: RequestForm | None = None) -> Reply:
        """Return the agent's next action. Raises PolicyStoppedError, NeverAskedError."""
        observation = Observation.model_validate_json(messages[-1]["content"])
        if self.session is None:
            self.session = await self._open(observation)
        else:
            self.session.show(observation)
        action = await self.session.next_action(self.policy.turn_s)
        return Reply(action.text, reasoning=action.thought)

    def finish(self, episode: Episode) -> Episode:
        if self.session is None:
            return episode
        text = episode.turns[-1].observation if episode.turns else episode.first_observation
        self._end(Observation(text=text, goal=self.session.opening.goal, turns_left=0))
        return replace(episode, outside=self.session.to_record())

    def void(self) -> None:
        self._end(None)

    def _end(self, last: Observation | None) -> None:
        if self._watching is not None:
            self._watching.cancel()
        if self.session is not None:
            self.session.end(last)
            if self.process is None:
                self.policy.sessions.by_token.pop(self.session.token, None)
            else:
                self.policy.end_process(self.process, self.session)

    async def _open(self, opening: Observation) -> Session:
        policy = self.policy
        session = self.session = policy.sessions.open((self.task.id, self.sample), opening)
        if edited := policy.program.find_edited():
            policy.broken = (
                f"{edited[0]} has changed since the run began (--agent-command): undo it, or choose -o DIR"
            )
            raise NeverAskedError(policy.broken)
        about = f"{self.task.id}, sample {self.sample}"
        self.process = await AgentProcess.start(
            policy.command, about, policy.log, url=policy.url, token=session.token
        )
        claimed = asyncio.create_task(session.claimed.wait())
        exited = asyncio.create_task(self.process.wait())
        try:
            await asyncio.wait({claimed, exited}, timeout=policy.wait_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            claimed.cancel()
            exited.cancel()
        if not session.claimed.is_set():
            why = (
                f"ended with status {exited.result()}"
                if exited.done()
                else f"was silent for {policy.wait_s:g} s"
            )
            failure = f"the agent's process {why} before it asked for its episode: {self.process.last_words}"
            if not policy.sessions.ever_claimed:
                policy.broken = f"{failure} (--agent-command; see agent.log)"
            raise NeverAskedError(failure)
        self._watching = asyncio.create_task(self._watch(self.process, session))
        return session

    async def _watch(self, process: AgentProcess, session: Session) -> None:
        await process.wait()
        session.stop("exited")


def prepare_outside(name: str, config: OutsideConfig) -> Prepared:
    """Prepare the policy; `name` is the user's name for the agent. Raises UserError if the command cannot be
    started."""
    if config.agent_command is None:
        raise UserError("--agent external needs the program that acts: --agent-command 'python my_agent.py'")
    command = split_command(config.agent_command)
    identity: dict[str, Any] = {"kind": "external", "name": name}

    @asynccontextmanager
    async def opened(folder: Path, reports: Reports) -> AsyncIterator[Opened]:
        async with AsyncExitStack() as stack:
            handouts = HandOuts(folder)
            stack.callback(handouts.close)
            sessions = Sessions(handouts.note)
            door = Door(
                lambda given: is_one_of(given, sessions.by_token),
                f"give the token of ${TOKEN}: Authorization: Bearer TOKEN",
            )
            url = await stack.enter_async_context(
                listen(application(sessions, door), "127.0.0.1", 0, backlog=1024, flags="address")
            )
            policy = OutsidePolicy(
                command,
                folder / LOG,
                url,
                sessions,
                config.program[1],
                config.agent_wait,
                config.turn_time_limit,
            )
            stack.push_async_callback(policy.close)
            yield Opened(policy, failure=lambda: policy.broken)

    return Prepared(identity, opened, lambda: f"{command[0]} for each episode")
