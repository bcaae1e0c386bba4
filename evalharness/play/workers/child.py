"""A worker process: environments on one side, JSON lines on standard input and output on the other.

Run as `python -P -m evalharness.play.workers.child FAMILY DATA`. `{"ready": true}` once it has started; then one
request a line, `{"id": 7, "slot": 0, "op": "step", ...}`, and one answer a line, `{"id": 7, "result": ..., "took":
seconds}` or `{"id": 7, "error": ..., "kind": ..., "where": ...}`.
JSON, because no pickle is ever loaded. A worker ends when its standard input does, so it never outlives its parent.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from evalharness.base.errors import EvalharnessError, InfrastructureError
from evalharness.envs import specs
from evalharness.envs.base import Task, TextEnv

_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Ask the kernel for SIGKILL when the parent goes, even while a simulator is stuck in native code (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def private_stdout() -> IO[str]:
    """Keep the protocol's stream to ourselves: simulators that print to standard output go to standard error."""
    protocol = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)
    return protocol


class NotMadeError(Exception):
    """The simulator's own libraries or programs do not start on this machine."""


class _Slots:
    """The environments of this process, made when first used and reused from episode to episode."""

    def __init__(self, family: str, data: Path | None, engine: str) -> None:
        spec = specs()[family]
        self.spec = spec.on_stock_engine() if engine == "stock" else spec
        self.data = data
        self.environments: dict[int, TextEnv] = {}

    def call(self, slot: int, op: str, request: dict[str, Any]) -> Any:
        if slot not in self.environments:
            self.environments[slot] = self._make()
        environment = self.environments[slot]
        match op:
            case "reset":
                observation, info = environment.reset(options={"task": Task.from_json(request["task"])})
                return [environment.goal, observation, info]
            case "step":
                observation, _, terminated, _, info = environment.step(request["action"])
                return [observation, terminated, info]
            case "valid_actions" | "warm" | "oracle" | "reference_plans":
                return getattr(environment, op)()
            case _:
                raise ValueError(f"unknown op {op!r}")

    def _make(self) -> TextEnv:
        try:
            return self.spec.make(self.data)
        except EvalharnessError:
            raise
        except Exception as error:
            traceback.print_exc()
            raise NotMadeError(f"{type(error).__name__}: {error}") from error

    def close(self) -> None:
        for environment in self.environments.values():
            environment.close()


def carry_out(call: Callable[[int, str, dict[str, Any]], Any], request: dict[str, Any]) -> dict[str, Any]:
    """The answer to one request: the result and the seconds it took, or the error.

    `for_user`: it is no failure of the simulator's, but something that a person can fix, and no other try would help.
    `not_made`: there is no environment that could have failed.
    """
    began = time.perf_counter()
    try:
        result = call(request["slot"], request["op"], request)
    except Exception as error:
        return {
            "id": request["id"],
            "error": str(error) or type(error).__name__,
            "kind": type(error).__name__,
            "not_made": isinstance(error, NotMadeError),
            "for_user": isinstance(error, EvalharnessError) and not isinstance(error, InfrastructureError),
            "where": traceback.format_exc(limit=-6),
        }
    return {"id": request["id"], "result": result, "took": time.perf_counter() - began}


def main() -> int:
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the parent, which ends us in its own order
    protocol = private_stdout()
    family, data, engine = sys.argv[1:4]
    slots = _Slots(family, Path(data) if data else None, engine)
    protocol.write('{"ready": true}\n')
    protocol.flush()
    for line in sys.stdin:
        request = json.loads(line)
        answer = carry_out(slots.call, request)
        protocol.write(json.dumps(answer) + "\n")
        protocol.flush()
    slots.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
