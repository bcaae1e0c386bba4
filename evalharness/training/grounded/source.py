"""Tasks to make trajectories of: those of consecutive open suites, built where they are not frozen yet."""

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
"""Suites that are made while an earlier one is in use, at most."""
Note = Callable[[str], None]


@dataclass
class TaskSource:
    """A family's tasks, suite after suite, without those that must not be trained on."""

    spec: EnvSpec
    first_seed: int
    excluded: Excluded
    builders: asyncio.Semaphore
    """How many suites may be built at once, of all families together."""
    note: Note = lambda text: None
    needed: Callable[[], int] = lambda: 0
    """How many tasks are still asked for at least."""
    kinds: frozenset[str] = frozenset()
    """Of tasks. Empty: all."""
    passed_over: frozenset[int] = frozenset()
    """Suite seeds that give no tasks."""
    _building: dict[int, asyncio.Task[list[Task]]] = field(default_factory=dict)

    async def tasks(self) -> AsyncGenerator[tuple[int, Task]]:
        """(suite seed, task), without end. Raises UserError when a whole suite brings nothing new, or nothing at all of
        the kinds asked for."""
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
                    f"--kinds: {self.spec.title} has none of {', '.join(sorted(self.kinds))}, but {known}"
                )
            of_kind = [task for task in suite if not self.kinds or task.kind in self.kinds]
            fresh = [task for task in of_kind if self.excluded.why_not(task) is None]
            # A suite goes kind by kind; whoever takes half of it should get some of each kind.
            Random(f"grounded tasks/{self.spec.family}/{seed}").shuffle(fresh)
            if fresh:
                # Those that will be needed at this rate are built together; none on speculation.
                more = -(-(self.needed() - len(fresh)) // len(fresh))
                for coming in range(seed + 1, seed + 1 + min(more, _AHEAD)):
                    self._start(coming)
            for task in fresh:
                yield seed, task
            if not fresh:
                raise UserError(
                    f"{self.spec.title}: suite seed {seed} has no task that is not in another suite already; "
                    "ask for fewer trajectories (-n), more of a task (--per-task), or another --suite-seed"
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
    """In a process of its own, so that two cores build two suites."""
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
