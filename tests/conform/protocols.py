"""Does an agent of another group's protocol send, read and judge as the original did? Recorded games are gone through
without a model; pure."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from evalharness.agents.base import ContextFullError, EpisodeStart, ModelReply, Request
from evalharness.agents.guard import Guarded
from evalharness.agents.registry import find_agent
from evalharness.envs.surface import ActionSurface
from evalharness.protocol.prompt import PromptFile
from evalharness.protocol.react import FormatError
from tests.conform.protocol_transcripts import RecordedGame, RecordedReading

CHECKS = ("messages", "action", "validity", "correction", "reading")


@dataclass(frozen=True)
class ProtocolMismatch:
    source: str
    step: int
    check: str
    recorded: Any
    ours: Any


@dataclass
class ProtocolResult:
    """How often the agent did as the original."""

    equal: dict[str, int] = field(default_factory=lambda: dict.fromkeys(CHECKS, 0))
    compared: dict[str, int] = field(default_factory=lambda: dict.fromkeys(CHECKS, 0))
    mismatches: list[ProtocolMismatch] = field(default_factory=list)

    def add(self, source: str, step: int, check: str, recorded: Any, ours: Any) -> None:
        self.compared[check] += 1
        if recorded == ours:
            self.equal[check] += 1
        else:
            self.mismatches.append(ProtocolMismatch(source, step, check, recorded, ours))

    def to_json(self) -> dict[str, Any]:
        return {
            "checks": {
                check: {"compared": self.compared[check], "equal": self.equal[check]}
                for check in CHECKS
                if self.compared[check]
            },
            "differences": [asdict(mismatch) for mismatch in self.mismatches],
        }


def follow(game: RecordedGame, agent_name: str, prompt: PromptFile, result: ProtocolResult) -> None:
    """Through one recorded game: at each call what is sent, at each step what is read."""
    agent = Guarded(find_agent(agent_name, game.options).make())
    listed = game.valid_actions if agent.wants_valid_actions else None
    start = EpisodeStart(
        game.source, game.family, game.kind, game.goal, game.observation, len(game.steps) + 1, prompt,
        ActionSurface({"look": "look"}), listed,
    )  # fmt: skip
    agent.start(start)
    for number, step in enumerate(game.steps, 1):
        parsed = None
        for call in step.calls:
            request = _fitting(agent, game)
            result.add(game.source, number, "messages", *call.compare(request.messages))
            parsed = agent.read(ModelReply(call.reply))
        assert parsed is not None
        result.add(game.source, number, "action", step.action, parsed.action)
        if step.valid is not None:
            valid = FormatError.PROTOCOL_INVALID not in parsed.errors
            result.add(game.source, number, "validity", step.valid, valid)
        if parsed.action is None and number < len(game.steps):
            result.add(game.source, number, "correction", step.observation, agent.correction(parsed))
        agent.observe(step.observation, step.valid_actions if agent.wants_valid_actions else None)


def _fitting(agent: Guarded, game: RecordedGame) -> Request:
    while True:
        request = agent.request()
        if game.most_words is None or game.count_words(request.messages) <= game.most_words:
            return request
        try:
            agent.shorten()
        except ContextFullError:
            return request


def read_reply(reading: RecordedReading, agent_name: str, prompt: PromptFile, result: ProtocolResult) -> None:
    """What is made of a single reply."""
    agent = Guarded(find_agent(agent_name, reading.options).make())
    surface = ActionSurface({})
    agent.start(
        EpisodeStart(reading.source, reading.family, "", "goal", "observation", 9, prompt, surface, ())
    )
    parsed = agent.read(ModelReply(reading.reply))
    result.add(reading.source, 0, "reading", reading.action, None if parsed is None else parsed.action)
