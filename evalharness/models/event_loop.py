"""Run a coroutine from an ordinary function, with uvloop if it is installed; also inside a notebook."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


def run_to_end(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Run `coroutine` and return its result. Ctrl-C and SIGTERM cancel it and wait for its cleanup."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        if threading.current_thread() is threading.main_thread():
            return _run_here(coroutine)
    return _run_beside(coroutine)


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:  # uvloop does not exist for Windows
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def _run_here(coroutine: Coroutine[Any, Any, Result]) -> Result:
    with asyncio.Runner(loop_factory=_new_loop) as runner:
        loop = runner.get_loop()
        task = loop.create_task(coroutine)
        terminated = False

        def terminate() -> None:
            nonlocal terminated
            terminated = True
            task.cancel()

        loop.add_signal_handler(signal.SIGTERM, terminate)

        async def wait() -> Result:
            return await task

        try:
            return runner.run(wait())
        except asyncio.CancelledError:
            if terminated:
                raise SystemExit(128 + signal.SIGTERM) from None
            raise KeyboardInterrupt from None


def _run_beside(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Run the coroutine in another thread: a notebook already runs an event loop in its own thread."""
    loop = _new_loop()
    thread = threading.Thread(target=loop.run_forever, name="evalharness", daemon=True)
    thread.start()
    future = asyncio.run_coroutine_threadsafe(coroutine, loop)
    try:
        return future.result()
    finally:
        future.cancel()  # for Ctrl-C during the wait; without effect if the coroutine has ended
        asyncio.run_coroutine_threadsafe(_settle(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _settle() -> None:
    """Wait for every other task of this loop."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    await asyncio.gather(*others, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()
