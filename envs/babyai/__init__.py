"""BabyAI: instructions in a partially observed grid world, played in words."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from envs.babyai.actions import ACTIONS
from envs.babyai.perturbations import WORDING
from envs.base import EnvSpec, Suite, Task

if TYPE_CHECKING:
    from envs.base import TextEnv


def _load_tasks(suite: Suite, data: Path | None, seed: int) -> list[Task]:
    from envs.babyai.tasks import load_tasks

    return load_tasks(suite, data, seed)


def _generate(seed: int) -> Iterable[Task]:
    from envs.babyai.generator import generate

    return generate(seed)


def _make(data: Path | None) -> TextEnv:
    from envs.babyai.adapter import BabyAIEnv

    return BabyAIEnv(data=data)


SPEC = EnvSpec(
    family="babyai",
    title="BabyAI",
    gym_id="evalharness/BabyAI-v0",
    expected={"agentboard": 112, "open": 112},
    packages=("minigrid",),
    held_out=True,
    load_tasks=_load_tasks,
    make=_make,
    generate=_generate,
    actions=ACTIONS,
    help_action="check",
    wording=WORDING,
    envs_per_worker=32,
    step_timeout=20.0,
    reset_timeout=60.0,
    cost=0.5,
)
