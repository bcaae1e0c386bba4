"""Jericho: interactive fiction; the 20 published games, and 20 stories of our own."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from evalharness.envs.base import Actions, EnvSpec, Suite, Task, TaskSuites, WorkerNeeds
from evalharness.envs.jericho.actions import ACTIONS
from evalharness.envs.jericho.perturbations import WORDING

if TYPE_CHECKING:
    from evalharness.envs.base import TextEnv
    from evalharness.envs.teaching import Teaching


def _load_tasks(suite: Suite, data: Path | None, seed: int) -> list[Task]:
    from evalharness.envs.jericho.tasks import load_tasks

    return load_tasks(suite, data, seed)


def _generate(seed: int) -> Iterable[Task]:
    from evalharness.envs.jericho.generator import generate

    return generate(seed)


def _distract(task: Task, count: int) -> Task | None:
    from evalharness.envs.jericho.distractors import distract

    return distract(task, count)


def _teaching() -> Teaching:
    from evalharness.envs.jericho.teaching import TEACHING

    return TEACHING


def _room(environment: TextEnv) -> str:
    from evalharness.envs.jericho.adapter import JerichoEnv

    assert isinstance(environment, JerichoEnv)
    return environment.room


def _make(data: Path | None) -> TextEnv:
    from evalharness.envs.jericho.adapter import JerichoEnv

    return JerichoEnv(data=data)


SPEC = EnvSpec(
    family="jericho",
    title="Jericho",
    gym_id="evalharness/Jericho-v0",
    packages=("jericho",),
    held_out=True,
    make=_make,
    suites=TaskSuites(
        expected={"agentboard": 20, "open": 20, "unwrapped": 20},
        load_tasks=_load_tasks,
        generate=_generate,
        distract=_distract,
        open_version=2,
    ),
    actions=Actions(ACTIONS, help_action="check", wording=WORDING),
    worker=WorkerNeeds(envs_per_worker=8, cost=0.5),
    teaching=_teaching,
    room=_room,
)
