"""A contract test for agents: `check_agent(MyAgent)` plays made-up episodes.

It raises AssertionError where a promise of `evalharness.agents.base.Agent` is broken. No model and no simulator are
needed.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from evalharness.agents.base import Agent, AgentOptions
from evalharness.base.timing import CallTimes
from evalharness.envs.base import Actions, EnvSpec, Task, TaskSuites
from evalharness.models.base import ContextOverflowError, Environment, Player, Reply, RequestForm
from evalharness.play.loop import play_episode
from evalharness.protocol.perturb import PlayedSurface
from evalharness.protocol.prompt import PromptFile
from evalharness.protocol.tools import ToolCall
from evalharness.records.episode import Episode, read_episode
from evalharness.records.rebuilt import episode_start, rebuild

PROMPT = PromptFile(
    environment="rooms",
    system="You explore rooms.",
    instruction="Actions:\n{actions}",
    format_rules="Be brief.",
)
GARBAGE = (
    "", " \n\t", "Thought: hm", "Action:", "Action: go north", "Thought: x\nAction: look\nAction: look", "<think>",
    "<think>a</think>", "</think></think>Action: look", "<action></action>", "<think>b</think><action>look</action>",
    "Observation: you win\nAction: look", '{"action": "look"}', "\x00\x1b[31m\u202e", "Action: " + "x" * 5000,
    "look", "\ud83d\ude00" * 200,
)  # fmt: skip
"""Replies that models have given, and worse."""


def _never(data: Any) -> Any:
    raise NotImplementedError


_SPEC = EnvSpec(
    family="rooms",
    title="Rooms",
    gym_id="evalharness/Rooms-v0",
    make=_never,
    suites=TaskSuites({}, lambda suite, data, seed: []),
    actions=Actions({"look": "look", "go": "go {direction}"}),
)


@dataclass
class Rooms:
    """An environment of three rooms in a row; `go east` twice solves it."""

    last_call: CallTimes = field(default_factory=CallTimes)
    at: int = 0

    async def reset(self, task: Task) -> tuple[str, str, dict[str, Any]]:
        self.at = 0
        return "reach the last room", "You are in room 0.", self._info(valid=True)

    async def step(self, action: str) -> tuple[str, bool, dict[str, Any]]:
        moves = {"go east": 1, "go west": -1, "look": 0}
        known = action.strip().lower() in moves
        self.at = min(2, max(0, self.at + moves.get(action.strip().lower(), 0)))
        said = f"You are in room {self.at}." if known else "That makes no sense."
        return said, self.at == 2, self._info(valid=known)

    def _info(self, *, valid: bool) -> dict[str, Any]:
        solved = self.at == 2
        return {
            "progress": self.at / 2, "success": solved, "solved": solved, "valid": valid, "subgoals_completed": (),
        }  # fmt: skip

    async def valid_actions(self) -> list[str]:
        return ["go east", "go west", "look"]

    async def oracle(self) -> list[str]:
        return ["go east", "go east"]

    async def reference_plans(self) -> dict[str, list[str]]:
        return {"oracle": await self.oracle()}


@dataclass
class Replies(Player):
    """Says these one after the other, the last one for ever; notes what it was sent."""

    replies: Sequence[str]
    context: int | None = None
    """Characters of messages that fit."""
    sent: list[str] = field(default_factory=list)

    async def reply(
        self, messages: list[dict[str, Any]], *, turn: int, form: RequestForm | None = None
    ) -> Reply:
        text = json.dumps(messages)
        if self.context is not None and len(text) > self.context:
            raise ContextOverflowError
        self.sent.append(text)
        said = self.replies[min(len(self.sent), len(self.replies)) - 1]
        calls = (
            (ToolCall("c", "act", json.dumps({"command": said})),) if form is not None and form.tools else ()
        )
        return Reply(said, calls=calls)


def check_agent(
    kind: type[Agent], options: Iterable[AgentOptions] | None = None, *, max_turns: int = 8
) -> None:
    """Check one class of agents with each of `options` (default: its own defaults).

    Deterministic: the same replies give the same messages. No hidden state: an episode is the same whatever another
    instance played before. Garbage costs turns and raises nothing. A full context is answered by shorter messages or by
    the episode's end. And the record alone gives every message again.
    """
    for chosen in options or [kind.Options()]:
        for replies in (
            [*GARBAGE],
            ["go east"],
            ["Thought: east\nAction: go east"],
            ["<action>go west</action>"],
        ):
            for context in (None, 2500):
                one, sent = _played(kind, chosen, replies, context, max_turns)
                other, sent_again = _played(kind, chosen, replies, context, max_turns)
                where = f"{kind.__name__}({chosen!r}) with replies {replies[:1]!r}"
                assert sent == sent_again, f"{where}: the same replies gave other messages the second time"
                assert _outcome(one) == _outcome(other), f"{where}: the same replies gave another episode"
                _check_record(kind, chosen, one, where, max_turns)


def _played(
    kind: type[Agent], options: AgentOptions, replies: Sequence[str], context: int | None, max_turns: int
) -> tuple[Episode, list[str]]:
    player = Replies(replies, context)
    task = Task("rooms/open/000", "rooms", "open", 0, "reach the last room", "easy", "walk")

    def opened(environment: Environment) -> Player:
        return player

    episode = asyncio.run(
        play_episode(
            task,
            Rooms(),
            opened,
            prompt=PROMPT,
            surface=PlayedSurface(_SPEC),
            agent=kind(options),
            max_turns=max_turns,
        )
    )
    return episode, player.sent


def _outcome(episode: Episode) -> list[Any]:
    return [
        episode.success,
        episode.ended_by,
        *((t.action, t.observation, t.format_errors) for t in episode.turns),
    ]


def _check_record(
    kind: type[Agent], options: AgentOptions, episode: Episode, where: str, max_turns: int
) -> None:
    recorded = read_episode(json.dumps(episode.to_json()).encode())
    start = episode_start(recorded, PROMPT, PlayedSurface(_SPEC).perturbed, max_turns, keep_thinking=False)
    for made in rebuild(kind(options), start, recorded, compare=True):
        assert not made.has_other_messages, f"{where}: the record gives other messages than were sent"
