"""One persona's dialogue with the model: what is asked next, and what a reply makes of it.

A dialogue is what it was asked and answered so far, nothing else: put back together from the calls on record, it
goes on as if it had never been interrupted. Pure but for the time limits of verification.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evalharness.models.asking import Answer
from evalharness.protocol.prompt import Message
from evalharness.training.datasets.conversation import Conversation
from evalharness.training.synthesis.script import Script
from evalharness.training.synthesis.signals import ReplyCheck, Signal
from evalharness.training.synthesis.synthesis_prompts import SynthesisPrompts
from evalharness.training.synthesis.trajectory import Turn, error_turns, marked_messages, progress_of
from evalharness.training.synthesis.verify import Errors, verify_script, verify_trajectory

MOST_CALLS = 4
"""A persona, those for its script included (the paper's section 3.2)."""
_FINAL = (Signal.OK, Signal.CONTEXT, Signal.REFUSED, Signal.NO_CALLS)
"""After these nothing more is asked."""


@dataclass
class Dialogue(ABC):
    """Call `messages`, ask the model, `take` its answer, until `finished`."""

    key: str
    index: int
    """Position in the draw of personas, from 0."""
    persona: str
    prompts: SynthesisPrompts
    most_calls: int = MOST_CALLS
    earlier_calls: int = 0
    """That the persona's script took."""
    verdicts: list[ReplyCheck] = field(default_factory=list)
    prompt_tokens: int = 0
    completion_tokens: int = 0

    @property
    def calls(self) -> int:
        """So far, those for the script included."""
        return self.earlier_calls + len(self.verdicts)

    @property
    def signal(self) -> Signal | None:
        """Of the last reply."""
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
        """What is asked next."""

    @abstractmethod
    def verify(self, reply: str) -> ReplyCheck:
        """Verify a reply and keep what is to be kept of it."""

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
        """The line of a finished dialogue."""
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
    """A persona becomes a script."""

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
    """A script becomes a trajectory."""

    script: Script = field(kw_only=True)
    errors: Errors = "some"
    kept: list[Turn] = field(default_factory=list)
    rejected: list[Turn] = field(default_factory=list)
    """The whole game that had too few errors: shown with the request for another one."""

    def messages(self) -> list[Message]:
        return self.prompts.ask_trajectory(
            self.script, self.kept, self.mistakes, self.rejected, errors=self.errors == "some"
        )

    def verify(self, reply: str) -> ReplyCheck:
        self.kept, verdict = verify_trajectory(self.script, reply, self.kept, self.errors)
        # What is rejected for good is shown with the turns it had.
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


def conversation_of(record: Mapping[str, Any], turns: list[Turn], script: Script) -> Conversation:
    """A passed trajectory in the format of training data."""
    return Conversation(
        id=f"trajectories/{record['key']}",
        source="trajectories",
        world="script",
        task_hash=script.content_hash,
        messages=marked_messages(turns),
        metadata={
            "persona": record["persona"],
            "goal": script.goal,
            "calls": record["calls"],
            "error_turns": error_turns(turns),
            "success": True,
            "progress": progress_of(turns),
        },
    )
