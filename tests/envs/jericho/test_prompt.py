"""The prompt's worked example is what a real game answers, and is short."""

from __future__ import annotations

from pathlib import Path

import evalharness.envs.jericho
from evalharness.envs import specs
from evalharness.envs.jericho.actions import ACTIONS, cut_action
from evalharness.envs.jericho.interpreter import Interpreter
from evalharness.envs.jericho.observation import clean
from evalharness.envs.surface import ActionSurface
from evalharness.protocol.prompt import load_prompt

SPEC = specs()["jericho"]
STORY = Path(evalharness.envs.jericho.__file__).parent / "open" / "stories" / "example.z5"


def test_the_example_is_played_by_the_real_game() -> None:
    prompt = load_prompt(SPEC)
    assert prompt.example is not None
    game = Interpreter(STORY, seed=1)
    assert clean(game.opening).strip() == prompt.example.observation
    for step in prompt.example.steps:
        assert clean(game.send(cut_action(step.action))).strip() == step.observation, step.action


def test_the_example_is_worded_by_the_table_of_commands() -> None:
    prompt = load_prompt(SPEC)
    assert prompt.example is not None
    surface = ActionSurface(ACTIONS)
    for step in prompt.example.steps:
        assert surface.parse(step.action) is not None or step.action == "look under barrel"


def test_the_fixed_part_stays_under_1200_tokens() -> None:
    """At four characters a token."""
    prompt = load_prompt(SPEC)
    surface = ActionSurface(ACTIONS)
    messages = prompt.messages(surface, "", "")
    assert sum(len(message["content"]) for message in messages) / 4 < 1200
