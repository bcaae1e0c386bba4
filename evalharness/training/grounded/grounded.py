"""Trajectories grounded in real worlds, by the thousand: which tasks, how many of each, in which order.

A family's tasks come from consecutive open suites. Each task is one job: its plan is played once, then so many
trajectories are made of it. Jobs run many at once and are taken in their order, so that the same call gives the same
bytes whatever the number of workers. What is done is in a journal: the same command continues after a kill.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from evalharness.base.errors import InfrastructureError, UserError, at_least, first_error
from evalharness.base.machine import usable_cores
from evalharness.base.reading import sha256_of
from evalharness.envs.base import MAX_TURNS, EnvSpec, Task, teaching_of
from evalharness.envs.teaching import Teaching
from evalharness.models.base import Environment
from evalharness.models.tries import Tries
from evalharness.play.workers.pool import EnvironmentPool
from evalharness.protocol.drawn import draw_name, fixed_name, surface_named
from evalharness.protocol.perturb import RANDOM, PlayedSurface
from evalharness.protocol.prompt import load_prompt
from evalharness.suites.open import FROZEN_SEED
from evalharness.training.datasets.decisions import balanced, decisions_of
from evalharness.training.datasets.distractors import check_distractors
from evalharness.training.datasets.journal import Journal
from evalharness.training.datasets.overlap import excluded
from evalharness.training.datasets.sample import Sample, manifest_path, read_manifest, write_samples
from evalharness.training.grounded.draft import ErrorPlan, NoTrajectoryError, Stage
from evalharness.training.grounded.replayed import Recipe, Thinker, make_sample
from evalharness.training.grounded.source import TaskSource

_EPISODES_PER_WORKER = 8
_POOL = 8
"""Times as many trajectories as are asked for are made to be balanced."""
_ATTEMPTS = 3
"""Times that a task is tried whose simulator died or hung."""


@dataclass(frozen=True)
class Order:
    """What is to be made; equal orders make equal bytes."""

    families: tuple[str, ...]
    suite_seed: int
    samples: int
    seed: int = 0
    per_task: int | None = None
    """None: the family's own number."""
    errors: ErrorPlan | None = field(default_factory=ErrorPlan)
    search: bool = True
    """An agent without privileged information plays, in the families that have one."""
    wordings: int | None = 1
    """Of each thought, at most. None: all there are."""
    kinds: tuple[str, ...] = ()
    """Of tasks. Empty: all."""
    perturb: str | None = None
    """`random`: drawn for each trajectory."""
    distractors: int = 0
    """Objects that each task has and its goal does not need."""
    balance: bool = False
    """Out of several times as many, so that half of a family's trajectories hold a rare decision."""
    max_turns: int = MAX_TURNS
    exclude_suite_seeds: tuple[int, ...] = ()
    """Open suites whose tasks are not used, nor what is the same, besides seed 0."""
    thoughts: str | Mapping[str, Any] = "rule"
    """`rule`, or the identity of the model that writes them."""

    def shares(self) -> dict[str, int]:
        """Family -> trajectories: equal shares, the first ones one more where it does not divide."""
        each, rest = divmod(self.samples, len(self.families))
        return {family: each + (number < rest) for number, family in enumerate(self.families)}


@dataclass
class FamilyCount:
    """How far a family is."""

    wanted: int
    made: int = 0
    tasks: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    status: str = ""


@dataclass
class FamilyCounts:
    families: dict[str, FamilyCount]


def check(order: Order) -> None:
    """Raises UserError for what must not or cannot be made."""
    if order.suite_seed == FROZEN_SEED:
        raise UserError(
            "suite seed 0 is what models are evaluated on and is never trained on; give another --suite-seed, e.g. 100"
        )
    at_least(1, suite_seed=order.suite_seed)
    if order.suite_seed in order.exclude_suite_seeds:
        raise UserError(f"--suite-seed {order.suite_seed} is in --exclude-suite-seeds; give another one")
    if order.samples < len(order.families):
        raise UserError(f"-n {order.samples} is less than one for each of {len(order.families)} families")
    at_least(1, per_task=order.per_task, wordings=order.wordings, max_turns=order.max_turns)


