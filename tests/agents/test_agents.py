"""The agents that ship: their promises, and what each of them is for."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from evalharness.agents.base import Agent, EpisodeStart, Said, TrialEnd
from evalharness.agents.react import ActAgent
from evalharness.agents.reflexion import ReflexionAgent, ReflexionOptions
from evalharness.agents.registry import OURS, agent_named
from evalharness.agents.summary import SummaryAgent, SummaryOptions
from evalharness.agents.window import WindowAgent, WindowOptions
from evalharness.base.errors import UserError
from evalharness.checks.agents import _SPEC, PROMPT, Replies, Rooms, check_agent
from evalharness.envs.base import Task
from evalharness.envs.surface import ActionSurface
from evalharness.play.loop import play
from evalharness.protocol.perturb import PlayedSurface

OPTIONS: dict[str, list[Any]] = {
    "window": [WindowOptions(), WindowOptions(history=0), WindowOptions(history=3, list_actions=True)],
    "summary": [SummaryOptions(every=1, keep=1), SummaryOptions(every=3)],
    "reflexion": [ReflexionOptions(trials=1), ReflexionOptions(trials=3)],
}


@pytest.mark.parametrize("name", [name for name in OURS if name != "external"])
def test_every_agent_keeps_the_promises_of_agents(name: str) -> None:
    check_agent(agent_named(name).kind, OPTIONS.get(name))


def start(agent: Agent, **more: Any) -> Agent:
    actions = ActionSurface({"look": "look"})
    agent.start(EpisodeStart("t", "rooms", "walk", "reach it", "You are here.", 9, PROMPT, actions, **more))
    return agent


def test_act_takes_a_bare_line_for_an_action_and_asks_for_no_thought() -> None:
    agent = start(ActAgent())
    assert "Thought" not in str(agent.request().messages)
    for text in ("go east", "Action: go east", "\n go east \nbecause"):
        parsed = agent.read(Said(text))
        assert parsed is not None
        assert (parsed.action, parsed.errors) == ("go east", ())


def test_window_shows_the_last_pairs_and_nothing_before_them() -> None:
    agent = start(WindowAgent(WindowOptions(history=2, list_actions=True)), valid_actions=("look", "wait"))
    for number in range(4):
        agent.read(Said(f"<think>hm</think><action>go {number}</action>"))
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
        agent.read(Said(f"<action>go {number}</action>"))
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
    parsed = start(WindowAgent()).read(Said(reply))
    assert parsed is not None
    assert (parsed.action, tuple(map(str, parsed.errors))) == (action, errors)


def test_summary_folds_older_turns_into_notes_that_the_model_writes() -> None:
    agent = start(SummaryAgent(SummaryOptions(every=2, keep=1)))
    for number in range(3):
        assert agent.request().purpose == "act"
        agent.read(Said(f"Thought: t\nAction: go {number}"))
        agent.observe(f"Room {number}.")
    asked = agent.request()
    assert asked.purpose == "summarise"
    assert agent.read(Said("<think>hm</think>Went to room 2.")) is None
    messages = agent.request().messages
    assert "Your notes on the turns since:\nWent to room 2." in messages[1]["content"]
    assert "go 0" not in str(messages)
    assert "go 2" in str(messages)
    assert len(messages) == 4


def test_reflexion_begins_again_with_its_notes_until_it_succeeds() -> None:
    says = ["Action: look", "Action: look", "I looked. I will go east.", "Action: go east", "Action: go east"]
    player = Replies(says)
    task = Task("rooms/open/000", "rooms", "open", 0, "reach the last room", "easy", "walk")
    agent = ReflexionAgent(ReflexionOptions(trials=3))
    surface = PlayedSurface(_SPEC)
    playing = play(task, Rooms(), lambda e: player, prompt=PROMPT, surface=surface, agent=agent, max_turns=2)
    episode = asyncio.run(playing)
    assert episode.success
    [first] = episode.earlier
    assert (first.success, first.ended_by, len(first.turns)) == (False, "turn_limit", 2)
    [reflection] = first.further
    assert (reflection.purpose, reflection.reply) == ("reflect", "I looked. I will go east.")
    assert "1. I looked. I will go east." in player.sent[3]
    assert sum(1 for _ in episode.model_calls) == 5


def test_reflexion_learns_only_that_a_trial_failed() -> None:
    agent = ReflexionAgent(ReflexionOptions(trials=2))
    start(agent)
    agent.read(Said("Action: look"))
    agent.observe("Nothing.")
    asked = agent.reflect(TrialEnd(success=False, progress=0.4321, ended_by="turn_limit"))
    assert asked is not None
    assert "0.43" not in str(asked.messages)
    assert agent.reflect(TrialEnd(success=True, progress=1.0, ended_by="success")) is None


def test_an_agent_or_option_that_there_is_not_is_named_with_what_there_is() -> None:
    with pytest.raises(UserError, match=r"no such agent.*did you mean 'window'.*there are react, tools, act"):
        agent_named("windw")
    with pytest.raises(UserError, match=r"has no option 'histry'.*history"):
        agent_named("window", {"histry": "2"})
    with pytest.raises(UserError, match="history=-1"):
        agent_named("window", {"history": "-1"})
