"""The environments. gymnasium knows each of them once this package and gymnasium are imported, in either order.

import gymnasium
env = gymnasium.make("envs:evalharness/BabyAI-v0")
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points

from envs.base import EnvSpec
from envs.registration import once_imported


@cache
def specs() -> dict[str, EnvSpec]:
    """Every installed environment by family name, sorted; third-party packages join by entry point."""
    found: dict[str, EnvSpec] = {}
    for point in entry_points(group="evalharness.environments"):
        spec = point.load()
        if not isinstance(spec, EnvSpec):
            raise TypeError(f"entry point {point.value!r} is not an EnvSpec")
        found[spec.family] = spec
    return dict(sorted(found.items()))


def _register() -> None:
    from envs.registration import register

    register(specs().values())


once_imported("gymnasium", _register)
