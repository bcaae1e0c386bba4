"""A managed vLLM on some node of a Ray cluster, behind the same interface as one of this machine.

A Ray actor holds the very `ManagedServer` that a run without a cluster would have; requests go to it over HTTP. It
listens on its node's address, so it wants a key, made anew for every server and passed on in the environment alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import ActorUnavailableError, RayError

from evalharness.base.errors import InfrastructureError, UserError
from evalharness.models.serving.arguments import check_extra_arguments
from evalharness.models.serving.checkpoint import is_local
from evalharness.models.serving.find import find_server
from evalharness.models.serving.managed import ManagedServer
from evalharness.models.serving.readiness import is_up
from evalharness.models.serving.server_resources import ServerResources, result

_PLACE_TIMEOUT = 600.0
"""Seconds until a node has room for the server: one may be started by an autoscaler."""
_STOP_TIMEOUT = 60.0
_LOOK_EVERY = 1.0
_SPARE_CHILDREN = {"RAY_kill_child_processes_on_worker_exit": "0"}
"""Ray would give SIGKILL to an actor's own children when the actor ends: to the supervisor, which then cannot end
what is below it."""
_LOG_BYTES = 1_000_000
"""Of a log, brought here at a time."""


class ServerHost:
    """The actor: on a node, one server."""

    def __init__(self, vllm: str | None, what: dict[str, Any]) -> None:
        self._vllm = vllm
        self._what = what
        self._node = str(ray.util.get_node_ip_address())  # type: ignore[no-untyped-call]
        # In the folder of Ray's logs of this node: standard error of an actor is a file there.
        self._log = Path("/dev/stderr").resolve().parent / f"evalharness-vllm-{os.getpid()}.log"
        self._server: ManagedServer | None = None
        self._ready = False
        self._status = ""

    async def where(self) -> str:
        return self._node

    async def start(self) -> dict[str, Any]:
        try:
            self._server = ManagedServer(
                command=find_server(self._vllm),
                log_path=self._log,
                host=self._node,
                environment=_environment(),
                on_status=self._note,
                **self._what,
            )
            await self._server.start()
        except UserError as error:
            return {"refused": str(error), "path": str(self._log)}
        except InfrastructureError as error:
            return {"error": str(error)}
        self._ready = True
        return {
            "base_url": self._server.base_url,
            "argv": self._server.argv,
            "version": self._server.version,
        }

    async def news(self, position: int) -> dict[str, Any]:
        """After a second, or at once when the server has died: the log from `position` on, and how it is."""
        if self._ready and self._server is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._server.wait_dead(), _LOOK_EVERY)
        else:
            await asyncio.sleep(_LOOK_EVERY)
        answer: dict[str, Any] = {"status": self._status, "log": b"", "failure": None}
        self._status = ""
        if self._log.exists():
            with self._log.open("rb") as file:
                file.seek(position)
                answer["log"] = file.read(_LOG_BYTES)
        if self._ready and self._server is not None and not self._server.alive():
            answer |= {"failure": self._server.failure() or "vLLM was stopped", "path": str(self._log)}
        return answer

    async def stop(self) -> None:
        if self._server is not None:
            await self._server.stop()

    async def kill(self) -> None:
        if self._server is not None:
            await self._server.kill()

    def _note(self, text: str) -> None:
        self._status = text


def _environment() -> dict[str, str]:
    """Of the actor, without what Ray has put there: one thread for each core asked for, the harness's packages."""
    ours = {"PYTHONPATH", "OMP_NUM_THREADS"}
    return {k: v for k, v in os.environ.items() if k not in ours and not k.startswith("RAY_")}


