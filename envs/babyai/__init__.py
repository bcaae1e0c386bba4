"""BabyAI: instructions in a partially observed grid world, played in words."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from evalharness.envs.babyai.actions import ACTIONS
from evalharness.envs.babyai.levels import FEW_STARTS, OPEN_VERSION
from evalharness.envs.babyai.perturbations import WORDING
from evalharness.envs.base import Actions, EnvSpec, Suite, Task, TaskSuites, WorkerNeeds

if TYPE_CHECKING:
    from evalharness.envs.base import TextEnv
    from evalharness.envs.teaching import Teaching


def _load_tasks(suite: Suite, data: Path | None, seed: int) -> list[Task]:
    from evalharness.envs.babyai.tasks import load_tasks

    return load_tasks(suite, data, seed)


def _generate(seed: int) -> Iterable[Task]:
    from evalharness.envs.babyai.generator import generate

    return generate(seed)


def _distract(task: Task, count: int) -> Task | None:
    from evalharness.envs.babyai.world import distract

    return distract(task, count)


def _teaching() -> Teaching:
    from evalharness.envs.babyai.teaching import TEACHING

    return TEACHING


def _picture(environment: TextEnv) -> str:
    from evalharness.envs.babyai.picture import picture

    return picture(environment)


def _make(data: Path | None) -> TextEnv:
    from evalharness.envs.babyai.adapter import BabyAIEnv

    return BabyAIEnv(data=data)


SPEC = EnvSpec(
    family="babyai",
    title="BabyAI",
    gym_id="evalharness/BabyAI-v0",
    packages=("minigrid",),
    held_out=True,
    make=_make,
    suites=TaskSuites(
        expected={"agentboard": 112, "open": 112, "agentgym": 40},
        load_tasks=_load_tasks,
        generate=_generate,
        distract=_distract,
        open_version=OPEN_VERSION,
        few_tasks=FEW_STARTS,
    ),
    actions=Actions(ACTIONS, help_action="check", wording=WORDING),
    worker=WorkerNeeds(envs_per_worker=32, step_timeout=20.0, reset_timeout=60.0, cost=0.5),
    teaching=_teaching,
    picture=_picture,
)
