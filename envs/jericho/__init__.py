"""Define Jericho: interactive fiction with the 20 games of AgentBoard, and with 20 stories of ours."""

from __future__ import annotations

from evalharness.envs.base import Actions, EnvSpec, OwnBenchmark, TaskSuites, WorkerNeeds, lazily
from evalharness.envs.jericho.actions import ACTIONS
from evalharness.envs.jericho.perturbations import WORDING

SPEC = EnvSpec(
    family="jericho",
    title="Jericho",
    gym_id="evalharness/Jericho-v0",
    own=OwnBenchmark(in_all=True),
    packages=("jericho",),
    held_out=True,
    make=lazily(f"{__name__}.adapter:JerichoEnv"),
    suites=TaskSuites(
        expected={"agentboard": 20, "open": 20, "unwrapped": 20},
        load_tasks=lazily(f"{__name__}.tasks:load_tasks"),
        generate=lazily(f"{__name__}.open.generator:generate"),
        forms=lazily(f"{__name__}.forms:forms"),
        open_version=2,
    ),
    actions=Actions(ACTIONS, help_action="check", wording=WORDING),
    worker=WorkerNeeds(envs_per_worker=10, cost=0.5),
)