async def make(
    order: Order,
    specs: dict[str, EnvSpec],
    output: Path,
    *,
    data: Path | None = None,
    workers: int | None = None,
    progress: FamilyCounts | None = None,
    think: Thinker | None = None,
) -> dict[str, Any]:
    """Make `output` and its manifest; returns the manifest. Raises UserError, InfrastructureError."""
    check(order)
    check_distractors([specs[family] for family in order.families], order.distractors)
    progress = progress or FamilyCounts({f: FamilyCount(n) for f, n in order.shares().items()})
    fingerprint = {
        "order": asdict(order),
        "prompts": {f: load_prompt(specs[f]).sha256 for f in order.families},
    }
    journal = Journal(output.with_name(f".{output.name}.journal"), fingerprint)
    builders = asyncio.Semaphore(workers or usable_cores())
    tries = Tries(_ATTEMPTS, _end_where_given_up, at_once=lambda: sum(maker.pool.most for maker in makers))
    makers = [
        _Family(specs[family], order, count, journal, builders, data, workers or usable_cores(), think, tries)
        for family, count in progress.families.items()
    ]
    try:
        async with asyncio.TaskGroup() as group:
            for maker in makers:
                group.create_task(maker.run())
    except BaseExceptionGroup as errors:
        raise first_error(errors) from None
    finally:
        journal.close()
        await asyncio.gather(*(maker.close() for maker in makers))

    def all_samples() -> Iterator[Sample]:
        for maker in makers:
            yield from maker.samples

    made = {
        "command": "refine grounded",
        **fingerprint,
        "families": {maker.spec.family: maker.manifest() for maker in makers},
    }
    manifest = write_samples(output, all_samples(), made)
    journal.remove()
    return manifest


def is_made(order: Order, output: Path) -> bool:
    """Whether `output` is what `order` makes. Raises UserError when it is something else."""
    if not output.exists():
        return False
    manifest = read_manifest(output) or {}
    made = manifest.get("made")
    if isinstance(made, dict) and made.get("order") == json.loads(json.dumps(asdict(order))):
        if sha256_of(output) == manifest.get("sha256"):
            return True
        raise UserError(f"{output} was changed after it was made; give another -o, or --force")
    raise UserError(
        f"{output} is there already and was made otherwise (see {manifest_path(output).name}); "
        "give another -o, or --force"
    )


def _end_where_given_up(key: str, attempt: int, error: InfrastructureError, final: bool) -> None:
    if final:
        raise error


