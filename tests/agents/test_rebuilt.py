"""What lies around an episode's turns: earlier trials, reflections, calls of a turn that was never finished."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from evalharness.agents.base import Agent, Request, Said, TrialEnd
from evalharness.agents.react import ReactAgent
from evalharness.agents.reflexion import ReflexionAgent, ReflexionOptions
from evalharness.agents.summary import SummaryAgent, SummaryOptions
from evalharness.checks.agents import _SPEC, PROMPT, Replies, Rooms
from evalharness.envs.base import Task
from evalharness.play.loop import play
from evalharness.protocol.perturb import PlayedSurface
from evalharness.protocol.prompt import Message
from evalharness.protocol.react import ParsedReply
from evalharness.records.episode import Episode, read_episode
from evalharness.records.rebuilt import NotRebuiltError, episode_start, rebuild

TASK = Task("rooms/open/000", "rooms", "open", 0, "reach the last room", "easy", "walk")


class Both(SummaryAgent):
    """Folds older turns into notes, and begins again with a question after a failure."""

    name = "both"
    trials = 0
    asking = False

    def reflect(self, end: TrialEnd) -> Request | None:
        self.trials += 1
        self.asking = not end.success and self.trials < 3
        asked: Message = {"role": "user", "content": "Why?"}
        return Request([asked], "reflect") if self.asking else None

    def read(self, said: Said) -> ParsedReply | None:
        if self.asking:
            self.asking = False
            return None
        return super().read(said)


class Tagged(ReactAgent):
    """Reads what stands before its own stop sequence, and only where that was reached."""

    name = "tagged"

    def request(self) -> Request:
        return Request(self.messages, stop=("</go>",))

    def parse(self, said: Said) -> ParsedReply:
        return ParsedReply("", said.text if said.stopped_by == "</go>" else None, "", ())


def played(agent: Agent, player: Replies) -> Episode:
    episode = asyncio.run(
        play(
            TASK,
            Rooms(),
            lambda world: player,
            prompt=PROMPT,
            surface=PlayedSurface(_SPEC),
            agent=agent,
            max_turns=4,
        )
    )
    return read_episode(json.dumps(episode.to_json()).encode())


def rebuilt(agent: Agent, episode: Episode) -> list[Any]:
    start = episode_start(episode, PROMPT, PlayedSurface(_SPEC).perturbed, 4, keep_thinking=False)
    return list(rebuild(agent, start, episode, compare=True))


@pytest.mark.parametrize("context", [None, *range(600, 3000, 150)])
def test_every_trial_is_made_again_however_full_the_context_was(context: int | None) -> None:
    options = SummaryOptions(every=1, keep=1)
    episode = played(
        Both(options), Replies(["Thought: t\nAction: look", "a note that is long " * 9], context)
    )
    assert len(rebuilt(Both(options), episode)) == len(episode.turns)


def test_the_calls_of_a_turn_that_was_never_finished_are_made_again() -> None:
    options = SummaryOptions(every=1, keep=1)
    looks = ["Thought: t\nAction: look"] * 2
    says = [*looks, "a note too long " * 99, "hm", *looks, "short", *looks]
    episode = played(Both(options), Replies(says, 1500))
    [trial, *_] = episode.earlier
    assert (trial.ended_by, [call.purpose for call in trial.further]) == (
        "context_full",
        ["summarise", "reflect"],
    )
    assert len(rebuilt(Both(options), episode)) == len(episode.turns)
    data = json.loads(json.dumps(episode.to_json()))
    data["earlier"][0]["further"][0]["sent"] = "0" * 16
    with pytest.raises(NotRebuiltError, match="call 1 after the last turn"):
        rebuilt(Both(options), read_episode(json.dumps(data).encode()))


def _reply(episode: dict[str, Any]) -> None:
    episode["earlier"][0]["turns"][0]["reply"] = "Thought: t\nAction: go east"


def _sent(episode: dict[str, Any]) -> None:
    episode["earlier"][0]["turns"][1]["sent"] = "0" * 16


def _reflection(episode: dict[str, Any]) -> None:
    episode["earlier"][0]["further"][-1]["sent"] = "0" * 16


def _correction(episode: dict[str, Any]) -> None:
    episode["earlier"][0]["turns"][3]["observation"] = "Well done."


@pytest.mark.parametrize("change", [_reply, _sent, _reflection, _correction])
def test_what_was_changed_in_an_earlier_trial_is_found(change: Callable[[dict[str, Any]], None]) -> None:
    options = ReflexionOptions(trials=2)
    says = ["Thought: t\nAction: look", "Action: look", "Action: look", "hm", "I looked.", "Action: look"]
    data = json.loads(json.dumps(played(ReflexionAgent(options), Replies(says)).to_json()))
    assert _again(options, data)
    change(data)
    with pytest.raises(NotRebuiltError):
        _again(options, data)


def test_another_reflection_makes_other_messages_in_the_next_trial() -> None:
    options = ReflexionOptions(trials=2)
    says = ["Thought: t\nAction: look"] * 4 + ["I looked.", "Action: look"]
    data = json.loads(json.dumps(played(ReflexionAgent(options), Replies(says)).to_json()))
    assert [made.sent for made in _again(options, data)] == [(turn["sent"],) for turn in data["turns"]]
    data["earlier"][0]["further"][-1]["reply"] = "Another note."
    assert not any(made.sent == (made.turn.sent,) for made in _again(options, data))


def _again(options: ReflexionOptions, data: dict[str, Any]) -> list[Any]:
    return rebuilt(ReflexionAgent(options), read_episode(json.dumps(data).encode()))


def test_a_stop_sequence_of_the_agents_own_is_kept() -> None:
    class Stopped(Replies):
        async def reply(self, messages: Any, **more: Any) -> Any:
            return replace(await super().reply(messages, **more), stopped_by="</go>")

    episode = played(Tagged(), Stopped(["go east"]))
    assert episode.success
    assert [made.parsed.action for made in rebuilt(Tagged(), episode)] == ["go east", "go east"]
