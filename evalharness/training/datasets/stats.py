"""Count sequences of consecutive errors in training data by length, with their shares of all turns and of player turns.

For comparison: in AgentRefine's appendix I, sequences of length 1 are about 16 % of all turns.
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
    """Counts of a data set. A turn is a message of user or assistant; the system text is not a turn."""

    turns: int = 0
    player_turns: int = 0
    conversations: int = 0
    without_errors: int = 0
    """Conversations without any error."""
    runs: Counter[str] = field(default_factory=Counter)
    """Length of a sequence of errors (`1`, `2`, `3`, `more`) -> number of such sequences."""
    in_runs: Counter[str] = field(default_factory=Counter)
    """Length of a sequence of errors -> number of turns in such sequences."""

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
        """Return a row for each length: number of sequences, number of turns in them, and the turns' shares (0..1)."""
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
    counts = ErrorTurns()
    for conversation in conversations:
        counts.add(conversation)
    return counts


def count_error_turns(path: Path) -> dict[str, Any]:
    """Return the counts of a file. Raises UserError if the file cannot be read."""
    from evalharness.training.datasets.layouts import ReadReport, read_any

    return error_turns(read_any(path, ReadReport())).to_json()
