"""When nearly every reply is a format error, a person reads which one, why, and what to do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from made_runs import made_episode, make_task

from evalharness.protocol import react
from evalharness.records.episode import Turn
from evalharness.records.format_trouble import Replies

GOOD = made_episode(make_task("pddl", 0), turns=1).turns[0]


def turn(reply: str, *, truncated: bool = False) -> Turn:
    parsed = react.parse(reply, truncated=truncated)
    return replace(GOOD, reply=reply, action=parsed.action, format_errors=tuple(map(str, parsed.errors)))


def replies(*turns: Turn, **more: Any) -> Replies:
    counted = Replies(256, **more)
    for each in turns:
        counted.add(each)
    return counted


@pytest.mark.parametrize(
    ("reply", "truncated", "said"),
    [
        ("Thought: I look around and then I", True, "256 tokens: raise --max-tokens"),
        ("<think>I look around and then I", True, "reasoning"),
        ('{"thought": "I look", "action": "look"}', False, "replies contain JSON"),
        ('```json\n{"action": "look"}\n```', False, "replies contain JSON"),
        (
            '<tool_call>{"name": "look"}</tool_call>',
            False,
            "tool: --agent tools",
        ),
        ('{"name": "act", "arguments": {"command": "look"}}', False, "--agent tools"),
        ("", False, "are empty"),
        ("I would look around.", False, "'Action: ...'"),
        ("Thought: I look.", False, "without an action"),
        ("Thought: x\nAction: look\nObservation: a room", False, "observation itself"),
    ],
)
def test_the_cause_that_nearly_all_share_is_named_with_what_to_do(
    reply: str, truncated: bool, said: str
) -> None:
    counted = replies(*[turn(reply, truncated=truncated)] * 20)
    assert said in counted.describe_errors()


def test_nothing_is_said_of_a_model_that_keeps_to_the_form_most_of_the_time() -> None:
    bad, good = turn("nothing"), turn("Thought: x\nAction: look")
    assert replies(*[bad] * 17, *[good] * 3).describe_errors() == ""
    assert replies(*[bad] * 17, *[good] * 3).troubles() == {}
    assert replies(*[bad] * 18, *[good] * 2).describe_errors().startswith("18 of 20 replies ")
    assert replies().describe_errors() == ""


def test_several_causes_are_counted() -> None:
    said = replies(*[turn("")] * 7, *[turn("Hello.")] * 7, *[turn("Thought: x")] * 6).describe_errors()
    assert "(empty 7, no_action 7, thought_only 6)" in said


def test_a_model_that_is_to_call_a_tool_and_does_not() -> None:
    said = replies(
        *[replace(GOOD, action=None, format_errors=("thought_only",))] * 20, agent="tools"
    ).describe_errors()
    assert "no tool" in said


@pytest.mark.parametrize(
    ("agent", "kind", "action", "advice"),
    [
        ("react", "several_actions", "look", "only the first"),
        ("tales", "several_actions", None, "none is"),
        ("react", "no_action", None, "'Action: ...'"),
        ("agentgym", "no_action", None, "agent agentgym"),
    ],
)
def test_no_rule_of_another_agent_is_given(agent: str, kind: str, action: str | None, advice: str) -> None:
    bad = replace(GOOD, reply="two\nlines", action=action, format_errors=(kind,))
    assert advice in replies(*[bad] * 20, agent=agent).describe_errors()


def test_a_run_in_which_nearly_every_action_is_refused_shows_three_of_them() -> None:
    refused = [replace(GOOD, action=f"turn left{mark}", valid=False) for mark in ("!!", "??", "\u2029", "#")]
    counted = replies(*refused * 5, replace(GOOD, action="look", valid=True))
    assert counted.warning() == counted.troubles()["refused_actions"].said
    assert "refused 20 of 21 actions" in counted.warning()
    for action in ("'turn left!!'", "'turn left??'", r"'turn left\u2029'"):
        assert action in counted.warning()
    assert replies(*refused, *[replace(GOOD, valid=True)] * 6).warning() == ""
    assert replies(*refused).warning() == "", "too few to say"


def test_tokens_of_the_template_are_counted_as_a_fault_of_the_server() -> None:
    counted = replies(GOOD, turn("Action: look<|eot_id|>"), turn("Action: look</s>"))
    trouble = counted.troubles()["template_tokens"]
    assert (trouble.turns, trouble.errors, trouble.causes) == (3, 2, {"<|eot_id|>": 1, "</s>": 1})
    assert "server" in counted.warning()
    assert counted.errors == 0
