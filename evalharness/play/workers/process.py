"""Start worker processes, and call the environments in them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, TypeVar

from evalharness.base.errors import InfrastructureError, UserError
from evalharness.base.timing import CallTimes, FamilyTimes
from evalharness.envs.base import EnvSpec, Task
from evalharness.play.workers.pipeline import Pipeline, PipelineBrokenError, PipelineGoneError

T = TypeVar("T")
_LOG = logging.getLogger("evalharness")
_LINE_LIMIT = 64 * 1024 * 1024
"""Maximum bytes of one answer. The longest measured one is a list of valid actions, below 1 MB."""
_START_TIMEOUT = 120.0
"""Seconds for a process to import its simulator on a busy machine."""
_LAST_BYTES, _LAST_LINES = 4096, 3
"""An error message about a process that did not start quotes at most so many bytes and lines of its standard error."""
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}
"""No simulator multiplies large matrices, but numpy starts a thread for every core, and each first waits in a busy
loop: half of a worker's start time on two cores, and more on more cores."""


class WorkerError(InfrastructureError):
    """The worker process of an environment died, hung or raised an error."""


class WorkerGoneError(WorkerError):
    """Another episode's call ended the worker that this episode used."""


class WorkerStartError(WorkerError):
    """The worker ended before it was ready, because something on this machine is missing or broken. The message quotes
    the end of the worker's standard error."""


_STARTS = 16
"""Maximum number of starts in one try of an episode. Another start follows if another episode ends the worker."""


async def despite_others(once: Callable[[], Awaitable[T]]) -> T:
    """Return the result of `once`. If another episode ends the worker, call `once` again: its try has not failed."""
    for _ in range(_STARTS):
        with contextlib.suppress(WorkerGoneError):
            return await once()
    raise WorkerError(f"other episodes ended its workers {_STARTS} times")


@dataclass(frozen=True)
class Usage:
    """CPU time and memory of a worker and all its children; None if not known."""

    cpu_s: float | None = None
    rss_bytes: int | None = None


