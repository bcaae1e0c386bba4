"""Define ScienceWorld: elementary science experiments in a simulated school."""

from __future__ import annotations

import re

from evalharness.envs.base import Actions, EnvSpec, OwnBenchmark, TaskSuites, WorkerNeeds, lazily
from evalharness.envs.sciworld.actions import ACTIONS
from evalharness.envs.sciworld.kinds import AGENTGYM, EXPECTED, FAMILY, FEW_VARIATIONS, OPEN_VERSION
from evalharness.envs.sciworld.perturbations import WORDING

_PLACE = re.compile(
    r"(?:This (?:room|outside location|location) is called|You (?:move|teleport) to) the ([\w ]+?)[.\n]"
)


def place(action: str, observation: str) -> str | None:
    """Return the name of the agent's room; None if the observation does not contain it."""
    match = _PLACE.search(observation + "\n")
    return match[1] if match else None


SPEC = EnvSpec(
    family=FAMILY,
    title="ScienceWorld",
    short_title="SciW",
    gym_id="evalharness/ScienceWorld-v0",
    own=OwnBenchmark(in_all=True),
    packages=("scienceworld",),
    held_out=True,
    make=lazily(f"{__name__}.adapter:ScienceWorldEnv"),
    suites=TaskSuites(
        expected={"agentboard": 90, "open": 90, **EXPECTED},
        load_tasks=lazily(f"{__name__}.tasks:load_tasks"),
        generate=lazily(f"{__name__}.open.generator:generate"),
        generate_kinds=lazily(f"{__name__}.open.generator:generate"),
        whole=frozenset({AGENTGYM}),
        forms=lazily(f"{__name__}.forms:forms"),
        published_forms=lazily(f"{__name__}.forms:published_forms"),
        open_version=OPEN_VERSION,
        few_tasks=FEW_VARIATIONS,
    ),
    actions=Actions(ACTIONS, help_action="check", wording=WORDING),
    worker=WorkerNeeds(envs_per_worker=64, cost=6.0),
    place=place,
)