@dataclass
class _Family:
    """The making of one family's share."""

    spec: EnvSpec
    order: Order
    count: FamilyCount
    journal: Journal
    builders: asyncio.Semaphore
    data: Path | None
    workers: int
    think: Thinker | None
    tries: Tries[str]
    samples: list[Sample] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.world: Teaching = teaching_of(self.spec)
        self.surface = PlayedSurface(self.spec, fixed_name(self.order.perturb))
        self.prompt = load_prompt(self.spec)
        self.most = self.count.wanted * (_POOL if self.order.balance else 1)
        self.per_task = self.order.per_task or self.world.per_task
        self.pool = EnvironmentPool(
            self.spec, self.data, self.workers, episodes_per_worker=_EPISODES_PER_WORKER
        )
        self.excluded = excluded(self.spec, self.world, self.data, self.order.exclude_suite_seeds)
        self.source = TaskSource(
            self.spec,
            self.order.suite_seed,
            self.excluded,
            self.builders,
            self._note,
            self._tasks_needed,
            frozenset(self.order.kinds),
            frozenset(self.order.exclude_suite_seeds),
            self.order.distractors,
        )

    def _tasks_needed(self) -> int:
        return -(-(self.most - len(self.samples)) // self.per_task)

    def _note(self, text: str) -> None:
        self.count.status = text

    async def run(self) -> None:
        """Jobs in flight, their results taken in order until the share is full."""
        tasks = self.source.tasks()
        flying: deque[asyncio.Task[dict[str, Any]]] = deque()
        try:
            while len(self.samples) < self.most:
                while len(flying) < min(self._tasks_needed(), self.pool.most):
                    flying.append(asyncio.create_task(self._job(*(await anext(tasks)))))
                self._take(await flying.popleft())
        finally:
            for job in flying:
                job.cancel()
            await asyncio.gather(*flying, return_exceptions=True)
            await _close(tasks)
        if self.order.balance:
            self.samples = balanced(self.samples, self.count.wanted)

    def _take(self, result: dict[str, Any]) -> None:
        self.count.status = ""
        self.count.tasks += 1
        self.count.refused.update(result["refused"])
        room = self.most - len(self.samples)
        self.samples += [Sample.from_json(data) for data in result["samples"][:room]]
        self.count.made = len(self.samples) * self.count.wanted // self.most

    async def _job(self, suite_seed: int, task: Task) -> dict[str, Any]:
        """The trajectories of one task, as JSON; from the journal where they are there."""
        key = f"{suite_seed}/{task.id}"
        if (known := self.journal.done.get(key)) is not None:
            result: dict[str, Any] = known
            return result

        async def once() -> dict[str, Any]:
            async with self.pool.environment() as environment:
                return await self._make(environment, suite_seed, task)

        made = await self.tries.of(key, once)
        assert made is not None  # given up, it ends everything
        self.journal.add(key, made)
        return made

    async def _make(self, environment: Environment, suite_seed: int, task: Task) -> dict[str, Any]:
        prompt = self.prompt.for_kind(task.kind)
        rules = f"{prompt.system}\n{prompt.instruction}"
        stage = Stage(task, environment, self.world, self.surface, rules, self.order.max_turns)
        order = self.order
        recipe = Recipe(self.prompt, order.errors, order.seed, suite_seed, self.think, order.wordings)
        samples: list[dict[str, Any]] = []
        refused: Counter[str] = Counter()
        try:
            seeker = self.world.seeker(task) if self.order.search else None
            clean = await (stage.clean() if seeker is None else stage.sought(seeker))
        except NoTrajectoryError as reason:
            return {"samples": [], "refused": {str(reason): self.per_task}}
        for variant in range(self.per_task):
            try:
                worded = replace(stage, surface=self._surface(f"{suite_seed}/{task.id}/{variant}"))
                samples.append((await make_sample(worded, clean, recipe, variant)).to_json())
            except NoTrajectoryError as reason:
                refused[str(reason)] += 1
        return {"samples": samples, "refused": dict(refused)}

    def _surface(self, trajectory: str) -> PlayedSurface:
        if self.order.perturb != RANDOM:
            return self.surface
        return surface_named(self.spec, draw_name(self.order.seed, trajectory))

    def manifest(self) -> dict[str, Any]:
        by_model = sum(sample.metadata.get("thoughts_by_model", 0) for sample in self.samples)
        turns = sum(len(sample.player_turns) for sample in self.samples)
        return {
            "samples": len(self.samples),
            "decisions": decisions_of(self.samples)[self.spec.family].to_json() if self.samples else {},
            "tasks": self.count.tasks,
            "per_task": self.per_task,
            "suite_seeds": sorted({sample.metadata["suite_seed"] for sample in self.samples}),
            "not_made": dict(sorted(self.count.refused.items())),
            "overlap_refused": dict(sorted(self.excluded.refused.items())),
            "compared_with": self.excluded.compared,
            "thoughts": {"by_model": by_model, "by_rule": turns - by_model},
        }

    async def close(self) -> None:
        await self.source.close()
        await self.pool.close()


async def _close(tasks: AsyncIterator[tuple[int, Task]]) -> None:
    close: Callable[[], Any] | None = getattr(tasks, "aclose", None)
    if close is not None:
        await close()
