"""A worker on some node of a Ray cluster, behind the same interface as a worker process of this machine.

A Ray actor holds the very worker process that a local run would have (`evalharness.play.workers.process`), so that a
call, its time limit and the killing of what hangs are the same code, next to the simulator. What is said between
here and there is JSON data in both directions, as on the pipe.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayError, RuntimeEnvSetupError

from evalharness.base.errors import InfrastructureError, UserError
from evalharness.base.timing import CallTimes
from evalharness.envs.base import EnvSpec
from evalharness.play.workers.process import (
    Usage,
    WorkerError,
    WorkerGoneError,
    WorkerProcess,
    WorkerStartError,
    note_lost,
)

_KINDS = {kind.__name__: kind for kind in (WorkerError, WorkerGoneError, WorkerStartError)}
_START_TIMEOUT = 600.0
"""Seconds until an actor runs: a node may be started by an autoscaler, and install packages."""
_NETWORK_TIMEOUT = 30.0
"""Seconds for a call's way there and back, on top of what it may take there."""
_USAGE_EVERY = 5.0
"""Seconds between looks at a worker's memory: a look at a process tree costs milliseconds."""
_CORES = 0.1
"""Of a node, reserved for one worker. Less than a worker uses while it steps, because most wait for the model; and
when a node dies the others must have room for what was there."""


async def result(remote: Any) -> dict[str, Any]:
    """Return what a call returned. A future of the standard library works on uvloop and for `ray://` too."""
    answer: dict[str, Any] = await asyncio.wrap_future(remote.future())
    return answer


class Host:
    """The actor: on a node, one worker process."""

    def __init__(self, family: str, data: str | None) -> None:
        from evalharness.envs import specs

        # Standard error of an actor is a file of the node, which `ray logs` shows.
        self._worker = WorkerProcess(specs()[family], Path(data) if data else None, Path("/dev/stderr"))
        self._looked = time.monotonic()

    async def call(self, slot: int, op: str, timeout: float, arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            result = await self._worker.call(slot, op, timeout, **arguments)
        except UserError as error:
            return {"refused": str(error)}
        except InfrastructureError as error:
            return {"error": str(error), "kind": type(error).__name__}
        times = self._worker.last_call
        answer = {"result": result, "took": times.took_s, "start": times.start_s}
        if time.monotonic() - self._looked >= _USAGE_EVERY:
            self._looked = time.monotonic()
            answer["usage"] = asdict(self._worker.usage())
        return answer

    async def close(self) -> None:
        await self._worker.close()


class RayWorker:
    """One actor with up to `spec.worker.envs_per_worker` environments.

    Calls may be made while others are under way, as with a process of this machine. Sent one at a time, they cost a
    way to the node and back each: 64 episodes in two workers took 2.7 times as long.
    """

    def __init__(self, spec: EnvSpec, data: Path | None, log: Path | None) -> None:
        self.spec = spec
        self.data = data.absolute() if data else None
        self.broken = False
        self.lost: str | None = None
        self.answered = False
        self.last_call = CallTimes()
        self._usage = Usage()
        self._actor: Any = None
        self._asked_s = 0.0
        """Seconds that all pending calls together may take: the process runs them one after the other."""

    def _start(self) -> Any:
        host = ray.remote(Host).options(num_cpus=_CORES, scheduling_strategy="SPREAD", max_restarts=0)
        return host.remote(self.spec.family, str(self.data) if self.data else None)

    async def call(self, slot: int, op: str, timeout: float, **arguments: Any) -> Any:
        """Raises WorkerError when the actor, its process or its node dies or hangs, or the environment raises.

        After that the worker is broken for good.
        """
        if self.broken:
            raise WorkerGoneError(f"the {self.spec.title} worker that held this episode is gone")
        asked, may_take = time.perf_counter(), timeout
        if self._actor is None:
            self._actor = self._start()
            may_take += _START_TIMEOUT
        self._asked_s += may_take
        try:
            answer = await self._answer(slot, op, timeout, arguments)
        finally:
            self._asked_s -= may_take
        if "refused" in answer:
            raise UserError(answer["refused"])
        if "error" in answer:
            note_lost(self, answer["error"].splitlines()[0])
            self.kill()
            raise _KINDS.get(answer["kind"], WorkerError)(answer["error"])
        self.answered = True
        took, start = answer["took"], answer["start"]
        if start:  # of the process; of the actor, too
            start = time.perf_counter() - asked - took
        self.last_call = CallTimes(time.perf_counter() - asked - took - start, took, start)
        self._usage = Usage(**answer.get("usage", asdict(self._usage)))
        return answer["result"]

    async def _answer(self, slot: int, op: str, timeout: float, arguments: dict[str, Any]) -> dict[str, Any]:
        limit = self._asked_s + _NETWORK_TIMEOUT
        try:
            return await asyncio.wait_for(
                result(self._actor.call.remote(slot, op, timeout, arguments)), limit
            )
        except TimeoutError:
            note_lost(self, f"did not answer {op!r} within {limit:.0f} s, nor did its node")
            self.kill()
            raise WorkerError(
                f"the node of a {self.spec.title} worker did not answer {op!r} within {limit:.0f} s"
            ) from None
        except RuntimeEnvSetupError as error:
            self.kill()
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            raise UserError(
                "Ray could not prepare a node for the workers: "
                + " ... ".join([*lines[:1], *lines[-2:]])[:1000]
            ) from None
        except (RayError, OSError) as error:
            lines = str(error).strip().splitlines()
            reason = f"or its node died during {op!r}: {lines[0] if lines else type(error).__name__}"
            note_lost(self, reason)
            self.kill()
            raise WorkerError(f"the {self.spec.title} worker {reason}") from None
        except asyncio.CancelledError:
            self.kill()
            raise

    def usage(self) -> Usage:
        """Return the last usage that the node reported, some seconds old."""
        return self._usage

    def kill(self) -> None:
        """Kill the actor. The kernel then ends the worker process, as arranged at its start."""
        self.broken = True
        if self._actor is not None:
            with contextlib.suppress(RayError):
                ray.kill(self._actor)

    async def close(self) -> None:
        """Let the environments close themselves; kill what does not end within ten seconds."""
        if self._actor is None or self.broken:
            return
        with contextlib.suppress(RayError, TimeoutError):
            await asyncio.wait_for(result(self._actor.close.remote()), 10)
        self.kill()
