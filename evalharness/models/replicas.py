"""Distribute the requests for one model over several servers, and handle the death of a server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from evalharness.base.errors import InfrastructureError, UserError
from evalharness.envs.base import Task
from evalharness.models.base import Environment, Player, Reply, RequestForm
from evalharness.models.endpoint import TURN_FORM, ChatEndpoint, EndpointError, episode_key, request_seed
from evalharness.models.opened import SILENT, Opened, Reports
from evalharness.models.serving.model_server import ModelServer
from evalharness.models.serving.readiness import is_up
from evalharness.protocol.prompt import Message
from evalharness.records.identity import ANSWERED_BY

RESTARTS = 3
"""Maximum number of restarts of a managed server. If it dies more often, the requests are the cause."""
_ASK_AGAIN = 15.0
"""Seconds until a request is sent again to an endpoint that stopped answering."""


class ModelGoneError(InfrastructureError):
    """No server of the model can answer any more."""


@dataclass
class Replica:
    """One server of the model."""

    name: str
    endpoint: ChatEndpoint
    server: ModelServer | None = None
    """The server's process if the harness started it; it is restarted when it dies."""
    restarts: int = 0
    up: bool = True
    gone: str | None = None
    """Why the server will never answer again; None while the server can answer or can be restarted."""
    down_since: float = 0.0
    asked: set[asyncio.Timeout] = field(default_factory=set)
    """Timeouts of the server's current requests; when a timeout expires, its request is cancelled."""

    def mark_down(self) -> None:
        """Mark the server as down and cancel its current requests at once."""
        self.up = False
        self.down_since = time.monotonic()
        now = asyncio.get_running_loop().time()
        for watched in list(self.asked):
            watched.reschedule(now)


class Replicas:
    """A policy over several servers. An episode stays with one server, whose prefix cache contains its turns. If the
    server dies, the episode repeats its request at another server, or waits until a server is up again."""

    def __init__(self, replicas: Sequence[Replica], reports: Reports = SILENT) -> None:
        self.replicas = replicas
        self._reports = reports
        self._changed = asyncio.Event()
        self._watchers = [asyncio.create_task(self._watch(r)) for r in replicas if r.server is not None]

    def player(self, task: Task, sample: int, environment: Environment) -> Player:
        return self.conversation(task.id, sample, TURN_FORM)

    def conversation(self, key: str, sample: int, form: RequestForm) -> Player:
        """Return a player for messages outside any environment; `key` and `sample` decide the seeds."""
        form = replace(form, episode=episode_key(self.replicas[0].endpoint.sampling.seed, key, sample))
        return _ReplicaPlayer(self, key, sample, form)

    def failure(self) -> str | None:
        """Return why no server can ever answer again; None while some server can."""
        reasons = [replica.gone for replica in self.replicas]
        return None if None in reasons else "; ".join(filter(None, reasons))

    async def close(self) -> None:
        for watcher in self._watchers:
            watcher.cancel()
        await asyncio.gather(*self._watchers, return_exceptions=True)
        await asyncio.gather(*(replica.endpoint.close() for replica in self.replicas))

    async def choose(self, current: Replica | None) -> Replica:
        """Return `current` if this server is up, otherwise the server with the fewest requests. Wait while all servers
        are being restarted. Count an endpoint that has been down for `_ASK_AGAIN` seconds as up again."""
        now = time.monotonic()
        for replica in self.replicas:
            if replica.server is None and not replica.up and now - replica.down_since > _ASK_AGAIN:
                replica.up = True
        while True:
            if current is not None and current.up:
                return current
            up = [replica for replica in self.replicas if replica.up]
            if up:
                return min(up, key=lambda replica: (len(replica.asked), replica.name))
            if (reason := self.failure()) is not None:
                raise ModelGoneError(reason)
            self._changed.clear()
            if all(replica.server is None for replica in self.replicas):
                for replica in self.replicas:  # no other server is left, so try all again
                    replica.up = True
            else:
                await self._changed.wait()

    async def handle_lost(self, replica: Replica, error: EndpointError) -> None:
        """Handle a server that gave no usable reply. Mark an endpoint as down if another endpoint can take over its
        episodes. Kill a managed server that hangs, so that `_watch` restarts it. Otherwise raise `error`."""
        if not replica.up:
            return
        if replica.server is not None:
            if replica.server.alive() and not await is_up(replica.server.base_url, within=10):
                self._reports.event(f"{replica.name} no longer answers")
                await replica.server.kill()
                return
            raise error
        if len(self.replicas) == 1:
            raise error
        replica.mark_down()
        self._reports.event(f"{replica.name} is down: {error}")
        self._reports.status(f"{replica.name} is down; its episodes move: {error}")
        if not any(other.up for other in self.replicas):
            raise error

    async def _watch(self, replica: Replica) -> None:
        """Restart a managed server when it dies, at most `RESTARTS` times."""
        server = replica.server
        assert server is not None
        while True:
            await server.wait_dead()
            reason = server.failure() or "vLLM was stopped"
            first = reason.splitlines()[0]
            replica.mark_down()
            if replica.restarts >= RESTARTS:
                replica.gone = f"{reason}\n  it was started again {replica.restarts} times"
                self._reports.event(f"{replica.name}: {first}; not started again")
                self._changed.set()
                return
            replica.restarts += 1
            self._reports.event(f"{replica.name}: {first}; restart {replica.restarts} of {RESTARTS}")
            self._reports.status(f"{first}; starting it again ({replica.restarts} of {RESTARTS})")
            try:
                await server.restart()
                # Connections to the old server are closed, and the new server may have another port.
                await replica.endpoint.close()
                replica.endpoint.base_url = server.base_url
                await replica.endpoint.start()
            except Exception as error:  # any error: the requests that wait for this server need the reason
                replica.gone = f"{reason}\n  and could not be started again: {str(error) or repr(error)}"
                self._changed.set()
                return
            replica.up = True
            seconds = time.monotonic() - replica.down_since
            self._reports.event(f"{replica.name} is up again, {seconds:.0f} s later")
            self._reports.status("")
            self._changed.set()