class WorkerProcess:
    """One process with up to `spec.worker.envs_per_worker` environments; it executes one call at a time."""

    def __init__(self, spec: EnvSpec, data: Path | None, log: Path | None) -> None:
        self.spec = spec
        self.data = data
        self.log = log
        self.broken = False
        """Whether the process has died or was killed; it will never answer again."""
        self.lost: str | None = None
        """Why the process failed after its start. None if it did not fail, or if a cancelled call killed it."""
        self.answered = False
        """Whether the process has answered a call."""
        self.last_call = CallTimes()
        """Times of the last call."""
        self._errors: IO[bytes] | None = None
        """The file of the process's standard error: the log, or a temporary file if there is no log."""
        self._errors_from = 0
        self._process: asyncio.subprocess.Process | None = None
        self._pipeline: Pipeline | None = None
        self._starting = asyncio.Lock()
        self._took_s = 0.0
        """Seconds that the simulator needed, summed over all calls."""

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    async def _start(self) -> asyncio.subprocess.Process:
        # `_start_error` reads this file, and `close` closes it.
        self._errors = (
            tempfile.TemporaryFile()  # noqa: SIM115
            if self.log is None
            else self.log.open("a+b", buffering=0)
        )
        self._errors_from = os.fstat(self._errors.fileno()).st_size
        return await asyncio.create_subprocess_exec(
            # -P: import nothing from the current folder, which may contain `envs/` or `random.py`.
            *(sys.executable, "-P", "-m", "evalharness.play.workers.child"),
            *(self.spec.family, str(self.data or ""), self.spec.engine),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=self._errors,
            env=_ONE_THREAD | os.environ,
            limit=_LINE_LIMIT,
            start_new_session=True,  # so that the whole group (such as a JVM) can be killed together
        )

    def _start_error(self, status: int) -> WorkerStartError:
        """Return an error with the end of the process's standard error."""
        lines = [f"the {self.spec.title} worker does not start (exit status {status})"]
        if self._errors is not None and not self._errors.closed and self._errors.seekable():
            file = self._errors.fileno()
            begin = max(self._errors_from, os.fstat(file).st_size - _LAST_BYTES)
            text = os.pread(file, _LAST_BYTES, begin).decode(errors="replace")
            lines += [line.rstrip() for line in text.splitlines() if line.strip()][-_LAST_LINES:]
        return WorkerStartError("\n  ".join(lines))

    async def _connect(self) -> Pipeline:
        if self._pipeline is not None:
            return self._pipeline
        async with self._starting:
            if self._pipeline is None:
                self._process = await self._start()
                self._pipeline = Pipeline(self._process, self._lose)
            return self._pipeline

    async def call(self, slot: int, op: str, timeout: float, **arguments: Any) -> Any:
        """Send a call to the environment `slot` and return its result. Raises WorkerStartError if the process does not
        start, and WorkerError if it dies, raises an error or does not answer in `timeout` seconds.

        After an error the process group is dead and the worker cannot be used again. Calls may overlap; the process
        executes them one after the other, and each timeout counts from the answer to the previous call.
        """
        if self.broken:
            if self._pipeline is not None and (reason := self._pipeline.take_death_reason()) is not None:
                raise WorkerError(f"the {self.spec.title} worker {reason}")
            raise WorkerGoneError(f"the {self.spec.title} worker that held this episode is gone")
        sent_at, started, before = time.perf_counter(), self.answered, self._took_s
        try:
            pipeline = await self._connect()
            limit = timeout if started else timeout + _START_TIMEOUT
            answer = await pipeline.ask(op, limit, {"slot": slot, **arguments})
        except PipelineBrokenError as error:
            assert self._process is not None
            if not pipeline.ready and (status := self._process.returncode or 0) > 0:
                raise self._start_error(status) from None
            kind = WorkerGoneError if isinstance(error, PipelineGoneError) else WorkerError
            raise kind(f"the {self.spec.title} worker {error}") from None
        except OSError as error:
            self.kill()
            raise WorkerStartError(f"the {self.spec.title} worker cannot be started: {error}") from error
        except asyncio.CancelledError:
            self.kill()  # kill a simulator that may hang, so that a cancelled run ends at once
            raise
        self.answered = self.answered or not answer.get("not_made")
        if "error" in answer:
            if answer["for_user"]:
                raise UserError(answer["error"])
            pipeline.abandon()  # other episodes start again (`despite_others`)
            if answer["not_made"]:
                self.kill()
                raise WorkerStartError(f"the {self.spec.title} worker does not start: {answer['error']}")
            self._lose(f"raised {answer['kind']} in {op!r}: {answer['error']}".splitlines()[0])
            raise WorkerError(
                f"{self.spec.title} raised {answer['kind']} in {op!r}: {answer['error']}\n{answer['where']}"
            )
        took = answer["took"]
        self._took_s += took
        if started:
            # The process also executed other episodes' calls since this call was sent. The first may have begun even
            # earlier, so the wall time limits the waiting time.
            waited = min(self._took_s - before - took, time.perf_counter() - sent_at - took)
            self.last_call = CallTimes(waited_s=max(0.0, waited), took_s=took)
        else:
            self.last_call = CallTimes(start_s=time.perf_counter() - sent_at - took, took_s=took)
        return answer["result"]

    def usage(self) -> Usage:
        """Measure the process and its children, such as a Java simulator."""
        import psutil

        if self._process is None or self._process.returncode is not None:
            return Usage()
        try:
            leader = psutil.Process(self._process.pid)
            processes = [leader, *leader.children(recursive=True)]
        except psutil.Error:
            return Usage()
        cpu, size = 0.0, 0
        for process in processes:
            with contextlib.suppress(psutil.Error):
                times = process.cpu_times()
                cpu += times.user + times.system
                size += process.memory_info().rss
        return Usage(cpu, size)

    def _lose(self, reason: str) -> None:
        if self._pipeline is not None and self._pipeline.ready and not self.broken:
            if self.lost is None:
                self.lost = reason
                _LOG.warning("the %s worker %s; a new worker replaces it", self.spec.title, reason)
            if self._errors is not None and not self._errors.closed:
                self._errors.write(f"the {self.spec.title} worker {reason}\n".encode(errors="replace"))
        self.kill()

    def kill(self) -> None:
        self.broken = True
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        if self._pipeline is not None:
            self._pipeline.fail("is gone")

    async def close(self) -> None:
        """Let the environments close themselves; kill the process if it does not end within five seconds."""
        if self._errors is not None:
            self._errors.close()
        if self._process is None:
            return
        self.broken = True
        if self._pipeline is not None:
            self._pipeline.abandon()
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), 5)
        except TimeoutError:
            self.kill()
            await self._process.wait()
        finally:
            # Kill the process group: child processes of a simulator can outlive the worker.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            if self._pipeline is not None:
                await self._pipeline.close()


