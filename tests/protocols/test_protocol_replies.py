"""How other groups' agents read replies, with the oddities of the originals."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from agent_contract import PROMPT

from evalharness.agents.base import Agent, EpisodeStart, ModelReply
from evalharness.agents.guard import Guarded
from evalharness.agents.registry import find_agent
from evalharness.base.errors import UserError
from evalharness.envs.surface import ActionSurface
from evalharness.protocol.react import FormatError
from evalharness.protocols.agentgym import NoCallError, parse_code_call, parse_json_call
from evalharness.records.format_trouble import Replies


def start(agent: Agent, **more: Any) -> Agent:
    known = {"goal": "reach it", "observation": "You are here.", **more}
    agent.start(
        EpisodeStart(
            "t", "rooms", "walk", known["goal"], known["observation"], 9, PROMPT, ActionSurface({"look": "look"}),
            known.get("valid_actions"),
        )
    )  # fmt: skip
    return agent


def read(name: str, text: str, **options: Any) -> tuple[str | None, tuple[str, ...]]:
    parsed = start(find_agent(name, options).make()).read(ModelReply(text))
    assert parsed is not None
    return parsed.action, tuple(map(str, parsed.errors))


@pytest.mark.parametrize(
    ("reply", "action", "valid"),
    [
        ("<think>t</think><action> Go To Desk 1 </action>", "go to desk 1", True),
        ("<action>look</action>", "look", False),  # no thought
        ("I will go to the nearest desk, which is desk 1", "e nearest desk, which is desk 1"[-30:], False),
        ("<think>t</think></action><action>look", "", True),  # the other way round
        ("<think>\u6211</think><action>look</action>", "look", False),
        ("", "", False),
        ("<think>t</think><action>a</action><action>b</action>", "a", True),
    ],
)
def test_verl_agent_carries_out_what_it_calls_invalid(reply: str, action: str, valid: bool) -> None:
    assert read("verl-agent", reply) == (action, () if valid else ("protocol_invalid",))


def test_verl_agent_shows_what_was_read_and_never_what_was_said() -> None:
    agent = start(find_agent("verl-agent", {"history": 1}).make(), valid_actions=("look", "help"))
    agent.read(ModelReply("<think>secret</think><action>LOOK</action>"))
    agent.observe("A room.", ("wait",))
    [message] = agent.request().messages
    assert "[Observation 1: 'You are here.', Action 1: 'look']" in message["content"]
    assert "secret" not in message["content"]
    assert "['wait']" in message["content"]


@pytest.mark.parametrize(
    ("reply", "action"),
    [
        ("Thought: hm\nAction: look\nObservation: x", "look"),
        ("look", "look"),
        ("'look'", "look"),
        ("The next action:\n\nlook", "look"),
        ("", ""),
        ("My action is to look", "look"),
    ],
)
def test_agentboard_reads_an_action_out_of_anything(reply: str, action: str) -> None:
    assert read("agentboard", reply) == (action, ())


def test_agentboard_drops_single_entries() -> None:
    agent = start(find_agent("agentboard").make())
    agent.read(ModelReply("look"))
    agent.observe("A room.")
    assert agent.shorten() == 1
    content = agent.request().messages[-1]["content"]
    assert "You are here." not in content
    assert content.endswith("Action: look\nObservation: A room.\nAction: ")


def test_agentgym_takes_all_after_the_last_label() -> None:
    assert read("agentgym", "Action: a\nAction: look\nObservation: b") == ("look\nObservation: b", ())
    assert read("agentgym", "look") == ("", ())
    assert read("agentgym", "Action: look</s>") == ("loo", ())
    assert read("agentgym", "Action: [look], 1!", reading="line") == ("look, 1", ())
    assert read("agentgym", "Action: a\nAction: b", reading="line") == (None, ("several_actions",))


def test_tales_refuses_two_lines_and_forgets_its_thoughts() -> None:
    assert read("tales", "look\nwait") == (None, ("several_actions",))
    assert read("tales", " look ") == ("look", ())
    agent = start(find_agent("tales", {"think": True}).make())
    assert (agent.request().purpose, agent.read(ModelReply("a plan"))) == ("think", None)
    assert "a plan" in str(agent.request().messages)
    assert agent.read(ModelReply("look")) is not None
    agent.observe("A room.")
    assert "a plan" not in str(agent.request().messages)


def test_every_format_error_has_advice() -> None:
    """A run whose replies are all of one kind ends with a line about it, and not with a traceback."""
    for kind in (*FormatError, "several_refused"):
        replies = Replies(9, errors=20, turns=20, causes=Counter({str(kind): 20}))
        assert replies.describe_errors().partition(": ")[2]


FUNCTIONS = {
    "goto": {"words": "go to", "joint": "", "arguments": ["place"], "parameters": {"place": True}},
    "use": {"words": "use", "joint": "on", "arguments": ["tool", "on"], "parameters": {"tool": True, "on": False}},
    "wait": {"words": "wait", "joint": "", "arguments": ["time"], "parameters": {"time": True}},
    "choose": {"words": "choose", "joint": "", "arguments": ["one"], "parameters": {"one": True}},
    "look": {"words": "look around", "joint": "", "arguments": [], "parameters": {}},
}  # fmt: skip


@pytest.mark.parametrize(
    ("code", "action"),
    [
        ("```python\n# I go\ngoto('hall')\n```", "go to hall"),
        ("goto(place='hall')", "go to hall"),
        ("use('axe')", "use axe"),
        ("use('axe', on='tree')", "use axe on tree"),
        ("wait('1')", "wait1"),
        ("choose(0)", "0"),
        ("look()", "look around"),
        ("look(1)", None),
        ("goto('hall', place='hall')", None),
        ("goto(*['hall'])", None),
        ("goto(**{'place': 'hall'})", None),
        ("goto('a' + 'b')", None),
        ("goto(look())", None),
        ("__import__('os').system('touch /tmp/never')", None),
        ("goto(open('/etc/passwd').read())", None),
        ("goto('hall'); look()", None),
        ("(lambda: 1)()", None),
        ("", None),
        ("goto(" + "-" * 9_000 + "1)", None),
        ("goto(" + "[" * 9_000, None),
        ("goto('" + "a" * 20_000 + "')", None),
        ("goto('\\d')", "go to \\d"),
        ("goto('\0')", None),
    ],
)  # fmt: skip
def test_python_of_a_model_is_read_and_never_run(code: str, action: str | None) -> None:
    try:
        assert parse_code_call(code, FUNCTIONS)[1] == action
    except NoCallError:
        assert action is None


@pytest.mark.parametrize(
    ("call", "action"),
    [
        ({"thought": "t", "function_name": "use", "arguments": {"tool": "axe", "on": "tree"}}, "use axe on tree"),
        ({"thought": "t", "function_name": " goto ", "arguments": {"place": 3}}, "go to 3"),
        ({"thought": "t", "function_name": "goto", "arguments": {}}, "go to"),
        ({"thought": "t", "function_name": "goto", "arguments": {"a": 1, "place": 2}}, None),
        ({"thought": "t", "function_name": "goto", "arguments": ["hall"]}, None),
        ({"thought": "t", "function_name": "goto", "arguments": None}, None),
        ({"thought": "t", "function_name": ["goto"], "arguments": {}}, None),
        ({"thought": "t", "function_name": "fly", "arguments": {}}, None),
        ({"function_name": "look", "arguments": {}}, None),
    ],
)  # fmt: skip
def test_a_call_in_json_is_worded_or_refused(call: dict[str, Any], action: str | None) -> None:
    for text in (json.dumps(call), f"Here it is:\n```json\n{json.dumps(call)}\n```"):
        try:
            assert parse_json_call(text, FUNCTIONS, strict=False)[1] == action
        except NoCallError:
            assert action is None
    with pytest.raises(NoCallError):
        parse_json_call("{" * 100_000, FUNCTIONS, strict=True)


def test_a_format_whose_texts_are_not_there_is_named() -> None:
    agent = Guarded(find_agent("agentgym", {"format": "json"}).make())
    with pytest.raises(UserError, match="evalharness data protocols import agentgym"):
        agent.start(EpisodeStart("t", "rooms", "walk", "g", "o", 9, PROMPT, ActionSurface({})))
