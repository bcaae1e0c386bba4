"""`--agent external` from its configuration to a policy at work."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from evalharness.base.reading import read_object
from evalharness.config.outside import OutsideConfig
from evalharness.models.opened import Opened, Prepared, Reports
from evalharness.models.openenv.door import Door, Gate, is_one_of, listening, token_of
from evalharness.models.outside.application import application
from evalharness.models.outside.hub import Hub
from evalharness.models.outside.mcp_door import is_installed, mcp_door
from evalharness.models.outside.policy import OutsidePolicy, Started
from evalharness.models.outside.process import TOKEN, URL, AgentLog, command_of
from evalharness.records.lines import LineFile, read_lines

FILE = "handouts.jsonl"
"""One line each time that an episode was given to an agent."""


class HandOuts:
    def __init__(self, folder: Path) -> None:
        """Raises UserError for a damaged file."""
        self._file = LineFile(folder / FILE)
        self._file.drop_torn_line()
        lines = read_lines(folder / FILE, "the episode counts as not given out", read_object)
        self._counts = Counter((line["task_id"], line["sample"]) for line in lines)

    def note(self, key: tuple[str, int]) -> int:
        """How often this one has been given out now. Raises StoreError."""
        self._counts[key] += 1
        times = self._counts[key]
        self._file.append({"time": time.time(), "task_id": key[0], "sample": key[1], "times": times})
        return times

    def close(self) -> None:
        self._file.close()


LOG = "agent.log"
"""What the processes of `--agent-command` printed."""
_SESSIONS, _WAITING = 1024, 64
_FAREWELL_S = 2.0
"""Seconds in which agents that ask for a next episode hear that there is none."""
_NOTE = logging.getLogger("evalharness")


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
            mcp = await stack.enter_async_context(mcp_door(hub)) if is_installed() else None
            host, port = config.address
            url = await stack.enter_async_context(
                listening(
                    application(hub, door, Gate(_SESSIONS, _WAITING), mcp),
                    host,
                    port,
                    backlog=_SESSIONS + _WAITING,
                    flags="--agent-listen HOST:PORT",
                )
            )
            started = None if command is None else Started(command, AgentLog(folder / LOG), url, hub)
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
