"""A story as a map of the rooms walked."""

from __future__ import annotations

from evalharness.envs.base import TextEnv
from evalharness.envs.jericho.adapter import JerichoEnv
from evalharness.envs.picture import place_map


def picture(environment: TextEnv) -> str:
    assert isinstance(environment, JerichoEnv)
    return place_map(environment.rooms or ["start"])
