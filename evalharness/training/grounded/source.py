"""Yield tasks of generated suites (`--suite open`) with consecutive seeds. Build suites that do not exist yet."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from random import Random

from evalharness.base.errors import UserError
from evalharness.envs.base import EnvSpec, Task
from evalharness.suites.excluded import Excluded
from evalharness.suites.open import FROZEN_SEED, load_open, read_frozen

_AHEAD = 16
"""Maximum number of suites that are built in advance."""
Note = Callable[[str], None]


@dataclass
class TaskSource:
    """Yields a family's tasks, suite after suite, without tasks that must not be trained on."""

    spec: EnvSpec
    first_seed: int
    excluded: Excluded
    builders: asyncio.Semaphore
    """Limits how many suites of all families are built at the same time."""
    note: Note = lambda text: None
    needed: Callable[[], int] = lambda: 0
    """Returns the number of tasks that are still needed at least."""
    kinds: frozenset[str] = frozenset()
    """Kinds of tasks; empty: all."""
    passed_over: frozenset[int] = frozenset()
    """Suite seeds that are skipped."""
    _building: dict[int, asyncio.Task[list[Task]]] = field(default_factory=dict)

    async def tasks(self) -> AsyncGenerator[tuple[int, Task]]:
        """Yield (suite seed, task) without end. Raises UserError if a whole suite has no new task, or no task of
        `kinds`."""
        seed = self.first_seed
        while True:
            if seed in self.passed_over:
                seed += 1
                continue
            self._start(seed)
            suite = await self._building[seed]
            if self.kinds and not any(task.kind in self.kinds for task in suite):
                known = ", ".join(sorted({task.kind for task in suite}))
                raise UserError(
                    f"--kinds: {self.spec.title} has no {', '.join(sorted(self.kinds))}; its kinds: {known}"
                )
            of_kind = [task for task in suite if not self.kinds or task.kind in self.kinds]
            fresh = [task for task in of_kind if self.excluded.check(task) is None]
            # Shuffle, because a suite is ordered by kind and perhaps only the first tasks are used.
            Random(f"grounded tasks/{self.spec.family}/{seed}").shuffle(fresh)
            if fresh:
                # Estimate the suites still needed, if each has as many new tasks as this one, and build them in
                # parallel.
                more = -(-(self.needed() - len(fresh)) // len(fresh))
                for coming in range(seed + 1, seed + 1 + min(more, _AHEAD)):
                    self._start(coming)
            for task in fresh:
                yield seed, task
            if not fresh:
                raise UserError(
                    f"{self.spec.title}: all tasks of suite seed {seed} are in other suites, too; "
                    "choose fewer trajectories (-n), more of each task (--per-task), or another --suite-seed"
                )
            seed += 1

    def _start(self, seed: int) -> None:
        if seed not in self._building and seed not in self.passed_over:
            self._building[seed] = asyncio.create_task(self._suite(seed))

    async def _suite(self, seed: int) -> list[Task]:
        assert seed != FROZEN_SEED
        some = self.spec.suites.generate_kinds
        if some is not None and self.kinds and read_frozen(self.spec, seed) is None:
            async with self.builders:
                self.note(f"making tasks of suite seed {seed}: {self.spec.title}")
                tasks = await asyncio.to_thread(lambda: list(some(seed, self.kinds)))
                self.note("")
                return tasks
        if self.spec.suites.generate is not None and read_frozen(self.spec, seed) is None:
            async with self.builders:
                self.note(f"making the suite of seed {seed}: {self.spec.title}")
                await _build(self.spec, seed)
                self.note("")
        return await asyncio.to_thread(load_open, self.spec, seed, self.note)

    async def close(self) -> None:
        for task in self._building.values():
            task.cancel()
        await asyncio.gather(*self._building.values(), return_exceptions=True)


async def _build(spec: EnvSpec, seed: int) -> None:
    """Build the suite in a process of its own, so that several suites are built in parallel."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "evalharness", "data", "suite", "build"),
        *("--suite-seed", str(seed), "--tasks", spec.family),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        _, stderr = await process.communicate()
    except asyncio.CancelledError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        raise
    if process.returncode != 0:
        lines = stderr.decode(errors="replace").strip().splitlines() or ["no reason given"]
        raise UserError(
            f"the suite of seed {seed} could not be made: {lines[-1][:300]} "
            f"(try: evalharness data suite build --suite-seed {seed} --tasks {spec.family})"
        )
