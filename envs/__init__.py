"""The environments. gymnasium knows each of them once this package and gymnasium are imported, in either order.

import gymnasium
env = gymnasium.make("evalharness.envs:evalharness/BabyAI-v0")
"""

from __future__ import annotations

import sys
from contextlib import suppress
from functools import cache
from importlib.metadata import entry_points

from evalharness.envs.base import EnvSpec
from evalharness.envs.registration import once_imported, register

_loading = False


@cache
def specs() -> dict[str, EnvSpec]:
    """Every installed environment by family name, sorted; third-party packages join by entry point."""
    global _loading
    found: dict[str, EnvSpec] = {}
    _loading = True
    try:
        for point in entry_points(group="evalharness.environments"):
            spec = point.load()
            if not isinstance(spec, EnvSpec):
                raise TypeError(f"entry point {point.value!r} is not an EnvSpec")
            found[spec.family] = spec
    finally:
        _loading = False
    if "gymnasium" in sys.modules:
        register(found.values())
    return dict(sorted(found.items()))


def _gymnasium_is_there() -> None:
    if not _loading:
        # AttributeError: an environment's own module has just imported it, and its SPEC is not there yet. The next
        # call of `specs` registers, as where they are being loaded.
        with suppress(AttributeError):
            register(specs().values())  # those that are known already, too


once_imported("gymnasium", _gymnasium_is_there)
