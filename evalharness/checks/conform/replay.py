"""Replay transcripts in worker processes, so that an environment that crashes or hangs costs one transcript."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from evalharness.base.errors import UserError, nearest
from evalharness.checks.conform.compare import FamilyResult, ReplayCheck
from evalharness.checks.conform.rules import Tolerance
from evalharness.checks.conform.transcripts import Transcript
from evalharness.envs.base import EnvSpec, Task
from evalharness.play.workers.process import RemoteEnvironment, WorkerError, WorkerProcess
from evalharness.suites.selection import family_tasks

TRIES = 2
"""A hung or dead worker can be the machine's fault once."""


def families_of(
    transcripts: Sequence[Transcript], specs: Mapping[str, EnvSpec], tolerances: Mapping[str, Tolerance]
) -> dict[str, list[Transcript]]:
    """Transcripts by the harness's family name. Raises UserError for a family that is not installed."""
    names = {name: family for family, tolerance in tolerances.items() for name in tolerance.recorded_as}
    found: dict[str, list[Transcript]] = {}
    for transcript in transcripts:
        family = names.get(transcript.family, transcript.family)
        if family not in specs:
            raise UserError(
                f"{transcript.source}: unknown family {transcript.family!r}{nearest(transcript.family, sorted(specs))}"
            )
        found.setdefault(family, []).append(transcript)
    return dict(sorted(found.items()))


async def conform(
    spec: EnvSpec,
    tolerance: Tolerance,
    transcripts: Sequence[Transcript],
    data: Path,
    *,
    suite: str = "agentboard",
    suite_seed: int = 0,
    shown: Callable[[str], str] = str,
    workers: int,
    progress: Callable[[], None] = lambda: None,
) -> FamilyResult:
    """Replay one family's transcripts; `shown` makes of our observations what the recording has. `progress` is called
    after each. Raises UserError when data is missing."""
    tasks = {task.index: task for task in family_tasks(spec, suite, data, suite_seed)}
    for transcript in transcripts:
        if transcript.index not in tasks:
            raise UserError(f"{transcript.source}: {spec.family} has no task {transcript.index}")
    checks: list[ReplayCheck | None] = [None] * len(transcripts)
    waiting = iter(range(len(transcripts)))

    def task_of(transcript: Transcript) -> Task:
        task = tasks[transcript.index]
        # Recorded without labels, the world ended by itself alone; with ours it would also end at success.
        return task if transcript.labelled else replace(task, subgoals=())

    async def work() -> None:
        worker = WorkerProcess(spec, data, None)
        try:
            for number in waiting:
                for _ in range(TRIES):
                    if worker.broken:
                        await worker.close()
                        worker = WorkerProcess(spec, data, None)
                    check = ReplayCheck(transcripts[number], tolerance)
                    await _replay(RemoteEnvironment(worker, 0), task_of(transcripts[number]), check, shown)
                    if not worker.broken or check.ended:
                        break
                checks[number] = check
                progress()
        finally:
            await worker.close()

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(workers, len(transcripts))):
                group.create_task(work())
    except* UserError as errors:
        raise errors.exceptions[0] from None
    return FamilyResult(spec.family, [check for check in checks if check is not None])


async def _replay(
    environment: RemoteEnvironment, task: Task, check: ReplayCheck, shown: Callable[[str], str]
) -> None:
    number = None
    try:
        goal, observation, _ = await environment.reset(task)
        check.reset(goal, shown(observation))
        recorded = check.transcript.initial_observation
        for number, step in enumerate(check.transcript.steps):
            action = check.tolerance.same_choice(step.action, recorded, observation)
            observation, terminated, info = await environment.step(action)
            check.step(number, shown(observation), terminated, info)
            recorded = step.observation
    except WorkerError as error:
        check.crash(number, str(error))
        return
    check.end()
