"""Jericho: interactive fiction; the 20 published games, and 20 stories of our own."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from envs.base import EnvSpec, Suite, Task
from envs.jericho.actions import ACTIONS
from envs.jericho.perturbations import WORDING

if TYPE_CHECKING:
    from envs.base import TextEnv


def _load_tasks(suite: Suite, data: Path | None, seed: int) -> list[Task]:
    from envs.jericho.tasks import load_tasks

    return load_tasks(suite, data, seed)


def _generate(seed: int) -> Iterable[Task]:
    from envs.jericho.generator import generate

    return generate(seed)


def _make(data: Path | None) -> TextEnv:
    from envs.jericho.adapter import JerichoEnv

    return JerichoEnv(data=data)


SPEC = EnvSpec(
    family="jericho",
    title="Jericho",
    gym_id="evalharness/Jericho-v0",
    expected={"agentboard": 20, "open": 20},
    packages=("jericho",),
    held_out=True,
    load_tasks=_load_tasks,
    make=_make,
    generate=_generate,
    actions=ACTIONS,
    help_action="check",
    wording=WORDING,
    envs_per_worker=8,
    cost=0.5,
)
