"""How many passed at which call, and why the others did not. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evalharness.records.cost import Prices, Tokens
from evalharness.training.synthesis.signals import Signal


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

    def to_json(self, prices: Prices | None = None) -> dict[str, Any]:
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
            "cost": prices.of(Tokens(self.prompt_tokens, completion=self.completion_tokens))
            if prices
            else None,
        }
