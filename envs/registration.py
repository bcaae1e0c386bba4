"""The environments by their names in gymnasium, without importing it for who needs none."""

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

        # Turn limits and the order of calls are the harness's business; the checker would probe spaces.
        gymnasium.register(
            spec.gym_id,
            entry_point=make,
            vector_entry_point=make_vector,  # type: ignore[arg-type]  # its type has positional num_envs only
            disable_env_checker=True,
            order_enforce=False,
        )


def once_imported(module: str, act: Callable[[], None]) -> None:
    """Call `act` now where `module` is imported, else as soon as it has been. A hook, since sorted imports have this
    package before gymnasium, and `gymnasium.make("evalharness.envs:ID")` then runs nothing of it; importing gymnasium
    here would cost every command a third of a second."""
    if module in sys.modules:
        act()
    else:
        sys.meta_path.insert(0, _Afterwards(module, act))


class _Afterwards(MetaPathFinder):
    """Finds nothing itself: lets the others find the module, and acts when it has been executed."""

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
