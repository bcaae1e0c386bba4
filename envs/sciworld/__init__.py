"""ScienceWorld: elementary science experiments in a simulated school."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from envs.base import EnvSpec, Suite, Task
from envs.sciworld.actions import ACTIONS
from envs.sciworld.kinds import FAMILY, OPEN_VERSION
from envs.sciworld.perturbations import WORDING

if TYPE_CHECKING:
    from envs.base import TextEnv


def _load_tasks(suite: Suite, data: Path | None, seed: int) -> list[Task]:
    from envs.sciworld.tasks import load_tasks

    return load_tasks(suite, data, seed)


def _generate(seed: int) -> Iterable[Task]:
    from envs.sciworld.generator import generate

    return generate(seed)


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
    short_title="SciW",
    gym_id="evalharness/ScienceWorld-v0",
    expected={"agentboard": 90, "open": 90},
    packages=("scienceworld",),
    held_out=True,
    load_tasks=_load_tasks,
    make=_make,
    generate=_generate,
    open_version=OPEN_VERSION,
    actions=ACTIONS,
    help_action="check",
    wording=WORDING,
    envs_per_worker=24,
    cost=6.0,
    place=_place,
)
