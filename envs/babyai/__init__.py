"""BabyAI: instructions in a partially observed grid world, played in words."""

from __future__ import annotations

from pathlib import Path

from envs.babyai.actions import TEMPLATES
from envs.babyai.perturbations import WORDING
from envs.babyai.tasks import FAMILY, generate, load_tasks
from envs.base import EnvSpec, TextEnv


def _make(data: Path | None) -> TextEnv:
    from envs.babyai.adapter import BabyAIEnv

    return BabyAIEnv(data=data)


SPEC = EnvSpec(
    family=FAMILY,
    title="BabyAI",
    gym_id="evalharness/BabyAI-v0",
    expected={"agentboard": 112, "open": 112},
    packages=("minigrid",),
    held_out=True,
    load_tasks=load_tasks,
    make=_make,
    generate=generate,
    actions=TEMPLATES,
    help_action="check",
    wording=WORDING,
    envs_per_worker=32,
    step_timeout=20.0,
    reset_timeout=60.0,
    cost=0.5,
)
