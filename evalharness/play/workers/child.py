"""Run environments in a worker process that reads and writes JSON lines on standard input and output.

Run as `python -P -m evalharness.play.workers.child FAMILY DATA`. The worker first writes `{"ready": true}`. Then it
reads one request a line, `{"id": 7, "slot": 0, "op": "step", ...}`, and writes one answer a line, `{"id": 7, "result":
..., "took": seconds}` or `{"id": 7, "error": ..., "kind": ..., "where": ...}`. JSON is used since loading a pickle can
run code. A worker ends when its standard input is closed, so it never outlives its parent.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

from evalharness.base.errors import EvalharnessError, InfrastructureError, UserError
from evalharness.envs import specs
from evalharness.envs.base import Task, TextEnv

_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Ask the kernel to kill this process when the parent ends, even if a simulator hangs in native code (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def private_stdout() -> IO[str]:
    """Return standard output for the protocol, and redirect the simulators' prints to standard error."""
    protocol = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)
    return protocol


class NotMadeError(Exception):
    """The environment could not be made: the simulator's libraries or programs do not start on this machine."""


class Environments:
    """The environments of this process. Each environment is made when needed, and reused for later episodes."""

    def __init__(self, family: str, data: Path | None, engine: str) -> None:
        spec = specs()[family]
        self.spec = spec.on_stock_engine() if engine == "stock" else spec
        self.data = data
        self.by_slot: dict[int, TextEnv] = {}

    def call(self, slot: int, op: str, request: dict[str, Any]) -> Any:
        if slot not in self.by_slot:
            self.by_slot[slot] = self._make()
        environment = self.by_slot[slot]
        match op:
            case "reset":
                observation, info = environment.reset(options={"task": Task.from_json(request["task"])})
                self._check(observation, info)
                return [environment.goal, observation, info]
            case "step":
                observation, _, terminated, _, info = environment.step(request["action"])
                self._check(observation, info)
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
            raise NotMadeError(f"{type(error).__name__}: {error}") from error

    def _check(self, observation: str, info: dict[str, Any]) -> None:
        """Raise UserError if an adapter does not return what `TextEnv` promises."""
        wrong = [key for key in ("success", "solved", "valid") if not isinstance(info.get(key), bool)]
        wrong += [] if isinstance(observation, str) else ["observation"]
        wrong += [] if isinstance(info.get("subgoals_completed"), Sequence) else ["subgoals_completed"]
        progress = info.get("progress")
        wrong += [] if isinstance(progress, int | float) and 0 <= progress < 1 + 1e-9 else ["progress"]
        if wrong:
            keys = ", ".join(wrong)
            raise UserError(
                f"the environment {self.spec.family} returns a missing or wrong {keys}; see TextEnv.info"
            )

    def close(self) -> None:
        for environment in self.by_slot.values():
            environment.close()


def answer_request(
    call: Callable[[int, str, dict[str, Any]], Any], request: dict[str, Any]
) -> dict[str, Any]:
    """Execute one request and return its answer: the result and its seconds, or the error.

    `for_user`: a person must fix something, so a retry would fail again.
    `not_made`: the environment could not be made.
    """
    began = time.perf_counter()
    try:
        result = call(request["slot"], request["op"], request)
    except Exception as error:
        if not isinstance(error, EvalharnessError):
            traceback.print_exc()
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
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C and ends this process
    protocol = private_stdout()
    family, data, engine = sys.argv[1:4]
    environments = Environments(family, Path(data) if data else None, engine)
    protocol.write('{"ready": true}\n')
    protocol.flush()
    for line in sys.stdin:
        request = json.loads(line)
        answer = answer_request(environments.call, request)
        protocol.write(json.dumps(answer) + "\n")
        protocol.flush()
    environments.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
