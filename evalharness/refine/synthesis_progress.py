"""What a synthesis has done so far, for whoever shows it."""

from __future__ import annotations

from dataclasses import dataclass, field

from evalharness.engine.asking import WorkProgress
from evalharness.refine.conversation import Call, Conversation
from evalharness.refine.tally import Tally

_ENOUGH = 10
"""Personas finished in this session before a forecast says anything."""


@dataclass
class SynthesisProgress(WorkProgress):
    kind: str
    total: int
    tally: Tally = field(default_factory=Tally)
    """Of all finished personas, those of earlier sessions included."""
    calls: int = 0
    """Answered in this session."""
    _finished: int = 0

    def count(self, call: Call) -> None:
        self.calls += 1
        self.completion_tokens += call.completion_tokens or 0

    def finish(self, conversation: Conversation) -> None:
        self.tally.add_conversation(conversation)
        self._finished += 1

    @property
    def seconds_left(self) -> float | None:
        """At the pace of this session; None before it says anything."""
        if self._finished < _ENOUGH:
            return None
        return (self.total - self.tally.finished - self.failures) * self.elapsed / self._finished
