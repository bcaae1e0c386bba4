"""The worked examples of the PDDL prompt are real: played again, they give the same observations."""

from __future__ import annotations

import pytest
from pddl_worlds import EXAMPLES, task

from evalharness.envs.pddl import SPEC
from evalharness.envs.pddl.problem import DOMAINS
from evalharness.envs.surface import ActionSurface
from evalharness.protocol.prompt import load_prompt

CHARACTERS_PER_TOKEN = 4


@pytest.mark.parametrize("kind", DOMAINS)
def test_the_example_is_what_the_world_answers(kind: str) -> None:
    prompt = load_prompt(SPEC).for_kind(kind)
    surface = ActionSurface(SPEC.actions.templates)
    assert prompt.example is not None
    env = SPEC.make(None)
    observation, _ = env.reset(options={"task": task(kind, EXAMPLES[kind])})
    assert (prompt.example.goal, prompt.example.observation) == (env.goal.strip(), observation.strip())
    assert 4 <= len(prompt.example.steps) <= 8
    for step in prompt.example.steps:
        parsed = surface.parse(step.action)
        assert parsed is not None
        assert surface.render(parsed) == step.action
        observation, _, done, _, _ = env.step(step.action)
        assert step.observation == observation.strip()
    assert done


@pytest.mark.parametrize("kind", DOMAINS)
def test_a_domain_lists_its_own_actions_and_stays_short(kind: str) -> None:
    prompt = load_prompt(SPEC).for_kind(kind)
    surface = ActionSurface(SPEC.actions.templates)
    env = SPEC.make(None)
    env.reset(options={"task": task(kind, EXAMPLES[kind])})
    assert prompt.actions is not None
    assert set(prompt.actions) - {"check", "look"} == env._world.operator_names  # type: ignore[attr-defined]
    assert "{actions}" in prompt.instruction
    messages = prompt.messages(surface, "", "")
    assert sum(len(message["content"]) for message in messages) < 1_300 * CHARACTERS_PER_TOKEN
