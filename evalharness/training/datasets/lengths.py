"""Tokens of a data set by family, and what a length limit leaves out, by family and kind of task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evalharness.training.datasets.sample import Sample
from evalharness.training.datasets.tokens import TokenCounts, tokenize


@dataclass
class Lengths:
    conversations: int = 0
    tokens: int = 0
    trained_tokens: int = 0
    longest: int = 0
    """Tokens."""
    too_long: Counter[str] = field(default_factory=Counter)
    """Kind of task -> conversations over the limit."""

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "too_long": dict(sorted(self.too_long.items()))}


def lengths_of(samples: Sequence[Sample], model: Path, max_length: int = 0) -> dict[str, Lengths]:
    """Family -> lengths by the template of `model`, a checkpoint folder. `max_length` in tokens; 0: no limit.

    Raises UserError.
    """
    known = {sample.id: sample for sample in samples}
    found: dict[str, Lengths] = {}
    for row in tokenize(samples, model, TokenCounts()):
        sample = known[row.id]
        family = found.setdefault(sample.world, Lengths())
        family.conversations += 1
        family.tokens += len(row.input_ids)
        family.trained_tokens += sum(label >= 0 for label in row.labels)
        family.longest = max(family.longest, len(row.input_ids))
        if 0 < max_length < len(row.input_ids):
            family.too_long[str(sample.metadata.get("kind") or "no kind")] += 1
    return dict(sorted(found.items()))


def lines(found: Mapping[str, Mapping[str, Any]], max_length: int) -> list[str]:
    """For the terminal, from the JSON of each family."""
    said = []
    for family, row in found.items():
        said.append(
            f"{family}: {row['tokens']:,} tokens, {row['trained_tokens']:,} of them trained; the longest conversation "
            f"has {row['longest']:,}"
        )
        if lost := sum(row["too_long"].values()):
            kinds = ", ".join(f"{kind} {count:,}" for kind, count in row["too_long"].items())
            said.append(
                f"  over {max_length:,} tokens: {lost:,} of {row['conversations']:,} conversations, "
                f"{lost / row['conversations']:.0%} ({kinds})"
            )
    return said
