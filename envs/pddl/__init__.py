"""PDDL planning worlds: gripper, blockworld, barman, tyreworld."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from evalharness.envs.base import Actions, EnvSpec, Suite, Task, TaskSuites, WorkerNeeds
from evalharness.envs.pddl.actions import ACTIONS
from evalharness.envs.pddl.perturbations import WORDING

if TYPE_CHECKING:
    from evalharness.envs.base import TextEnv
    from evalharness.envs.teaching import Teaching


def _load_tasks(suite: Suite, data: Path | None, seed: int) -> list[Task]:
    from evalharness.envs.pddl.tasks import load_tasks

    return load_tasks(suite, data, seed)


def _generate(seed: int) -> Iterable[Task]:
    from evalharness.envs.pddl.generator import generate

    return generate(seed)


def _distract(task: Task, count: int) -> Task | None:
    from evalharness.envs.pddl.distractors import distract

    return distract(task, count)


def _teaching() -> Teaching:
    from evalharness.envs.pddl.teaching import TEACHING

    return TEACHING


def _picture(environment: TextEnv) -> str:
    from evalharness.envs.pddl.picture import picture

    return picture(environment)


def _make(data: Path | None) -> TextEnv:
    from evalharness.envs.pddl.adapter import PddlTextEnv

    return PddlTextEnv(data=data)


SPEC = EnvSpec(
    family="pddl",
    title="PDDL",
    gym_id="evalharness/PDDL-v0",
    held_out=True,
    make=_make,
    suites=TaskSuites(
        expected={"agentboard": 60, "open": 60},
        load_tasks=_load_tasks,
        generate=_generate,
        distract=_distract,
        open_version=2,
    ),
    actions=Actions(ACTIONS, help_action="check", wording=WORDING),
    worker=WorkerNeeds(envs_per_worker=32, cost=0.1),
    teaching=_teaching,
    picture=_picture,
)
