"""PDDL planning worlds: gripper, blockworld, barman, tyreworld."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from envs.base import EnvSpec, Suite, Task
from envs.pddl.actions import ACTIONS
from envs.pddl.perturbations import WORDING

if TYPE_CHECKING:
    from envs.base import TextEnv


def _load_tasks(suite: Suite, data: Path | None, seed: int) -> list[Task]:
    from envs.pddl.tasks import load_tasks

    return load_tasks(suite, data, seed)


def _generate(seed: int) -> Iterable[Task]:
    from envs.pddl.generator import generate

    return generate(seed)


def _make(data: Path | None) -> TextEnv:
    from envs.pddl.adapter import PddlTextEnv

    return PddlTextEnv(data=data)


SPEC = EnvSpec(
    family="pddl",
    title="PDDL",
    gym_id="evalharness/PDDL-v0",
    expected={"agentboard": 60, "open": 60},
    held_out=True,
    load_tasks=_load_tasks,
    make=_make,
    generate=_generate,
    actions=ACTIONS,
    help_action="check",
    wording=WORDING,
    envs_per_worker=32,
    cost=0.1,
)
