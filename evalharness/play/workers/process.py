"""Environments in their own processes, seen from the harness."""

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
"""Most bytes of one answer. The longest seen is a list of valid actions, below 1 MB."""
_START_TIMEOUT = 120.0
"""Seconds for a process to import its simulator on a busy machine."""
_LAST_BYTES, _LAST_LINES = 4096, 3
"""Most bytes read and lines shown of the standard error of a process that did not start."""
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}
"""No simulator multiplies large matrices, but numpy starts a thread for every core, and each waits busily at first:
half of what the start of a worker costs on two cores, and more on more."""


class WorkerError(InfrastructureError):
    """An environment's process died, hung, or raised."""


class WorkerGoneError(WorkerError):
    """Another episode's call ended the process that held this one."""


class WorkerStartError(WorkerError):
    """It ended before it was ready, by itself: something is missing or broken here. The message has its last words."""


_STARTS = 16
"""Of an episode whose worker others end, in one try."""


async def despite_others(once: Callable[[], Awaitable[T]]) -> T:
    """What `once` gives, begun again where other episodes end its worker: that is no failure of its own."""
    for _ in range(_STARTS):
        with contextlib.suppress(WorkerGoneError):
            return await once()
    raise WorkerError(f"other episodes ended its workers {_STARTS} times")


@dataclass(frozen=True)
class Usage:
    """What a worker and all its children use; None where that cannot be seen."""

    cpu_s: float | None = None
    rss_bytes: int | None = None


class WorkerProcess:
    """One process that holds up to `spec.worker.envs_per_worker` environments; carries out one call at a time."""

    def __init__(self, spec: EnvSpec, data: Path | None, log: Path | None) -> None:
        self.spec = spec
        self.data = data
        self.log = log
        self.broken = False
        """Whether the process has died or was killed; it will never answer again."""
        self.lost: str | None = None
        """How the process died, hung or raised; None if it did not, or nobody waited for it any more."""
        self.answered = False
        """Whether the process has started."""
        self.last_call = CallTimes()
        """Times of the call that returned last."""
        self._errors: IO[bytes] | None = None
        """What its process writes to standard error: the log, or a temporary file where there is none."""
        self._errors_from = 0
        self._process: asyncio.subprocess.Process | None = None
        self._pipeline: Pipeline | None = None
        self._starting = asyncio.Lock()
        self._took_s = 0.0
        """Seconds in the simulator, summed over all calls."""

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    async def _start(self) -> asyncio.subprocess.Process:
        # Read again where the process does not start; closed with the worker.
        self._errors = (
            tempfile.TemporaryFile()  # noqa: SIM115
            if self.log is None
            else self.log.open("a+b", buffering=0)
        )
        self._errors_from = os.fstat(self._errors.fileno()).st_size
        return await asyncio.create_subprocess_exec(
            # -P: nothing of the current folder is imported, where `envs/` or `random.py` may lie.
            *(sys.executable, "-P", "-m", "evalharness.play.workers.child"),
            *(self.spec.family, str(self.data or ""), self.spec.engine),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=self._errors,
            env=_ONE_THREAD | os.environ,
            limit=_LINE_LIMIT,
            start_new_session=True,  # so that the whole group (a JVM, say) can be killed together
        )

    def _not_started(self, status: int) -> WorkerStartError:
        """With the end of what the process wrote to standard error."""
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
        """Raises WorkerError when the process dies, does not answer in `timeout` seconds, or raises; WorkerStartError
        when it does not even start.

        After that the worker is broken for good: its process group is dead. Calls may be made while others are under
        way; the process carries them out one after the other, and the timeout counts from each one's turn.
        """
        if self.broken:
            if self._pipeline is not None and (reason := self._pipeline.untold()) is not None:
                raise WorkerError(f"the {self.spec.title} worker {reason}")
            raise WorkerGoneError(f"the {self.spec.title} worker that held this episode is gone")
        asked, started, before = time.perf_counter(), self.answered, self._took_s
        try:
            pipeline = await self._connect()
            limit = timeout if started else timeout + _START_TIMEOUT
            answer = await pipeline.ask(op, limit, {"slot": slot, **arguments})
        except PipelineBrokenError as error:
            assert self._process is not None
            if not pipeline.ready and (status := self._process.returncode or 0) > 0:
                raise self._not_started(status) from None
            kind = WorkerGoneError if isinstance(error, PipelineGoneError) else WorkerError
            raise kind(f"the {self.spec.title} worker {error}") from None
        except OSError as error:
            self.kill()
            raise WorkerStartError(f"the {self.spec.title} worker cannot be started: {error}") from error
        except asyncio.CancelledError:
            self.kill()  # nobody waits for the run any more: a simulator that hangs must not hold it up
            raise
        self.answered = self.answered or not answer.get("not_made")
        if "error" in answer:
            if answer["for_user"]:
                raise UserError(answer["error"])
            pipeline.abandon()  # the others' calls did not end it
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
            # What the process did since this call was made, the call itself excepted, was other episodes' work; the
            # first of it may have begun before.
            waited = min(self._took_s - before - took, time.perf_counter() - asked - took)
            self.last_call = CallTimes(waited_s=max(0.0, waited), took_s=took)
        else:
            self.last_call = CallTimes(start_s=time.perf_counter() - asked - took, took_s=took)
        return answer["result"]

    def usage(self) -> Usage:
        """Of the process and its children: a Java simulator is one."""
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
                _LOG.warning("the %s worker %s; another one takes its place", self.spec.title, reason)
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
        """Let the environments close themselves; kill what does not end within five seconds."""
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
            # The group may outlive its leader: a simulator's own child processes.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            if self._pipeline is not None:
                await self._pipeline.close()


@dataclass
class RemoteEnvironment:
    """One environment in a worker: what the episode loop talks to."""

    worker: WorkerProcess
    slot: int
    times: FamilyTimes = field(default_factory=FamilyTimes)
    last_call: CallTimes = field(default_factory=CallTimes)
    """Of this environment's own calls; the worker's is of whichever episode was answered last."""
    make_worker: Callable[[], WorkerProcess] | None = None
    """To find out whether an action ends every worker."""
    _task: Task | None = None
    _actions: list[str] = field(default_factory=list)
    """Carried out since the reset."""
    _info: dict[str, Any] = field(default_factory=dict)
    """What the last answer said."""
    _own: WorkerProcess | None = None
    """Made after an action had ended the pool's worker; for another trial at the task."""

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
        """An action that ends its worker is tried once more, in a new worker after the same actions. If it ends that
        one, too, it is the action that did it: the episode is over, `halted`. Else the error is raised."""
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
        """Return its own worker, if it has one."""
        if self._own is not None:
            await self._own.close()

    async def valid_actions(self) -> list[str]:
        return list(await self._call("valid_actions", self.worker.spec.worker.reset_timeout))

    async def oracle(self) -> list[str]:
        return list(await self._call("oracle", 5 * self.worker.spec.worker.reset_timeout))

    async def reference_plans(self) -> dict[str, list[str]]:
        return dict(await self._call("reference_plans", 5 * self.worker.spec.worker.reset_timeout))
