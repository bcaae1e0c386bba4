"""Further calls of a turn, and those of a turn that was never finished, are made again."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest
from agent_contract import _SPEC, PROMPT, Replies, Rooms

from evalharness.agents.base import Agent, EpisodeStart, ModelReply, Request
from evalharness.agents.react import ReactAgent
from evalharness.envs.base import Task
from evalharness.play.loop import play_episode
from evalharness.protocol.perturb import PlayedSurface
from evalharness.protocol.prompt import Message
from evalharness.protocol.react import ParsedReply
from evalharness.records.episode import Episode, read_episode
from evalharness.records.rebuilt import NotRebuiltError, episode_start, rebuild

TASK = Task("rooms/open/000", "rooms", "open", 0, "reach the last room", "easy", "walk")


class Noting(ReactAgent):
    """Asks for a note before every action but the first."""

    name = "noting"

    def start(self, episode: EpisodeStart) -> None:
        super().start(episode)
        self.noted = True

    def request(self) -> Request:
        asked: Message = {"role": "user", "content": "Take a note."}
        return super().request() if self.noted else Request([*self.messages, asked], purpose="note")

    def read(self, said: ModelReply) -> ParsedReply | None:
        if not self.noted:
            self.noted = True
            self.messages.append({"role": "assistant", "content": said.text})
            self.messages.append({"role": "user", "content": "Go on."})
            return None
        return super().read(said)

    def observe(self, observation: str, valid_actions: tuple[str, ...] | None = None) -> None:
        super().observe(observation, valid_actions)
        self.noted = False


class Tagged(ReactAgent):
    """Reads what stands before its own stop sequence, and only where that was reached."""

    name = "tagged"

    def request(self) -> Request:
        return Request(self.messages, stop=("</go>",))

    def parse(self, said: ModelReply) -> ParsedReply:
        return ParsedReply("", said.text if said.stopped_by == "</go>" else None, "", ())


def played(agent: Agent, player: Replies) -> Episode:
    episode = asyncio.run(
        play_episode(
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
def test_every_turn_is_made_again_however_full_the_context_was(context: int | None) -> None:
    says = ["Thought: t\nAction: look", "a note that is long " * 9]
    episode = played(Noting(), Replies([says[0], *reversed(says)] * 4, context))
    assert len(rebuilt(Noting(), episode)) == len(episode.turns)


def test_the_calls_of_a_turn_that_was_never_finished_are_made_again() -> None:
    says = ["Thought: t\nAction: look", "a note too long " * 99, "Thought: t\nAction: look"]
    episode = played(Noting(), Replies(says, 1500))
    assert (episode.ended_by, [call.purpose for call in episode.further]) == ("context_full", ["note"])
    assert len(rebuilt(Noting(), episode)) == len(episode.turns)
    data = json.loads(json.dumps(episode.to_json()))
    data["further"][0]["sent"] = "0" * 16
    with pytest.raises(NotRebuiltError, match="call 1"):
        rebuilt(Noting(), read_episode(json.dumps(data).encode()))


def test_a_stop_sequence_of_the_agents_own_is_kept() -> None:
    class Stopped(Replies):
        async def reply(self, messages: Any, **more: Any) -> Any:
            return replace(await super().reply(messages, **more), stopped_by="</go>")

    episode = played(Tagged(), Stopped(["go east"]))
    assert episode.success
    assert [made.parsed.action for made in rebuilt(Tagged(), episode)] == ["go east", "go east"]
