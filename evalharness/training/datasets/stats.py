"""The error turns of training data: how long the runs of errors are, as shares of all turns and of player turns.

The paper's appendix I: runs of one are about 16 % of all turns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evalharness.results.behaviour.turns import runs_of
from evalharness.training.datasets.conversation import Conversation

LENGTHS = ("1", "2", "3", "more")


@dataclass
class ErrorTurns:
    """Counted over a data set. A turn is a message of user or assistant: the system's text is none."""

    turns: int = 0
    player_turns: int = 0
    conversations: int = 0
    without_errors: int = 0
    """Conversations without any error."""
    runs: Counter[str] = field(default_factory=Counter)
    """Length (`1`, `2`, `3`, `more`) -> runs."""
    in_runs: Counter[str] = field(default_factory=Counter)
    """Length -> turns in such runs."""

    def add(self, conversation: Conversation) -> None:
        self.conversations += 1
        self.turns += sum(message.role != "system" for message in conversation.messages)
        self.player_turns += len(conversation.player_turns)
        lengths = runs_of(bool(turn.error) for turn in conversation.player_turns)
        self.without_errors += not lengths
        for length in lengths:
            name = str(length) if length <= 3 else "more"
            self.runs[name] += 1
            self.in_runs[name] += length

    def rows(self) -> list[dict[str, Any]]:
        """A row a length: runs, turns in them, shares of all turns and of player turns (0..1)."""
        return [
            {
                "run_length": name,
                "runs": self.runs[name],
                "turns": self.in_runs[name],
                "share_of_turns": self.in_runs[name] / max(self.turns, 1),
                "share_of_player_turns": self.in_runs[name] / max(self.player_turns, 1),
            }
            for name in LENGTHS
        ]

    def to_json(self) -> dict[str, Any]:
        return {
            "samples": self.conversations,
            "samples_without_errors": self.without_errors,
            "turns": self.turns,
            "player_turns": self.player_turns,
            "rows": self.rows(),
        }


def error_turns(conversations: Iterable[Conversation]) -> ErrorTurns:
    found = ErrorTurns()
    for conversation in conversations:
        found.add(conversation)
    return found


def count_error_turns(path: Path) -> dict[str, Any]:
    """`error_turns` of a file. Raises UserError where it cannot be read."""
    from evalharness.training.datasets.layouts import Unfit, read_any

    return error_turns(read_any(path, Unfit())).to_json()
