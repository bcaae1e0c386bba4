"""Define the four planning domains of AgentBoard: gripper, blockworld, barman and tyreworld."""

from __future__ import annotations

from evalharness.envs.base import Actions, EnvSpec, OwnBenchmark, StockEngine, TaskSuites, WorkerNeeds, lazily
from evalharness.envs.pddl.actions import ACTIONS
from evalharness.envs.pddl.perturbations import WORDING

SPEC = EnvSpec(
    family="pddl",
    title="PDDL",
    gym_id="evalharness/PDDL-v0",
    own=OwnBenchmark(in_all=True),
    held_out=True,
    make=lazily(f"{__name__}.adapter:PddlTextEnv"),
    suites=TaskSuites(
        expected={"agentboard": 60, "open": 60},
        load_tasks=lazily(f"{__name__}.tasks:load_tasks"),
        generate=lazily(f"{__name__}.open.generator:generate"),
        forms=lazily(f"{__name__}.open.form:forms"),
        published_forms=lazily(f"{__name__}.open.generator:list_excluded_forms"),
        open_version=2,
    ),
    actions=Actions(ACTIONS, help_action="check", wording=WORDING),
    worker=WorkerNeeds(envs_per_worker=32, cost=0.1),
    stock=StockEngine(
        lazily(f"{__name__}.stock:make"), ("pddlgym",), WorkerNeeds(envs_per_worker=4, cost=10.0)
    ),
)
