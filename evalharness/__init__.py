"""Evaluation harness for LLM agents in text environments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evalharness.base.version import __version__

if TYPE_CHECKING:
    from evalharness.base.errors import EvalharnessError, InfrastructureError, UserError
    from evalharness.runs.api import Run, compare, leaderboard, load_run, run

__all__ = [
    "EvalharnessError",
    "InfrastructureError",
    "Run",
    "UserError",
    "__version__",
    "compare",
    "leaderboard",
    "load_run",
    "run",
]


def __getattr__(name: str) -> Any:
    # Import a module when a name of it is first used, so that `import evalharness` and worker processes start fast.
    if name in ("EvalharnessError", "InfrastructureError", "UserError"):
        from evalharness.base import errors

        return getattr(errors, name)
    if name in __all__:
        from evalharness.runs import api

        return getattr(api, name)
    raise AttributeError(f"module 'evalharness' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
