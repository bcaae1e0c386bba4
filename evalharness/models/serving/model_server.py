"""Model servers of a run: a server for one run, a server shared by several runs, a server with an adapter."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

from evalharness.base.errors import UserError

Result = TypeVar("Result")
Status = Callable[[str], None]
VARIABLES = {"VLLM_ALLOW_RUNTIME_LORA_UPDATING": "True"}
"""Allows vLLM to load adapters while it runs. The server listens on loopback only."""


class ModelServer(Protocol):
    version: str | None
    """Version of vLLM."""
    argv: list[str]

    @property
    def base_url(self) -> str: ...

    async def start(self) -> None:
        """Start and wait until ready. Raises UserError or InfrastructureError; no process is then left."""

    async def stop(self) -> None:
        """End the server and all its processes. Idempotent."""

    async def restart(self) -> None:
        """Stop the remaining processes and start again with the same arguments."""
        await self.stop()
        await self.start()

    async def kill(self) -> None:
        """End a server that is alive but no longer answers; it counts as dead."""

    def alive(self) -> bool: ...

    async def wait_dead(self) -> None:
        """Wait until the server has ended, by itself or by `stop`."""

    def failure(self) -> str | None:
        """Return why the server died by itself; None while it runs or after `stop`."""


class SharedServers:
    """`with SharedServers(folder) as serve: evaluate(config, serve=serve)`, for any number of evaluations.

    Call it with a server class and the arguments for it. Every evaluation has its own event loop, so the servers use
    another event loop in a thread. A run without unplayed episodes starts no server.
    """

    def __init__(self, folder: Path) -> None:
        """`folder` gets the servers' logs; without shared servers, each run's folder has its own log."""
        self._folder = folder
        self._servers: dict[str, ModelServer] = {}
        """File name of a server's log -> the server. The name distinguishes several servers of one run."""
        self._what: dict[str, str] = {}
        """File name of a server's log -> the server's arguments, as text."""
        self._replaced: list[ModelServer] = []
        self._status: Status = lambda text: None
        """Callback of the current run for status lines."""
        self._tasks: set[asyncio.Task[Any]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="model servers", daemon=True)

    def __enter__(self) -> SharedServers:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        try:
            asyncio.run_coroutine_threadsafe(self._stop_all(), self._loop).result()
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def __call__(
        self,
        make: Callable[..., ModelServer],
        *,
        log_path: Path,
        on_status: Status | None = None,
        **what: Any,
    ) -> ModelServer:
        """Return a server with the arguments `what`. Return the existing server if its arguments are equal; otherwise
        the old server is stopped before the new one starts, so that its memory is free."""
        if on_status is not None:
            self._status = on_status
        key, made_of = log_path.name, repr(sorted(what.items()))
        if self._what.get(key) != made_of:
            if key in self._servers:
                self._replaced.append(self._servers[key])
            # Look up `_status` at each report: a later run may have replaced it, and then gets the report.
            tell = (lambda text: self._status(text)) if on_status is not None else None
            self._servers[key] = make(log_path=self._folder / log_path.name, on_status=tell, **what)
            self._what[key] = made_of
        return cast(ModelServer, _SharedServer(self, self._servers[key]))

    async def make_room(self) -> None:
        await asyncio.gather(*(server.stop() for server in self._replaced))
        self._replaced.clear()

    async def there(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        """Run the coroutine in the servers' event loop. If this call is cancelled, the coroutine is cancelled, too."""
        future = asyncio.run_coroutine_threadsafe(self._track(coroutine), self._loop)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            future.cancel()
            raise

    async def _track(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            return await coroutine
        finally:
            self._tasks.discard(task)

    async def _stop_all(self) -> None:
        # A cancelled start must still end its processes.
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(server.stop() for server in (*self._servers.values(), *self._replaced)))


class _SharedServer:
    """A shared server as one run uses it: `start` does nothing if the server is alive, and `stop` does nothing."""

    def __init__(self, lender: SharedServers, server: ModelServer) -> None:
        self._lender, self._server = lender, server

    def __getattr__(self, name: str) -> Any:
        return getattr(self._server, name)

    async def start(self) -> None:
        if not self._server.alive():
            await self._lender.there(self._lender.make_room())
            await self._lender.there(self._server.start())

    async def stop(self) -> None:
        """Do nothing: later runs use the server."""

    async def restart(self) -> None:
        await self._lender.there(self._server.restart())

    async def kill(self) -> None:
        await self._lender.there(self._server.kill())

    async def wait_dead(self) -> None:
        await self._lender.there(self._server.wait_dead())


def adapter_name(identity: str) -> str:
    """The adapter's name on the server. Different weights get different names."""
    return f"lora-{identity[:16]}"


class WithAdapter:
    """A server that loads the adapter under `name` after each start."""

    def __init__(self, server: ModelServer, name: str, adapter: Path) -> None:
        self._server = server
        self._name = name
        self._adapter = adapter.absolute()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._server, name)

    async def start(self) -> None:
        await self._server.start()
        await self._load()

    async def restart(self) -> None:
        await self._server.restart()
        await self._load()

    async def _load(self) -> None:
        """Load the adapter. Raises UserError if vLLM refuses it."""
        import aiohttp

        wanted = {"lora_name": self._name, "lora_path": str(self._adapter)}
        timeout = aiohttp.ClientTimeout(total=600)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout) as http,
                http.post(f"{self._server.base_url}/load_lora_adapter", json=wanted) as response,
            ):
                text = await response.text()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise UserError(f"vLLM did not load the adapter {self._adapter}: {error}") from None
        if response.status != 200 and "already been loaded" not in text:
            raise UserError(
                f"vLLM refuses the adapter {self._adapter} (HTTP {response.status}): {text[:500]}; without "
                "--lora-serve, evalharness merges it"
            )