@dataclass
class _ReplicaPlayer(Player):
    group: Replicas
    key: str
    sample: int
    form: RequestForm
    replica: Replica | None = None
    """The server that got the last request."""

    async def reply(self, messages: list[Message], *, turn: int, form: RequestForm | None = None) -> Reply:
        form = self.form if form is None else replace(form, episode=self.form.episode)
        while True:
            self.replica = replica = await self.group.choose(self.replica)
            seed = request_seed(replica.endpoint.sampling.seed, self.key, self.sample, turn, form.nonce)
            try:
                async with asyncio.timeout(None) as watched:
                    replica.asked.add(watched)
                    try:
                        return await replica.endpoint.chat(messages, seed=seed, form=form)
                    finally:
                        replica.asked.discard(watched)
            except TimeoutError:
                continue  # `mark_down` expired the timeout: the server is down
            except EndpointError as error:
                await self.group.handle_lost(replica, error)

    async def confirm(self) -> None:
        """Check which model the episode's endpoint serves. Skip a server that the harness started, because the hash of
        its model is known. Endpoints that the episode used earlier were checked when they failed."""
        if self.replica is not None and self.replica.server is None:
            await self.replica.endpoint.confirm()


@asynccontextmanager
async def connect(replicas: Sequence[Replica], reports: Reports) -> AsyncIterator[Opened]:
    """Open one policy that sends its requests to all servers of one model."""
    group = Replicas(replicas, reports)
    clients = [replica.endpoint for replica in replicas]
    try:
        await asyncio.gather(*(client.start() for client in clients))
        ways: list[dict[str, Any]] = []
        """Distinct forms of requests that the servers accept (`ChatEndpoint.facts`)."""
        for client in clients:
            if (way := client.facts()) not in ways:
                ways.append(way)
        facts: dict[str, Any] = {"requests": ways}
        # The model of a server that the harness started is known.
        if all(replica.server is None for replica in replicas):
            facts |= _sources(clients, reports)
        yield Opened(
            group,
            group.failure,
            facts=facts,
            metrics=lambda: [replica.endpoint.metrics_url for replica in replicas if replica.up],
        )
    finally:
        await group.close()


def _sources(clients: Sequence[ChatEndpoint], reports: Reports) -> dict[str, Any]:
    """Return the source of the servers' first replies. Raises UserError if they name different models or weights."""
    first, *others = [client.source or {} for client in clients]
    for client, other in zip(clients[1:], others, strict=True):
        for key, what in ((ANSWERED_BY, "models"), ("weight_version", "versions of the weights")):
            if other.get(key) != first.get(key):
                raise UserError(
                    f"the endpoints' replies name different {what}: {first.get(key)!r} at {clients[0].base_url}, "
                    f"{other.get(key)!r} at {client.base_url}; evaluate each in a run of its own"
                )
    if (name := first.get(ANSWERED_BY)) not in (None, clients[0].model):
        reports.event(f"asked for {clients[0].model!r}, the replies name the model {name!r}")
    prints = sorted({text for each in (first, *others) if (text := each.get("system_fingerprint"))})
    return dict(first) | ({"system_fingerprint": prints} if prints else {})
