"""Replay transcripts in worker processes, so that an environment that crashes or hangs costs one transcript."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from evalharness.base.errors import UserError
from evalharness.envs.base import EnvSpec, Task
from evalharness.play.workers.pool import EnvironmentPool
from evalharness.play.workers.process import RemoteEnvironment, WorkerError
from evalharness.suites.selection import family_tasks
from tests.conform.compare import FamilyResult, ReplayCheck
from tests.conform.rules import Tolerance, installed_name
from tests.conform.transcripts import Transcript

TRIES = 2
"""A hung or dead worker can be the machine's fault once."""


def families_of(
    transcripts: Sequence[Transcript], tolerances: Mapping[str, Tolerance]
) -> dict[str, list[Transcript]]:
    """Transcripts by the harness's family name. Raises UserError for a family that is not installed."""
    found: dict[str, list[Transcript]] = {}
    for transcript in transcripts:
        family = installed_name(transcript.family, transcript.source, tolerances)
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
) -> FamilyResult:
    """Replay one family's transcripts; `shown` makes of our observations what the recording has.

    Raises UserError when data is missing."""
    tasks = {task.index: task for task in family_tasks(spec, suite, data, suite_seed)}
    for transcript in transcripts:
        if transcript.index not in tasks:
            raise UserError(f"{transcript.source}: {spec.family} has no task {transcript.index}")

    pool = EnvironmentPool(spec, data, max_workers=workers, episodes_per_worker=1)

    async def one(transcript: Transcript) -> ReplayCheck:
        task = tasks[transcript.index]
        if (
            not transcript.labelled
        ):  # the world ended by itself alone; with labels it would also end at success
            task = replace(task, subgoals=())
        for _ in range(TRIES):
            check = ReplayCheck(transcript, tolerance)
            async with pool.environment() as environment:
                await _replay(environment, task, check, shown)
            if not environment.worker.broken or check.ended:
                break
        return check

    try:
        async with asyncio.TaskGroup() as group:
            checks = [group.create_task(one(transcript)) for transcript in transcripts]
    except* UserError as errors:
        raise errors.exceptions[0] from None
    finally:
        await pool.close()
    return FamilyResult(spec.family, [check.result() for check in checks])


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
