"""Model servers that several runs use one after the other: each is started once and lives until the context ends."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from evalharness.server.managed import ManagedServer

Result = TypeVar("Result")


class LentServer(ManagedServer):
    """The same server, seen from another event loop: what has to be awaited is carried out where it lives."""

    def __init__(self, server: ManagedServer, there: Callable[[Coroutine[Any, Any, Any]], Any]) -> None:
        self.__dict__ = server.__dict__  # one state, two views
        self._server = server
        self._there = there

    async def wait_dead(self) -> None:
        await self._there(self._server.wait_dead())

    async def restart(self) -> None:
        await self._there(self._server.restart())

    async def kill(self) -> None:
        await self._there(self._server.kill())


class SharedServers:
    """`with SharedServers(log) as serve: evaluate(config, serve=serve)`, as often as wanted.

    Every evaluation has an event loop of its own, so the servers live on another, in a thread. A server that has
    died is started anew for the next run. Nothing is started for a run that has nothing left to play.
    """

    def __init__(self, log_path: Path) -> None:
        self.log_path = log_path
        self.started = 0
        """Servers started so far."""
        self._running: dict[str, ManagedServer] = {}
        self._starting: set[asyncio.Task[Any]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="model servers", daemon=True)

    def __enter__(self) -> SharedServers:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            asyncio.run_coroutine_threadsafe(self._stop_all(), self._loop).result()
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def __call__(
        self, *, log_path: Path, on_status: Callable[[str], None], **what: Any
    ) -> AbstractAsyncContextManager[ManagedServer]:
        """The running server for these arguments, started if there is none. `log_path` gives way to ours."""

        @asynccontextmanager
        async def lent() -> AsyncIterator[ManagedServer]:
            key = repr(sorted(what.items()))
            server = self._running.get(key)
            if server is None or not server.alive():
                server = ManagedServer(log_path=self.log_path, on_status=on_status, **what)
                await self._there(server.start())
                self._running[key] = server
                self.started += 1
            yield LentServer(server, self._there)

        return lent()

    async def _there(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        """Carried out in the servers' thread; being cancelled here cancels it there."""
        future = asyncio.run_coroutine_threadsafe(self._tracked(coroutine), self._loop)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            future.cancel()
            raise

    async def _tracked(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        task = asyncio.current_task()
        assert task is not None
        self._starting.add(task)
        try:
            return await coroutine
        finally:
            self._starting.discard(task)

    async def _stop_all(self) -> None:
        # A start that was cancelled still has its processes to end.
        await asyncio.gather(*self._starting, return_exceptions=True)
        await asyncio.gather(*(server.stop() for server in self._running.values()))
