"""Whatever an environment is asked before its first episode, the answer is one error that says what to do."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from evalharness.envs import specs
from evalharness.envs.base import NoEpisodeError, TextEnv

ASKED: dict[str, Callable[[TextEnv], object]] = {
    "goal": lambda env: env.goal,
    "step": lambda env: env.step("look"),
    "help": lambda env: env.step("check valid actions"),
    "valid_actions": lambda env: env.valid_actions(),
    "oracle": lambda env: env.oracle(),
    "reference_plans": lambda env: env.reference_plans(),
}


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("family", specs())
def test_an_environment_without_an_episode_says_so(family: str, asked: str) -> None:
    env = specs()[family].make(None)
    try:
        with pytest.raises(NoEpisodeError, match=r"reset\(options="):
            ASKED[asked](env)
    finally:
        env.close()