class RayServer:
    """Made by `start`, on a node that Ray chooses; a restart may be on another one."""

    def __init__(
        self,
        *,
        resources: ServerResources,
        vllm: str | None,
        model: str,
        served_name: str,
        log_path: Path,
        extra_args: Sequence[str] = (),
        on_status: Callable[[str], None] | None = None,
    ) -> None:
        """`vllm` and `model` as on the node. `log_path` is here; the log of the node is brought there."""
        check_extra_arguments(extra_args)
        self.version: str | None = None
        self.argv: list[str] = []
        self.api_key: str | None = secrets.token_urlsafe(32)
        self.base_url = ""
        self._resources = resources
        self._vllm = vllm
        self._what = {
            "model": str(Path(model).expanduser().absolute()) if is_local(model) else model,
            "served_name": served_name,
            "extra_args": list(extra_args),
            "api_key": self.api_key,
        }
        self._log_path = log_path
        self._on_status = on_status or (lambda text: None)
        self._node = "?"
        self._actor: Any = None
        self._follower: asyncio.Task[None] | None = None
        self._dead = asyncio.Event()
        self._failure: str | None = None
        self._position = 0

    def alive(self) -> bool:
        return self._actor is not None and not self._dead.is_set()

    async def wait_dead(self) -> None:
        await self._dead.wait()

    def failure(self) -> str | None:
        return self._failure

    async def restart(self) -> None:
        await self.stop()
        await self.start()

    async def start(self) -> None:
        self._dead, self._failure, self._position = asyncio.Event(), None, 0
        host = ray.remote(ServerHost).options(
            max_restarts=0, runtime_env={"env_vars": _SPARE_CHILDREN}, **self._resources.options()
        )
        self._actor = host.remote(self._vllm, self._what)
        try:
            await self._start(self._actor)
        except BaseException as error:
            await self.stop()
            if isinstance(error, RayError):
                raise InfrastructureError(self._lost(error)) from None
            raise

    async def _start(self, actor: Any) -> None:
        self._node = await self._placed(actor)
        self._follower = asyncio.create_task(self._follow(actor))
        answer = await result(actor.start.remote())
        if "refused" in answer:
            raise UserError(f"on node {self._node}: {self._here(answer['refused'], answer)}")
        if "error" in answer:
            raise InfrastructureError(f"on node {self._node}: {answer['error']}")
        self.base_url, self.argv, self.version = answer["base_url"], answer["argv"], answer["version"]
        if not await is_up(self.base_url, within=30):
            raise UserError(
                f"vLLM is up on node {self._node}, and {self.base_url} does not answer this machine: run "
                "evalharness in the cluster's own network (on a node, in a pod), where that address can be reached"
            )

    async def _placed(self, actor: Any) -> str:
        """The address of the node where the actor has come up."""
        began = time.monotonic()
        asked = asyncio.ensure_future(result(actor.where.remote()))
        try:
            while not (await asyncio.wait({asked}, timeout=5))[0]:
                waited = time.monotonic() - began
                self._on_status(f"waiting for a node with {self._resources} ({waited:.0f} s)")
                if waited > _PLACE_TIMEOUT:
                    raise InfrastructureError(
                        f"no node of the cluster had {self._resources} within {waited:.0f} s (see `ray status`)"
                    )
        finally:
            asked.cancel()
        return str(asked.result())

    async def _follow(self, actor: Any) -> None:
        """Bring the log and the state here until the server has died, or its node has."""
        try:
            while self._failure is None:
                try:
                    self._failure = self._take(await result(actor.news.remote(self._position)))
                except ActorUnavailableError:  # Ray tells when it is gone for good
                    await asyncio.sleep(_LOOK_EVERY)
        except (RayError, OSError) as error:
            self._failure = self._lost(error)
        self._dead.set()

    def _take(self, news: dict[str, Any]) -> str | None:
        """Keep the log, tell the status; why the server died, if it did."""
        if news["log"]:
            self._position += len(news["log"])
            self._log_path.parent.mkdir(parents=True, exist_ok=True)
            with self._log_path.open("ab") as file:
                file.write(news["log"])
        if news["status"]:
            self._on_status(f"{self._node}: {news['status']}")
        return None if news["failure"] is None else self._here(news["failure"], news)

    def _here(self, text: str, answer: dict[str, Any]) -> str:
        """The log's path in an explanation is the node's."""
        return text.replace(answer["path"], str(self._log_path))

    def _lost(self, error: Exception) -> str:
        lines = str(error).strip().splitlines()
        return f"node {self._node} of vLLM died, or Ray's process there: {lines[0] if lines else type(error).__name__}"

    async def kill(self) -> None:
        """A node that cannot even be asked is given up."""
        if self._actor is None:
            return
        with contextlib.suppress(RayError, TimeoutError):
            await asyncio.wait_for(result(self._actor.kill.remote()), _STOP_TIMEOUT)
            return
        self._failure = self._failure or f"node {self._node} of vLLM no longer answers"
        self._dead.set()

    async def stop(self) -> None:
        actor, self._actor = self._actor, None
        if actor is None:
            return
        with contextlib.suppress(RayError, TimeoutError):
            await asyncio.wait_for(result(actor.stop.remote()), _STOP_TIMEOUT)
        if self._follower is not None:
            self._follower.cancel()
            await asyncio.gather(self._follower, return_exceptions=True)
        with contextlib.suppress(RayError, TimeoutError, OSError):
            self._take(await asyncio.wait_for(result(actor.news.remote(self._position)), 10))
        with contextlib.suppress(RayError):
            ray.kill(actor)
        self._dead.set()