@dataclass
class RemoteEnvironment:
    """One environment in a worker, for the episode loop."""

    worker: WorkerProcess
    slot: int
    times: FamilyTimes = field(default_factory=FamilyTimes)
    last_call: CallTimes = field(default_factory=CallTimes)
    """Times of this environment's last call. `worker.last_call` can belong to another environment of the worker."""
    make_worker: Callable[[], WorkerProcess] | None = None
    """Make another worker, in which an action that ended the pool's worker is repeated."""
    _task: Task | None = None
    _actions: list[str] = field(default_factory=list)
    """Actions executed since the last reset."""
    _info: dict[str, Any] = field(default_factory=dict)
    """The `info` of the environment's last answer."""
    _own: WorkerProcess | None = None
    """A worker for only this environment, after an action has ended the pool's worker."""

    async def _call(self, op: str, timeout: float, **arguments: Any) -> Any:
        result = await self.worker.call(self.slot, op, timeout, **arguments)
        self.last_call = self.worker.last_call
        self.times.environment_s += self.last_call.took_s
        self.times.start_s += self.last_call.start_s
        self.times.worker_s += self.last_call.waited_s
        return result

    async def reset(self, task: Task) -> tuple[str, str, dict[str, Any]]:
        timeout = self.worker.spec.worker.reset_timeout
        goal, observation, self._info = await self._call("reset", timeout, task=task.to_json())
        self._task, self._actions = task, []
        return goal, observation, self._info

    async def step(self, action: str) -> tuple[str, bool, dict[str, Any]]:
        """Execute an action. If the worker dies, repeat the episode's actions in a new worker. If the new worker dies
        at the same action, the action is the cause, and the episode is over (`halted`). Otherwise raise the error."""
        try:
            observation, terminated, self._info = await self._step(action)
        except (WorkerGoneError, WorkerStartError):
            raise
        except WorkerError as error:
            if not await self._ends_another(action):
                raise
            note = f"(The simulator halted: {str(error).splitlines()[0]})"
            self._info = {**self._info, "valid": False, "subgoals_completed": [], "halted": True}
            return note, True, self._info
        self._actions.append(action)
        return observation, terminated, self._info

    async def _step(self, action: str) -> Any:
        return await self._call("step", self.worker.spec.worker.step_timeout, action=action)

    async def _ends_another(self, action: str) -> bool:
        if self.make_worker is None or self._task is None:
            return False
        twin = RemoteEnvironment(self.make_worker(), 0)
        try:
            await twin.reset(self._task)
            for earlier in self._actions:
                await twin.step(earlier)
        except WorkerError:
            await twin.worker.close()
            return False
        try:
            await twin._step(action)
        except WorkerError:
            self._own = self.worker = self.make_worker()
            self.slot = 0
            return True
        finally:
            await twin.worker.close()
        return False

    async def close(self) -> None:
        """Close the environment's own worker, if it has one."""
        if self._own is not None:
            await self._own.close()

    async def valid_actions(self) -> list[str]:
        return list(await self._call("valid_actions", self.worker.spec.worker.reset_timeout))

    async def oracle(self) -> list[str]:
        return list(await self._call("oracle", 5 * self.worker.spec.worker.reset_timeout))

    async def reference_plans(self) -> dict[str, list[str]]:
        return dict(await self._call("reference_plans", 5 * self.worker.spec.worker.reset_timeout))
