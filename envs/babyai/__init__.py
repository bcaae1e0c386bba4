"""Define BabyAI as text: the agent follows an instruction in a grid world of which it sees only a part."""

from __future__ import annotations

from evalharness.envs.babyai.actions import ACTIONS
from evalharness.envs.babyai.levels import FEW_STARTS, OPEN_VERSION
from evalharness.envs.babyai.perturbations import WORDING
from evalharness.envs.base import Actions, EnvSpec, OwnBenchmark, TaskSuites, WorkerNeeds, lazily

SPEC = EnvSpec(
    family="babyai",
    title="BabyAI",
    gym_id="evalharness/BabyAI-v0",
    own=OwnBenchmark(in_all=True),
    packages=("minigrid",),
    held_out=True,
    make=lazily(f"{__name__}.adapter:BabyAIEnv"),
    suites=TaskSuites(
        expected={"agentboard": 112, "open": 112, "agentgym": 40},
        load_tasks=lazily(f"{__name__}.tasks:load_tasks"),
        generate=lazily(f"{__name__}.open.generator:generate"),
        forms=lazily(f"{__name__}.forms:forms"),
        published_forms=lazily(f"{__name__}.forms:published_forms"),
        open_version=OPEN_VERSION,
        few_tasks=FEW_STARTS,
    ),
    actions=Actions(ACTIONS, help_action="check", wording=WORDING),
    worker=WorkerNeeds(envs_per_worker=64, step_timeout=20.0, reset_timeout=60.0, cost=0.5),
)
