"""Make a data set of trajectories in the simulators (`refine grounded`), from the choice of tasks to the written file.

A family's tasks come from generated suites with consecutive seeds. Each task is one job: the task is played once
without errors, and then several times with different errors. Jobs run in parallel, but results are taken in the order
of the tasks. So the written file does not depend on the number of workers.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter, deque
from contextlib import aclosing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from evalharness.base.errors import UserError, at_least
from evalharness.base.machine import usable_cores
from evalharness.base.reading import sha256_of
from evalharness.envs.base import MAX_TURNS, EnvSpec, Task
from evalharness.models.base import Environment
from evalharness.protocol.drawn import draw_name, drop_random_name, find_surface
from evalharness.protocol.perturb import PlayedSurface
from evalharness.protocol.perturbation_names import RANDOM
from evalharness.protocol.prompt import load_prompt
from evalharness.suites.excluded import load_excluded
from evalharness.suites.open import FROZEN_SEED
from evalharness.training.datasets.conversation import Conversation, manifest_path, read_manifest, write_data
from evalharness.training.grounded.draft import ErrorPlan, NoTrajectoryError
from evalharness.training.grounded.making import FamilyCount, FamilyCounts, FamilyMaking, Making
from evalharness.training.grounded.replayed import Recipe, make_conversation
from evalharness.training.grounded.source import TaskSource


@dataclass(frozen=True)
class DataRequest:
    """The options that determine the data set: equal options give identical files."""

    families: tuple[str, ...]
    suite_seed: int
    samples: int  # number of conversations; manifests use this name
    seed: int = 0
    per_task: int | None = None
    """Trajectories of one task; None: the family's default."""
    errors: ErrorPlan | None = field(default_factory=ErrorPlan)
    search: bool = True
    """Whether an agent without privileged information plays, in families that have such an agent; otherwise the oracle
    plays."""
    kinds: tuple[str, ...] = ()
    """Kinds of tasks; empty: all."""
    perturb: str | None = None
    """Name of a perturbation of the actions' wording; `random` draws a wording for each trajectory."""
    max_turns: int = MAX_TURNS
    exclude_suite_seeds: tuple[int, ...] = ()
    """Seeds of further suites whose tasks are refused. Tasks of suite seed 0 are always refused."""

    def shares(self) -> dict[str, int]:
        """Return family -> number of trajectories: equal shares, with the remainder on the first families."""
        each, rest = divmod(self.samples, len(self.families))
        return {family: each + (number < rest) for number, family in enumerate(self.families)}

    def counts(self) -> FamilyCounts:
        """Return a counter for each family, with the number of trajectories to make and none made yet."""
        return {family: FamilyCount(number) for family, number in self.shares().items()}


def check(request: DataRequest) -> None:
    """Raise UserError if options contradict each other, or if the tasks may not be trained on."""
    if request.suite_seed == FROZEN_SEED:
        raise UserError(
            "models are evaluated on suite seed 0, so its tasks are never trained on; choose another --suite-seed, "
            "such as 100"
        )
    at_least(1, suite_seed=request.suite_seed)
    if request.suite_seed in request.exclude_suite_seeds:
        raise UserError(f"--suite-seed {request.suite_seed} is in --exclude-suite-seeds; choose another one")
    if request.samples < len(request.families):
        raise UserError(f"-n {request.samples} is less than one for each of {len(request.families)} families")
    at_least(1, per_task=request.per_task, max_turns=request.max_turns)


async def make(
    request: DataRequest,
    specs: dict[str, EnvSpec],
    output: Path,
    *,
    data: Path | None = None,
    workers: int | None = None,
    progress: FamilyCounts | None = None,
) -> dict[str, Any]:
    """Write `output` and its manifest; return the manifest. Raises UserError, InfrastructureError."""
    check(request)
    progress = progress or request.counts()
    fingerprint = {
        "order": asdict(request),
        "prompts": {f: load_prompt(specs[f]).sha256 for f in request.families},
    }
    making = Making()
    builders = asyncio.Semaphore(workers or usable_cores())
    makers = [
        _Family(making, specs[family], count, request, builders, data, workers)
        for family, count in progress.items()
    ]
    making.families += makers
    conversations = await making.run()
    made = {
        "command": "refine grounded",
        **fingerprint,
        "families": {maker.spec.family: maker.manifest() for maker in makers},
    }
    return write_data(output, conversations, made)


