"""Signals: the results of verifying a reply, and counts of signals by call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Signal(StrEnum):
    """The result of verifying a reply. Most signals are the paper's (algorithm 1, appendix J); four are not in the
    paper."""

    OK = "OK"
    JSON = "JSON"
    """The reply is not JSON: broken, cut off, too long, or nested too deep."""
    KEYS = "KEYS"
    """Keys or types are wrong, or a turn belongs to the other speaker."""
    EXPRESSION = "EXPRESSION"
    """An expression of a script does not compile, is too slow, or does not accept its own action."""
    ACTION = "ACTION"
    """The script has no such action, and the Dungeon Master flagged no error."""
    LAST_ERROR = "LAST_ERROR"
    """The last turn is an error."""
    UNFINISHED = "UNFINISHED"
    """The last turn does not say that the task succeeded, or the last turn belongs to the player."""
    TOO_FEW = "TOO_FEW"
    """The trajectory has too few turns with errors."""
    ERRS = "ERRS"
    """Not in the paper: the player makes an error although the trajectory must have no errors."""
    CONTEXT = "CONTEXT"
    """Not in the paper: the dialogue does not fit the model's context."""
    REFUSED = "REFUSED"
    """Not in the paper: the server refuses this request, for example by a content filter, but answers other
    requests."""
    NO_CALLS = "NO_CALLS"
    """Not in the paper: no call is left for the trajectory, because writing the script used all calls of the
    persona."""


MEANINGS = {
    Signal.JSON: "not JSON, or cut off",
    Signal.KEYS: "keys or types wrong",
    Signal.EXPRESSION: "an expression does not accept its own action",
    Signal.ACTION: "an action that the script does not have",
    Signal.LAST_ERROR: "ends in an error",
    Signal.UNFINISHED: "does not say that the task succeeded",
    Signal.TOO_FEW: "too few error turns",
    Signal.ERRS: "an error in a game without errors",
    Signal.CONTEXT: "longer than the model's context",
    Signal.REFUSED: "refused by the server",
    Signal.NO_CALLS: "the script took all calls",
}


@dataclass(frozen=True)
class ReplyCheck:
    signal: Signal
    mistakes: tuple[str, ...] = ()
    """The mistakes, as sentences that are sent to the model."""


@dataclass
class Tally:
    """Counts of finished personas."""

    passed_at: Counter[int] = field(default_factory=Counter)
    """Number of the call whose reply passed -> number of personas."""
    rejected: Counter[str] = field(default_factory=Counter)
    """Signal of the last reply -> number of rejected personas."""
    signals: dict[int, Counter[str]] = field(default_factory=dict)
    """Number of the call -> signal -> number of replies."""
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    @property
    def passed(self) -> int:
        return self.passed_at.total()

    @property
    def finished(self) -> int:
        return self.passed + self.rejected.total()

    def add(self, record: Mapping[str, Any]) -> None:
        """Count a line of `passed.jsonl` or `rejected.jsonl`."""
        signals = [Signal(signal) for signal in record["signals"]]
        made = [signal for signal in signals if signal is not Signal.NO_CALLS]
        for number, signal in enumerate(made, record["calls"] - len(made) + 1):
            self.signals.setdefault(number, Counter())[signal] += 1
        if signals[-1] is Signal.OK:
            self.passed_at[record["calls"]] += 1
        else:
            self.rejected[signals[-1]] += 1
        self.calls += len(made)
        self.prompt_tokens += record["prompt_tokens"]
        self.completion_tokens += record["completion_tokens"]

    def to_json(self) -> dict[str, Any]:
        tokens = {"prompt": self.prompt_tokens, "completion": self.completion_tokens}
        return {
            "finished": self.finished,
            "passed": self.passed,
            "passed_at_call": {str(call): self.passed_at[call] for call in sorted(self.passed_at)},
            "rejected": {signal: self.rejected[signal] for signal in sorted(self.rejected)},
            "signals_by_call": {
                str(call): {signal: counts[signal] for signal in sorted(counts)}
                for call, counts in sorted(self.signals.items())
            },
            "calls": self.calls,
            "tokens": tokens,
        }
