"""Check which families can be played, by playing each one in a separate process."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from evalharness.data import check, published

USUAL_SUITES = ("agentboard", "open")
TIMEOUT = 180.0
"""Seconds for one family: two suites, a Java start, a cold disk cache."""


@dataclass(frozen=True)
class SuiteProbe:
    suite: str
    tasks: int
    expected: int
    plays: bool
    problem: str | None
    """Why it does not play, or what is wrong with its data although it plays."""
    fix: str | None


@dataclass(frozen=True)
class FamilyProbe:
    family: str
    suites: tuple[SuiteProbe, ...]

    @property
    def ok(self) -> bool:
        """Return whether at least one suite can be played."""
        return any(suite.plays for suite in self.suites)

    def to_json(self) -> dict[str, Any]:
        return {"family": self.family, "ok": self.ok, "suites": [asdict(suite) for suite in self.suites]}


def probe_families(data: Path, families: Sequence[str] | None = None) -> list[FamilyProbe]:
    """Probe the named families, or all installed ones, sorted."""
    if families is None:
        families = sorted(point.name for point in entry_points(group="evalharness.environments"))
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        return list(pool.map(lambda family: _probe(family, data), families))


def _probe(family: str, data: Path) -> FamilyProbe:
    """Probe every suite in one process; if a suite crashes it, try the others in another process."""
    probes: dict[str, SuiteProbe] = {}
    # The process first reports the family's suites; one that cannot be imported counts as having the usual two.
    answers, end = _run(family, data, [])
    waiting = answers.pop(0)["suites"] if answers else list(USUAL_SUITES)
    while waiting:
        for answer in answers:
            probes[answer["suite"]] = _suite(family, answer, data)
        if len(answers) < len(waiting):
            suite = waiting[len(answers)]
            probes[suite] = SuiteProbe(suite, 0, 0, plays=False, problem=end, fix=_trace(family, data))
        waiting = waiting[len(answers) + 1 :]
        if waiting:
            answers, end = _run(family, data, waiting)
    return FamilyProbe(family, tuple(probes.values()))


def _run(family: str, data: Path, suites: Sequence[str]) -> tuple[list[dict[str, Any]], str]:
    """Return the process's answers in order, and how it ended. Without `suites`, its first answer lists them."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "evalharness.checks.doctor.probe", family, str(data), *suites],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,  # so that its children (a JVM) can be ended with it
    )
    try:
        out, err = process.communicate(timeout=TIMEOUT)
        end = _ending(process.returncode, err)
    except subprocess.TimeoutExpired:
        end = f"no answer within {TIMEOUT:.0f} s"
        _end_group(process)
        out, err = process.communicate()
    finally:
        _end_group(process)
    return [json.loads(line) for line in out.splitlines()], end


def _end_group(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _ending(status: int, errors: str) -> str:
    """Describe how the process ended, for suites without an answer."""
    last = next((line for line in reversed(errors.splitlines()) if line.strip()), "")
    if status < 0:
        known = -status in set(signal.Signals)  # real-time signals have no names
        return f"its process was ended by {signal.Signals(-status).name if known else f'signal {-status}'}"
    return f"its process ended with status {status}" + (f": {last.strip()}" if last else "")


def _trace(family: str, data: Path) -> str:
    """Return the command that shows the traceback: missing and wrong packages have findings of their own."""
    return shlex.join(["python", "-P", "-m", "evalharness.checks.doctor.probe", family, str(data)])


def _suite(family: str, answer: dict[str, Any], data: Path) -> SuiteProbe:
    problem = answer.get("missing") or answer.get("error") or (None if answer["tasks"] else "it has no tasks")
    fix = _trace(family, data) if "error" in answer else None
    # Also if it plays: a changed label file makes the same number of other tasks.
    of_data = answer["suite"] == "agentboard" or "missing" in answer
    if of_data and (trouble := _data_problem(family, data)):
        problem, fix = trouble, "evalharness data import DIR"
    return SuiteProbe(
        answer["suite"],
        answer["tasks"],
        answer["expected"],
        plays=answer.get("plays", False),
        problem=problem,
        fix=fix,
    )


def _data_problem(family: str, data: Path) -> str | None:
    if family not in published():
        return None
    try:
        checked = check(published()[family], data)
    except OSError as error:
        return f"data cannot be read: {error.filename}: {error.strerror}"
    if checked.ok:
        return None
    if checked.state == "absent":
        return "data not imported"
    return f"data {checked.state}: {len(checked.missing)} files missing, {len(checked.changed)} changed"
