"""The agents that ship: their promises, and what each of them is for."""

from __future__ import annotations

from typing import Any

import pytest
from agent_contract import PROMPT, check_agent

from evalharness.agents.base import Agent, EpisodeStart, ModelReply
from evalharness.agents.react import ActAgent
from evalharness.agents.registry import OURS, find_agent
from evalharness.agents.window import WindowAgent, WindowOptions
from evalharness.base.errors import UserError
from evalharness.envs.surface import ActionSurface

OPTIONS: dict[str, list[Any]] = {
    "window": [WindowOptions(), WindowOptions(history=0), WindowOptions(history=3, list_actions=True)],
}


@pytest.mark.parametrize("name", [name for name in OURS if name != "external"])
def test_every_agent_keeps_the_promises_of_agents(name: str) -> None:
    check_agent(find_agent(name).kind, OPTIONS.get(name))


def start(agent: Agent, **more: Any) -> Agent:
    actions = ActionSurface({"look": "look"})
    agent.start(EpisodeStart("t", "rooms", "walk", "reach it", "You are here.", 9, PROMPT, actions, **more))
    return agent


def test_act_takes_a_bare_line_for_an_action_and_asks_for_no_thought() -> None:
    agent = start(ActAgent())
    assert "Thought" not in str(agent.request().messages)
    for text in ("go east", "Action: go east", "\n go east \nbecause"):
        parsed = agent.read(ModelReply(text))
        assert parsed is not None
        assert (parsed.action, parsed.errors) == ("go east", ())


def test_window_shows_the_last_pairs_and_nothing_before_them() -> None:
    agent = start(WindowAgent(WindowOptions(history=2, list_actions=True)), valid_actions=("look", "wait"))
    for number in range(4):
        agent.read(ModelReply(f"<think>hm</think><action>go {number}</action>"))
        agent.observe(f"Room {number}.", ("wait",))
    [system, user] = agent.request().messages
    text = user["content"]
    assert system["role"] == "system"
    assert [f"Action {n}: go {n - 1}" in text for n in (1, 2, 3, 4)] == [False, False, True, True]
    assert "now: Room 3." in text
    assert text.count("wait") == 1
    assert "You are here." not in text


def test_window_shows_all_turns_while_there_are_fewer_than_it_may_show() -> None:
    agent = start(WindowAgent(WindowOptions(history=4)))
    for number in range(3):
        agent.read(ModelReply(f"<action>go {number}</action>"))
        agent.observe(f"Room {number}.")
    text = agent.request().messages[-1]["content"]
    assert [f"Action {n}: go {n - 1}" in text for n in (1, 2, 3)] == [True, True, True]


@pytest.mark.parametrize(
    ("reply", "action", "errors"),
    [
        ("<think>a</think><action> go  east </action>", "go east", ()),
        ("<action>look", "look", ()),  # the stop sequence took the end
        ("<action>a</action><action>b</action>", "a", ("several_actions",)),
        ("go east", None, ("no_action",)),
        ("<think>only</think>", None, ("thought_only",)),
        ("", None, ("empty",)),
    ],
)
def test_window_reads_the_action_in_tags(reply: str, action: str | None, errors: tuple[str, ...]) -> None:
    parsed = start(WindowAgent()).read(ModelReply(reply))
    assert parsed is not None
    assert (parsed.action, tuple(map(str, parsed.errors))) == (action, errors)


def test_an_agent_or_option_that_there_is_not_is_named_with_what_there_is() -> None:
    with pytest.raises(UserError, match=r"no such agent.*did you mean 'window'.*evalharness data agents"):
        find_agent("windw")
    with pytest.raises(UserError, match=r"'histry'.*history"):
        find_agent("window", {"histry": "2"})
    with pytest.raises(UserError, match="history=-1"):
        find_agent("window", {"history": "-1"})
