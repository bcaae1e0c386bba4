"""ScienceWorld: elementary science experiments in a simulated school."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from evalharness.envs.base import Actions, EnvSpec, Suite, Task, TaskSuites, WorkerNeeds
from evalharness.envs.sciworld.actions import ACTIONS
from evalharness.envs.sciworld.kinds import FAMILY, FEW_VARIATIONS, OPEN_VERSION
from evalharness.envs.sciworld.perturbations import WORDING
from evalharness.envs.sciworld.unwrapped import AGENTGYM, EXPECTED

if TYPE_CHECKING:
    from evalharness.envs.base import TextEnv
    from evalharness.envs.teaching import Teaching


def _load_tasks(suite: Suite, data: Path | None, seed: int) -> list[Task]:
    from evalharness.envs.sciworld.tasks import load_tasks

    return load_tasks(suite, data, seed)


def _generate_kinds(seed: int, kinds: Collection[str]) -> Iterable[Task]:
    from evalharness.envs.sciworld.generator import generate

    return generate(seed, kinds)


def _generate(seed: int) -> Iterable[Task]:
    from evalharness.envs.sciworld.generator import generate

    return generate(seed)


def _teaching() -> Teaching:
    from evalharness.envs.sciworld.teaching import TEACHING

    return TEACHING


def _make(data: Path | None) -> TextEnv:
    from evalharness.envs.sciworld.adapter import ScienceWorldEnv

    return ScienceWorldEnv(data=data)


_PLACE = re.compile(
    r"(?:This (?:room|outside location|location) is called|You (?:move|teleport) to) the ([\w ]+?)[.\n]"
)


def _place(action: str, observation: str) -> str | None:
    """The room that an observation names as the agent's."""
    match = _PLACE.search(observation + "\n")
    return match[1] if match else None


SPEC = EnvSpec(
    family=FAMILY,
    title="ScienceWorld",
    short_title="SciW",
    gym_id="evalharness/ScienceWorld-v0",
    packages=("scienceworld",),
    held_out=True,
    make=_make,
    suites=TaskSuites(
        expected={"agentboard": 90, "open": 90, **EXPECTED},
        load_tasks=_load_tasks,
        generate=_generate,
        generate_kinds=_generate_kinds,
        whole=frozenset({AGENTGYM}),
        open_version=OPEN_VERSION,
        few_tasks=FEW_VARIATIONS,
    ),
    actions=Actions(ACTIONS, help_action="check", wording=WORDING),
    worker=WorkerNeeds(envs_per_worker=24, cost=6.0),
    teaching=_teaching,
    place=_place,
)
