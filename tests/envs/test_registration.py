"""gymnasium knows the environments, whichever of the two packages is imported first."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from command_line import EXAMPLE

_MAKE = "print(type(gymnasium.make('evalharness.envs:evalharness/BabyAI-v0').unwrapped).__name__)"


@pytest.mark.parametrize(
    "imports",
    [
        "import gymnasium, evalharness.envs",
        "import evalharness.envs, gymnasium",
        "import evalharness.envs; evalharness.envs.specs(); import gymnasium",
        "import gymnasium",
    ],
)
def test_an_environment_is_made_by_name(imports: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"{imports}; {_MAKE}"], capture_output=True, text=True, check=False
    )
    assert done.stdout == "BabyAIEnv\n", done.stderr


def test_knowing_the_environments_takes_no_gymnasium() -> None:
    script = (
        "import sys; from evalharness.envs import specs; specs(); "
        "print([m for m in ('gymnasium', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    "first",
    ["specs()", "from evalharness.envs.base import TextEnv", "import gymnasium", "import compass"],
)
def test_an_environment_from_outside_may_import_the_class_with_its_spec(first: str) -> None:
    """Which imports gymnasium in the middle of the list of environments."""
    script = (
        f"from evalharness.envs import specs; {first}; import gymnasium; "
        "print('compass' in specs(), specs()['compass'].gym_id in gymnasium.registry)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(EXAMPLE), *sys.path])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "True True\n", done.stderr
