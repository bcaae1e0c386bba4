"""Check which families can be played, by playing one turn of each suite in a worker process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from evalharness.data import check, published
from evalharness.envs import specs
from evalharness.envs.base import EnvSpec, MissingDataError, Suite, Task
from evalharness.models.event_loop import run_to_end
from evalharness.play.workers.process import RemoteEnvironment, WorkerProcess

USUAL_SUITES = ("agentboard", "open")
"""Suites that are reported as not playable if the module of a family cannot be imported."""


@dataclass(frozen=True)
class SuiteProbe:
    suite: str
    tasks: int
    expected: int
    plays: bool
    problem: str | None
    """Why the suite cannot be played, or what is wrong with its data."""
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
    """Play one turn of each suite of the named families; by default of all installed families, sorted by name."""
    if families is None:
        families = sorted(point.name for point in entry_points(group="evalharness.environments"))
    log = logging.getLogger("evalharness")
    level = log.level
    log.setLevel(logging.ERROR)  # do not log the death of a worker: the result reports it
    try:
        return run_to_end(_probe_all(families, data))
    finally:
        log.setLevel(level)


async def _probe_all(families: Sequence[str], data: Path) -> list[FamilyProbe]:
    return list(await asyncio.gather(*(_probe(family, data) for family in families)))


async def _probe(family: str, data: Path) -> FamilyProbe:
    try:
        spec = specs()[family]
    except Exception as error:  # importing an environment can raise any error
        problem = f"{type(error).__name__}: {error}"
        suites = [SuiteProbe(suite, 0, 0, plays=False, problem=problem, fix=None) for suite in USUAL_SUITES]
    else:
        suites = [await _probe_suite(spec, suite, data) for suite in sorted(spec.suites.expected)]
    return FamilyProbe(family, tuple(suites))


async def _probe_suite(spec: EnvSpec, suite: Suite, data: Path) -> SuiteProbe:
    """Load the suite's tasks and play one turn of the first task. Use a worker process, as in a run."""
    tasks: Sequence[Task] = ()
    problem, fix, missing = None, None, False
    worker = WorkerProcess(spec, data, None)
    try:
        tasks = await asyncio.to_thread(spec.suites.load_tasks, suite, data, 0)
        if tasks:
            environment = RemoteEnvironment(worker, 0)
            await environment.reset(tasks[0])
            await environment.step("look")
        else:
            problem = "it has no tasks"
    except MissingDataError as error:
        problem, missing = str(error), True
    except Exception as error:  # a simulator can raise any error
        problem = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    finally:
        await worker.close()
    plays = problem is None
    # Check the data even if the suite plays: with a changed label file, tasks differ but their number stays the same.
    if (suite == "agentboard" or missing) and (trouble := _data_problem(spec.family, data)):
        problem, fix = trouble, "evalharness data import DIR"
    return SuiteProbe(suite, len(tasks), spec.suites.expected.get(suite, 0), plays, problem, fix)


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
