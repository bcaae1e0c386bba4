"""What the verification of a reply says; how many passed at which call, and why the others did not. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Signal(StrEnum):
    """The paper's signals (algorithm 1, appendix J), the verification of a script among them, and four of ours."""

    OK = "OK"
    JSON = "JSON"
    """Not JSON: broken, cut off, too long, nested too deep."""
    KEYS = "KEYS"
    """Keys or types are wrong, or a turn is the wrong speaker's."""
    EXPRESSION = "EXPRESSION"
    """Of a script: an expression does not compile, is too slow, or does not accept its own action."""
    ACTION = "ACTION"
    """The player's action is none of the script's, and the Dungeon Master did not say so."""
    LAST_ERROR = "LAST_ERROR"
    """The last turn is an error."""
    UNFINISHED = "UNFINISHED"
    """The last turn does not say that the task succeeded, or is the player's."""
    TOO_FEW = "TOO_FEW"
    """Too few error turns."""
    ERRS = "ERRS"
    """Ours: the player errs in a game that was to have no errors."""
    CONTEXT = "CONTEXT"
    """Ours: the dialogue no longer fits the model's context."""
    REFUSED = "REFUSED"
    """Ours: the server refuses this request and answers others (a content filter, say)."""
    NO_CALLS = "NO_CALLS"
    """Ours: the script took every call that the persona had."""


MEANINGS = {
    Signal.JSON: "not JSON, or cut off",
    Signal.KEYS: "keys or types wrong",
    Signal.EXPRESSION: "an expression does not accept its own action",
    Signal.ACTION: "an action that the script does not have",
    Signal.LAST_ERROR: "ends in an error",
    Signal.UNFINISHED: "does not say that the task succeeded",
    Signal.TOO_FEW: "too few error turns",
    Signal.ERRS: "an error where none was wanted",
    Signal.CONTEXT: "outgrew the model's context",
    Signal.REFUSED: "refused by the server",
    Signal.NO_CALLS: "the script took all calls",
}


@dataclass(frozen=True)
class ReplyCheck:
    """Of one reply."""

    signal: Signal
    mistakes: tuple[str, ...] = ()
    """What was wrong, as the model gets to read it."""


@dataclass
class Tally:
    """Over finished personas."""

    passed_at: Counter[int] = field(default_factory=Counter)
    """Number of the call that passed -> personas."""
    rejected: Counter[str] = field(default_factory=Counter)
    """Last signal -> personas."""
    signals: dict[int, Counter[str]] = field(default_factory=dict)
    """Number of the call -> signal -> replies."""
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
        """For `summary.json`."""
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