def is_already_made(request: DataRequest, output: Path) -> bool:
    """Return whether the file `output` was made by `request`. Raises UserError if `output` was changed or made
    otherwise."""
    if not output.exists():
        return False
    manifest = read_manifest(output) or {}
    if manifest and manifest["made"].get("order") == json.loads(json.dumps(asdict(request))):
        if sha256_of(output) == manifest.get("sha256"):
            return True
        raise UserError(f"{output} was changed after it was made; choose another -o, or --force")
    raise UserError(
        f"{output} was made with other options (see {manifest_path(output).name}); "
        "choose another -o, or --force"
    )


class _TaskResult(NamedTuple):
    conversations: list[Conversation]
    refused: Counter[str]


class _Family(FamilyMaking):
    def __init__(
        self,
        making: Making,
        spec: EnvSpec,
        count: FamilyCount,
        request: DataRequest,
        builders: asyncio.Semaphore,
        data: Path | None,
        workers: int | None,
    ) -> None:
        super().__init__(making, spec, count, data, workers, drop_random_name(request.perturb))
        self.request = request
        self.per_task = request.per_task or self.world.per_task
        self.excluded = load_excluded(spec, data, request.exclude_suite_seeds)
        self.source = TaskSource(
            spec,
            request.suite_seed,
            self.excluded,
            builders,
            self._note,
            self._tasks_needed,
            frozenset(request.kinds),
            frozenset(request.exclude_suite_seeds),
        )

    def _tasks_needed(self) -> int:
        return -(-(self.count.wanted - len(self.conversations)) // self.per_task)

    def _note(self, text: str) -> None:
        self.count.status = text

    async def run(self) -> None:
        """Run jobs in parallel, and take the results in order until the family has enough conversations."""
        flying: deque[asyncio.Task[_TaskResult]] = deque()
        async with aclosing(self.source.tasks()) as tasks:
            try:
                while len(self.conversations) < self.count.wanted:
                    while len(flying) < min(self._tasks_needed(), self.pool.most):
                        flying.append(asyncio.create_task(self._job(*(await anext(tasks)))))
                    self._take(await flying.popleft())
            finally:
                for job in flying:
                    job.cancel()
                await asyncio.gather(*flying, return_exceptions=True)

    def _take(self, result: _TaskResult) -> None:
        self.count.status = ""
        self.count.tasks += 1
        self.count.refused.update(result.refused)
        room = self.count.wanted - len(self.conversations)
        self.conversations += result.conversations[:room]
        self.count.made = len(self.conversations)

    async def _job(self, suite_seed: int, task: Task) -> _TaskResult:
        return await self.with_environment(
            f"{suite_seed}/{task.id}", lambda environment: self._make(environment, suite_seed, task)
        )

    async def _make(self, environment: Environment, suite_seed: int, task: Task) -> _TaskResult:
        stage = self.stage(environment, task, self.request.max_turns)
        request = self.request
        recipe = Recipe(self.prompt, request.errors, request.seed, suite_seed)
        conversations: list[Conversation] = []
        refused: Counter[str] = Counter()
        try:
            seeker = self.world.seeker(task) if self.request.search else None
            clean = await (stage.clean() if seeker is None else stage.play_seeker(seeker))
        except NoTrajectoryError as reason:
            return _TaskResult([], Counter({str(reason): self.per_task}))
        for variant in range(self.per_task):
            try:
                worded = replace(stage, surface=self._surface(f"{suite_seed}/{task.id}/{variant}"))
                conversations.append(await make_conversation(worded, clean, recipe, variant))
            except NoTrajectoryError as reason:
                refused[str(reason)] += 1
        return _TaskResult(conversations, refused)

    def _surface(self, trajectory: str) -> PlayedSurface:
        if self.request.perturb != RANDOM:
            return self.surface
        return find_surface(self.spec, draw_name(self.request.seed, trajectory))

    def manifest(self) -> dict[str, Any]:
        return {
            "samples": len(self.conversations),
            "tasks": self.count.tasks,
            "per_task": self.per_task,
            "suite_seeds": sorted({each.metadata["suite_seed"] for each in self.conversations}),
            "not_made": dict(sorted(self.count.refused.items())),
            "overlap_refused": dict(sorted(self.excluded.refused.items())),
            "compared_with": self.excluded.compared,
        }

    async def close(self) -> None:
        await self.source.close()
        await super().close()
