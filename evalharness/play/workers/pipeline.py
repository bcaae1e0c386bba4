"""Requests to one process over its standard streams: many under way at once, answered in order.

A process carries out one request at a time. Were the next one only sent when the answer to the last one has been
read, the process would idle for a round trip through two pipes and a busy event loop each time: with some hundred
episodes in flight that was 200 times what the simulators themselves took (measured on a loaded machine).
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
    """The pipeline broke during another request."""


@dataclass
class _Asked:
    identity: int
    op: str
    timeout: float
    answer: asyncio.Future[dict[str, Any]]


class Pipeline:
    """The streams of one process. `on_break` is called once, before any request fails: it gets the reason and ends the
    process."""

    def __init__(self, process: asyncio.subprocess.Process, on_break: Callable[[str], None]) -> None:
        self._process = process
        self._on_break = on_break
        self._asked: deque[_Asked] = deque()
        self._count = 0
        self._timer: asyncio.TimerHandle | None = None
        self._broken = False
        self._untold: str | None = None
        self.ready = False
        """The process has started: its imports went well."""
        self._writing = asyncio.Lock()
        self._reader = asyncio.create_task(self._read())

    async def ask(self, op: str, timeout: float, request: dict[str, Any]) -> dict[str, Any]:
        """`timeout` in seconds counts from when the process could begin with it: after the answers before it.

        Raises PipelineBrokenError.
        """
        if self._broken:
            raise PipelineGoneError("is gone")
        assert self._process.stdin is not None
        self._count += 1
        asked = _Asked(self._count, op, timeout, asyncio.get_running_loop().create_future())
        self._asked.append(asked)
        if len(self._asked) == 1:
            self._arm()
        line = json.dumps({"id": asked.identity, "op": op, **request}).encode() + b"\n"
        try:
            self._process.stdin.write(line)
            if self._process.stdin.transport.get_write_buffer_size():  # the process is behind
                async with self._writing:
                    await self._process.stdin.drain()
        except (OSError, RuntimeError):
            pass  # the reader sees the end of the process, too, and says how it ended
        return await asked.answer

    def untold(self) -> str | None:
        """How the process ended, once, where nothing was asked of it then: somebody has to hear of it."""
        reason, self._untold = self._untold, None
        return reason

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._asked:
            first = self._asked[0]
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
                asked = self._asked.popleft()
                if answer["id"] != asked.identity:
                    raise ValueError("answer to another request")
                self._arm()
                if not asked.answer.done():
                    asked.answer.set_result(answer)
            reason = f"exit status {await self._process.wait()}"
        except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
            reason = str(error) or type(error).__name__
        if self._asked:
            self.fail(f"died during {self._asked[0].op!r}: {reason}")
        elif not self._broken:
            self._untold = f"died between two calls: {reason}"
            self.fail(self._untold)

    def fail(self, reason: str) -> None:
        """Break the pipeline: the first request fails with the reason, the others because the process is gone."""
        if self._broken:
            return
        self._broken = True
        self._on_break(reason)
        if self._asked and not (first := self._asked.popleft().answer).done():
            first.set_exception(PipelineBrokenError(reason))
            first.exception()  # seen, should nobody wait for it any more
        self._tell_gone()

    def abandon(self) -> None:
        """Fail pending requests; the end of the process is then no error."""
        self._broken = True
        self._tell_gone()

    def _tell_gone(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for asked in self._asked:
            if not asked.answer.done():
                asked.answer.set_exception(PipelineGoneError("is gone"))
                asked.answer.exception()
        self._asked.clear()

    async def close(self) -> None:
        self._reader.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._reader
