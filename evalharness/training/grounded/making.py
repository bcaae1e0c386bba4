"""Play many tasks in parallel in the simulators, with a progress bar for each family."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from rich.console import Console, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from evalharness.base.errors import InfrastructureError, first_error
from evalharness.base.machine import usable_cores
from evalharness.base.text import duration
from evalharness.base.watching import dim, watching
from evalharness.envs.base import EnvSpec, Task
from evalharness.models.base import Environment
from evalharness.models.tries import Tries
from evalharness.play.workers.pool import EnvironmentPool
from evalharness.play.workers.process import despite_others
from evalharness.protocol.perturb import make_surface
from evalharness.protocol.prompt import load_prompt
from evalharness.training.datasets.conversation import Conversation
from evalharness.training.grounded.draft import Stage
from evalharness.training.teachers.teaching import load_teaching

T = TypeVar("T")
EPISODES_PER_WORKER = 8
_TRIES = 3
"""Number of tries of a task if its simulator dies or hangs."""


@dataclass
class FamilyCount:
    wanted: int
    made: int = 0
    tasks: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    status: str = ""


FamilyCounts = Mapping[str, FamilyCount]


class Making:
    """Plays the tasks of all families for one data set."""

    def __init__(self) -> None:
        self.families: list[FamilyMaking] = []
        self.tries: Tries[str] = Tries(
            _TRIES, _end_where_given_up, at_once=lambda: sum(family.pool.most for family in self.families)
        )

    async def run(self) -> list[Conversation]:
        """Return the conversations in the order of the families. Raises UserError, InfrastructureError."""
        try:
            async with asyncio.TaskGroup() as group:
                for family in self.families:
                    group.create_task(family.run())
        except BaseExceptionGroup as errors:
            raise first_error(errors) from None
        finally:
            await asyncio.gather(*(family.close() for family in self.families))
        return [each for family in self.families for each in family.conversations]


def _end_where_given_up(key: str, number: int, error: InfrastructureError, final: bool) -> None:
    if final:
        raise error


class FamilyMaking(ABC):
    """The simulators and conversations of one family."""

    def __init__(
        self,
        making: Making,
        spec: EnvSpec,
        count: FamilyCount,
        data: Path | None,
        workers: int | None,
        perturbation: str | None = None,
    ) -> None:
        self.making, self.spec, self.count = making, spec, count
        self.world, self.prompt = load_teaching(spec), load_prompt(spec)
        self.surface = make_surface(spec, perturbation)
        self.pool = EnvironmentPool(
            spec, data, workers or usable_cores(), episodes_per_worker=EPISODES_PER_WORKER
        )
        self.conversations: list[Conversation] = []

    @abstractmethod
    async def run(self) -> None:
        """Play the family's tasks and put the results into `conversations`."""

    async def with_environment(self, key: str, make: Callable[[Environment], Awaitable[T]]) -> T:
        """Return the result of `make` with an environment of the pool. Raises InfrastructureError after repeated
        failures of simulators."""

        async def once() -> T:
            async with self.pool.environment() as environment:
                return await make(environment)

        made = await self.making.tries.of(key, lambda: despite_others(once))
        assert made is not None  # a final failure raises an error instead of returning None
        return made

    def stage(self, environment: Environment, task: Task, max_turns: int) -> Stage:
        prompt = self.prompt.for_kind(task.kind)
        rules = f"{prompt.system}\n{prompt.instruction}"
        return Stage(self.spec, task, environment, self.world, self.surface, rules, max_turns)

    async def close(self) -> None:
        await self.pool.close()


@contextmanager
def watch_making(made: FamilyCounts, titles: Mapping[str, str], console: Console) -> Iterator[None]:
    """Show `made`, the progress of each family, until the context closes."""
    started = time.monotonic()

    def view() -> RenderableType:
        bars = Table(box=None, padding=(0, 1), pad_edge=False, show_header=False)
        for family, count in made.items():
            done = ProgressBar(total=max(count.wanted, 1), completed=count.made, width=24)
            bars.add_row(Text(titles[family]), done, Text(f"{count.made}/{count.wanted}"), dim(count.status))
        return bars

    def line() -> str:
        counts = [
            f"{titles[family]} {count.made}/{count.wanted}" + (f" ({count.status})" if count.status else "")
            for family, count in made.items()
        ]
        return f"{', '.join(counts)}, {duration(time.monotonic() - started)}"

    with watching(console, view, status=lambda: "", line=line):
        yield
