"""ALFWorld: household tasks in text (put, clean, heat, cool, examine in light, put two)."""

from __future__ import annotations

from evalharness.envs.alfworld.actions import ACTIONS
from evalharness.envs.alfworld.perturbations import WORDING
from evalharness.envs.base import Actions, EnvSpec, OwnBenchmark, StockEngine, TaskSuites, WorkerNeeds, lazily


def _place(action: str, observation: str) -> str | None:
    """Return the receptacle that a `go to` action names; None for any other action."""
    return action.removeprefix("go to ") if action.startswith("go to ") else None


SPEC = EnvSpec(
    family="alfworld",
    title="ALFWorld",
    gym_id="evalharness/ALFWorld-v0",
    own=OwnBenchmark(in_all=True, import_data=lazily(f"{__name__}.games:import_folder")),
    held_out=False,
    make=lazily(f"{__name__}.adapter:ALFWorldEnv"),
    suites=TaskSuites(
        expected={
            "agentboard": 134,
            "open": 134,
            "unwrapped": 134,
            "alfworld-seen": 140,
            "alfworld-unseen": 134,
            "alfworld-train": 3553,
        },
        training=frozenset({"alfworld-train"}),
        load_tasks=lazily(f"{__name__}.tasks:load_tasks"),
        generate=lazily(f"{__name__}.open.generator:generate"),
        forms=lazily(f"{__name__}.forms:forms"),
        published_forms=lazily(f"{__name__}.forms:published_forms"),
        evaluated_names=lazily(f"{__name__}.forms:evaluated_names"),
        open_version=2,
        own_words=lazily(f"{__name__}.tasks:make_unwrapped"),
    ),
    actions=Actions(ACTIONS, help_action="check", wording=WORDING),
    # Measured: a worker process needs 46 MB, each environment in it 1 MB more, and a step takes 0.5 ms.
    worker=WorkerNeeds(envs_per_worker=80, cost=0.5),
    place=_place,
    stock=StockEngine(
        lazily(f"{__name__}.stock:make"),
        packages=("textworld", "fast-downward-textworld"),
        worker=WorkerNeeds(envs_per_worker=4, cost=40.0),
    ),
)
