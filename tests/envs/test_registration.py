"""gymnasium knows the environments, whichever of the two packages is imported first."""

from __future__ import annotations

import subprocess
import sys

import pytest

_MAKE = "print(type(gymnasium.make('envs:evalharness/BabyAI-v0').unwrapped).__name__)"


@pytest.mark.parametrize("imports", ["import gymnasium, envs", "import envs, gymnasium", "import gymnasium"])
def test_an_environment_is_made_by_name(imports: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"{imports}; {_MAKE}"], capture_output=True, text=True, check=False
    )
    assert done.stdout == "BabyAIEnv\n", done.stderr


def test_knowing_the_environments_takes_no_gymnasium() -> None:
    script = "import sys, envs; envs.specs(); print([m for m in ('gymnasium', 'numpy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
