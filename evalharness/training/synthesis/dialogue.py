"""The dialogue with the model about one persona: write the next request, and decide what to keep of a reply.

A dialogue depends only on its requests and replies. So an interrupted dialogue is restored by replaying the stored
calls.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evalharness.models.many_requests import Answer
from evalharness.protocol.prompt import Message
from evalharness.training.datasets.conversation import Conversation
from evalharness.training.synthesis.script import Script
from evalharness.training.synthesis.signals import ReplyCheck, Signal
from evalharness.training.synthesis.synthesis_prompts import SynthesisPrompts
from evalharness.training.synthesis.trajectory import Turn, count_error_turns, list_progress, mark_messages
from evalharness.training.synthesis.verify import Errors, verify_script, verify_trajectory

MOST_CALLS = 4
"""Maximum number of calls for a persona: for its script and its trajectory together (the paper's section 3.2)."""
_FINAL = (Signal.OK, Signal.CONTEXT, Signal.REFUSED, Signal.NO_CALLS)
"""Signals that end a dialogue."""


@dataclass
class Dialogue(ABC):
    """One persona's dialogue. Call `messages`, ask the model and call `take`, until `finished`."""

    key: str
    index: int
    """Position of the persona in the random order of `draw`, from 0."""
    persona: str
    prompts: SynthesisPrompts
    most_calls: int = MOST_CALLS
    earlier_calls: int = 0
    """Number of calls for the persona's script."""
    verdicts: list[ReplyCheck] = field(default_factory=list)
    prompt_tokens: int = 0
    completion_tokens: int = 0

    @property
    def calls(self) -> int:
        """The number of calls so far, including the calls for the script."""
        return self.earlier_calls + len(self.verdicts)

    @property
    def signal(self) -> Signal | None:
        """The signal of the last reply."""
        if self.verdicts:
            return self.verdicts[-1].signal
        return Signal.NO_CALLS if self.calls >= self.most_calls else None

    @property
    def finished(self) -> bool:
        return self.signal in _FINAL or self.calls >= self.most_calls

    @property
    def passed(self) -> bool:
        return self.signal is Signal.OK

    @property
    def mistakes(self) -> tuple[str, ...]:
        return self.verdicts[-1].mistakes if self.verdicts else ()

    @abstractmethod
    def messages(self) -> list[Message]:
        """Return the messages of the next request."""

    @abstractmethod
    def verify(self, reply: str) -> ReplyCheck:
        """Verify a reply, and keep the part before the first mistake."""

    def take(self, answer: Answer) -> ReplyCheck:
        self.prompt_tokens += answer.prompt_tokens or 0
        self.completion_tokens += answer.completion_tokens or 0
        if answer.refusal is not None:
            verdict = ReplyCheck(Signal(answer.refusal.upper()), (answer.reply,))
        else:
            verdict = self.verify(answer.reply)
            if verdict.signal is Signal.JSON and answer.finish_reason == "length":
                cut = "the reply was cut off at the token limit; be shorter"
                verdict = ReplyCheck(Signal.JSON, (*verdict.mistakes, cut))
        self.verdicts.append(verdict)
        return verdict

    def record(self) -> dict[str, Any]:
        """Return the line to store for a finished dialogue."""
        return {
            "key": self.key,
            "index": self.index,
            "persona": self.persona,
            "calls": self.calls,
            "signals": [verdict.signal for verdict in self.verdicts] or [self.signal],
            "mistakes": [list(verdict.mistakes) for verdict in self.verdicts],
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
        }


@dataclass
class ScriptDialogue(Dialogue):
    script: Script | None = None
    _rejected: str | None = None

    def messages(self) -> list[Message]:
        return self.prompts.ask_script(self.persona, self._rejected, self.mistakes)

    def verify(self, reply: str) -> ReplyCheck:
        self.script, verdict = verify_script(reply)
        self._rejected = None if self.script else reply
        return verdict

    def record(self) -> dict[str, Any]:
        return super().record() | {"script": self.script.to_json() if self.script else None}


@dataclass
class TrajectoryDialogue(Dialogue):
    script: Script = field(kw_only=True)
    errors: Errors = "some"
    kept: list[Turn] = field(default_factory=list)
    rejected: list[Turn] = field(default_factory=list)
    """A complete trajectory with too few errors. The model sees it in the request for another trajectory."""

    def messages(self) -> list[Message]:
        return self.prompts.ask_trajectory(
            self.script, self.kept, self.mistakes, self.rejected, errors=self.errors == "some"
        )

    def verify(self, reply: str) -> ReplyCheck:
        self.kept, verdict = verify_trajectory(self.script, reply, self.kept, self.errors)
        # After the last call, `kept` stays, so that the rejected trajectory is stored with its turns.
        if verdict.signal is Signal.TOO_FEW and self.calls + 1 < self.most_calls:
            self.kept, self.rejected = [], self.kept
        elif self.kept:
            self.rejected = []
        return verdict

    def record(self) -> dict[str, Any]:
        return super().record() | {
            "script": self.script.to_json(),
            "turns": [turn.to_json() for turn in self.kept],
        }


def convert_trajectory(record: Mapping[str, Any], turns: list[Turn], script: Script) -> Conversation:
    """Convert a trajectory that passed verification to the format of training data."""
    return Conversation(
        id=f"trajectories/{record['key']}",
        source="trajectories",
        world="script",
        task_hash=script.content_hash,
        messages=mark_messages(turns),
        metadata={
            "persona": record["persona"],
            "goal": script.goal,
            "calls": record["calls"],
            "error_turns": count_error_turns(turns),
            "success": True,
            "progress": list_progress(turns),
        },
    )
