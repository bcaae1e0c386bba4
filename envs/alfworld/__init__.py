"""ALFWorld: household tasks in text (put, clean, heat, cool, examine in light, put two)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from envs.alfworld.actions import ACTIONS
from envs.alfworld.perturbations import WORDING
from envs.base import EnvSpec, Suite, Task

if TYPE_CHECKING:
    from envs.base import TextEnv


def _load_tasks(suite: Suite, data: Path | None, seed: int) -> list[Task]:
    from envs.alfworld.tasks import load_tasks

    return load_tasks(suite, data, seed)


def _generate(seed: int) -> Iterable[Task]:
    from envs.alfworld.generator import generate

    return generate(seed)


def _make(data: Path | None) -> TextEnv:
    from envs.alfworld.adapter import ALFWorldEnv

    return ALFWorldEnv(data=data)


def _place(action: str, observation: str) -> str | None:
    """Every receptacle is a place of its own: one acts on what one stands at."""
    return action.removeprefix("go to ") if action.startswith("go to ") else None


SPEC = EnvSpec(
    family="alfworld",
    title="ALFWorld",
    gym_id="evalharness/ALFWorld-v0",
    expected={"agentboard": 134, "open": 134},
    packages=("textworld",),
    held_out=False,
    load_tasks=_load_tasks,
    make=_make,
    generate=_generate,
    actions=ACTIONS,
    help_action="check",
    wording=WORDING,
    # Measured: 46 MB for the process, 1 MB and half a millisecond a step for each environment.
    envs_per_worker=64,
    cost=0.5,
    place=_place,
)
