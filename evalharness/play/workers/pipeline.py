"""Send many requests to one process over its standard streams; the process answers them one after the other.
A process executes one request at a time. If the next request were sent only after the previous answer, the process
would be idle for a round trip through two pipes and a busy event loop. With hundreds of episodes in flight, this idle
time was 200 times the time of the simulators (measured on a loaded machine).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


class PipelineBrokenError(Exception):
    """The process died, sent an invalid answer, or did not answer in time."""


class PipelineGoneError(PipelineBrokenError):
    """Another request than this one broke the pipeline."""


@dataclass
class _PendingRequest:
    identity: int
    op: str
    timeout: float
    answer: asyncio.Future[dict[str, Any]]


class Pipeline:
    """Sends requests to one process and reads its answers. If the process fails, `on_break` is called once with the
    reason, before the pending requests fail. `on_break` must end the process."""

    def __init__(self, process: asyncio.subprocess.Process, on_break: Callable[[str], None]) -> None:
        self._process = process
        self._on_break = on_break
        self._pending: deque[_PendingRequest] = deque()
        self._count = 0
        self._timer: asyncio.TimerHandle | None = None
        self._broken = False
        self._death_reason: str | None = None
        self.ready = False
        """Whether the process has started and imported its modules."""
        self._writing = asyncio.Lock()
        self._reader = asyncio.create_task(self._read())

    async def ask(self, op: str, timeout: float, request: dict[str, Any]) -> dict[str, Any]:
        """Send a request and return its answer. `timeout` counts the seconds after the answer to the previous request.

        Raises PipelineBrokenError.
        """
        if self._broken:
            raise PipelineGoneError("is gone")
        assert self._process.stdin is not None
        self._count += 1
        pending = _PendingRequest(self._count, op, timeout, asyncio.get_running_loop().create_future())
        self._pending.append(pending)
        if len(self._pending) == 1:
            self._arm()
        line = json.dumps({"id": pending.identity, "op": op, **request}).encode() + b"\n"
        try:
            self._process.stdin.write(line)
            if self._process.stdin.transport.get_write_buffer_size():  # the process reads too slowly
                async with self._writing:
                    await self._process.stdin.drain()
        except (OSError, RuntimeError):
            pass  # `_read` also notices the end of the process, and reports the reason
        return await pending.answer

    def take_death_reason(self) -> str | None:
        """Return why the process ended, if no request was pending then; return it only once."""
        reason, self._death_reason = self._death_reason, None
        return reason

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._pending:
            first = self._pending[0]
            self._timer = asyncio.get_running_loop().call_later(
                first.timeout, self.fail, f"did not answer {first.op!r} within {first.timeout:.0f} s"
            )

    async def _read(self) -> None:
        assert self._process.stdout is not None
        try:
            while line := await self._process.stdout.readline():
                answer: dict[str, Any] = json.loads(line)
                if not self.ready:
                    self.ready = answer["ready"]
                    continue
                pending = self._pending.popleft()
                if answer["id"] != pending.identity:
                    raise ValueError("answer to another request")
                self._arm()
                if not pending.answer.done():
                    pending.answer.set_result(answer)
            reason = f"exit status {await self._process.wait()}"
        except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
            reason = str(error) or type(error).__name__
        if self._pending:
            self.fail(f"died during {self._pending[0].op!r}: {reason}")
        elif not self._broken:
            self._death_reason = f"died between two calls: {reason}"
            self.fail(self._death_reason)

    def fail(self, reason: str) -> None:
        """Break the pipeline: the first pending request fails with the reason, the others with PipelineGoneError."""
        if self._broken:
            return
        self._broken = True
        self._on_break(reason)
        if self._pending and not (first := self._pending.popleft().answer).done():
            first.set_exception(PipelineBrokenError(reason))
            first.exception()  # otherwise asyncio warns if the waiting task was cancelled
        self._fail_pending()

    def abandon(self) -> None:
        """Let the pending requests fail. After this call the end of the process is not an error."""
        self._broken = True
        self._fail_pending()

    def _fail_pending(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for pending in self._pending:
            if not pending.answer.done():
                pending.answer.set_exception(PipelineGoneError("is gone"))
                pending.answer.exception()
        self._pending.clear()

    async def close(self) -> None:
        self._reader.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._reader
