"""Define the environments. They are registered with gymnasium after both packages are imported, in any order.

import gymnasium env = gymnasium.make("evalharness.envs:evalharness/BabyAI-v0")
"""

from __future__ import annotations

import sys
from contextlib import suppress
from functools import cache
from importlib.metadata import entry_points

from evalharness.base.errors import UserError
from evalharness.envs.base import EnvSpec
from evalharness.envs.registration import once_imported, register

_loading = False


@cache
def specs() -> dict[str, EnvSpec]:
    """Return family -> installed environment, sorted. Other packages add environments by entry points."""
    global _loading
    by_family: dict[str, EnvSpec] = {}
    _loading = True
    try:
        for point in entry_points(group="evalharness.environments"):
            try:
                spec = point.load()
            except Exception as error:
                raise UserError(
                    f"the environment {point.name} ({point.value}) cannot be imported: {error!r}"
                ) from error
            if not isinstance(spec, EnvSpec):
                raise UserError(f"the environment {point.name} ({point.value}) is not an EnvSpec")
            if spec.family in by_family:
                raise UserError(
                    f"two installed environments have the family {spec.family!r}; one is {point.value}"
                )
            by_family[spec.family] = spec
    finally:
        _loading = False
    if "gymnasium" in sys.modules:
        register(by_family.values())
    return dict(sorted(by_family.items()))


def _gymnasium_is_there() -> None:
    if not _loading:
        # UserError: an environment's module is being imported now, and its SPEC does not exist yet. The next call of
        # `specs` registers it, or names the environment if its import fails.
        with suppress(UserError):
            register(specs().values())  # including those registered before


once_imported("gymnasium", _gymnasium_is_there)
