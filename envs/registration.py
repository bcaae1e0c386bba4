"""Register the environments with gymnasium, without importing gymnasium if it is not needed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from evalharness.envs.base import EnvSpec

if TYPE_CHECKING:
    from evalharness.envs.text_env import TextEnv
    from evalharness.envs.vector import TextVectorEnv


def register(specs: Iterable[EnvSpec]) -> None:
    import gymnasium

    for spec in specs:
        if spec.gym_id in gymnasium.registry:
            continue

        def make(*, data: Path | None = None, _spec: EnvSpec = spec, **_: Any) -> TextEnv:
            return _spec.make(data)

        def make_vector(
            *, num_envs: int, data: Path | None = None, _spec: EnvSpec = spec, **_: Any
        ) -> TextVectorEnv:
            from evalharness.envs.vector import TextVectorEnv

            return TextVectorEnv(_spec, num_envs, data)

        # The harness handles turn limits and the order of calls itself. gymnasium's checker would sample actions.
        gymnasium.register(
            spec.gym_id,
            entry_point=make,
            vector_entry_point=make_vector,  # type: ignore[arg-type]  # its type has positional num_envs only
            disable_env_checker=True,
            order_enforce=False,
        )


def once_imported(module: str, act: Callable[[], None]) -> None:
    """Call `act` after `module` is imported; call it now if it is already imported. This needs an import hook: this
    package is often imported before gymnasium; then `gymnasium.make("evalharness.envs:ID")` runs none of its code.
    Importing gymnasium here would delay every command by a third of a second."""
    if module in sys.modules:
        act()
    else:
        sys.meta_path.insert(0, _Afterwards(module, act))


class _Afterwards(MetaPathFinder):
    """An import hook: the other finders find the module, and `act` is called after the module's execution."""

    def __init__(self, module: str, act: Callable[[], None]) -> None:
        self.module = module
        self.act = act

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self.module:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(fullname)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def and_act(module: ModuleType) -> None:
            execute(module)
            self.act()

        spec.loader.exec_module = and_act  # type: ignore[method-assign]
        return spec
