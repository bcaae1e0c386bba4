"""ScienceWorld: elementary science experiments in a simulated school."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from envs.base import EnvSpec, Task, TextEnv
from envs.sciworld.actions import ACTIONS
from envs.sciworld.kinds import FAMILY, OPEN_VERSION
from envs.sciworld.perturbations import WORDING
from envs.sciworld.tasks import load_tasks


def _generate(seed: int) -> Iterable[Task]:
    from envs.sciworld.open_suite import generate_open

    return generate_open(seed)


def _make(data: Path | None) -> TextEnv:
    from envs.sciworld.adapter import ScienceWorldEnv

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
    gym_id="evalharness/ScienceWorld-v0",
    expected={"agentboard": 90, "open": 90},
    held_out=True,
    load_tasks=load_tasks,
    make=_make,
    generate=_generate,
    open_version=OPEN_VERSION,
    actions=ACTIONS,
    wording=WORDING,
    envs_per_worker=16,
    cost=6.0,
    place=_place,
)
