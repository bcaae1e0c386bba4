"""Join data sets by ratio: draw conversations without replacement and shuffle them, both by seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

from evalharness.base.errors import UserError
from evalharness.training.datasets.conversation import Conversation
from evalharness.training.datasets.layouts import ReadReport, hash_files, read_any
from evalharness.training.datasets.overlap import Exclusion


@dataclass(frozen=True)
class DataShare:
    path: Path
    share: float
    """Share of the mixture, relative to the shares of the other files."""


def parse_share(text: str) -> DataShare:
    """Parse `FILE` or `FILE:SHARE`. Raises UserError."""
    name, colon, share = text.rpartition(":")
    if not colon or Path(text).exists():
        return DataShare(Path(text), 1.0)
    try:
        value = float(share)
    except ValueError:
        return DataShare(Path(text), 1.0)
    if not 1e-9 <= value <= 1e9:
        raise UserError(f"{text}: a share is a number above 0 (up to 1e9), as in FILE:0.2")
    return DataShare(Path(name), value)


def divide(parts: Sequence[DataShare], available: Sequence[int], count: int | None) -> list[int]:
    """Return the number of conversations to draw from each file. If `count` is None, draw as many as the ratio allows.
    Raises UserError if a file has too few."""
    total = sum(part.share for part in parts)
    if count is None:
        count = int(
            min(have * total / part.share for part, have in zip(parts, available, strict=True)) + 1e-9
        )
    exact = [count * part.share / total for part in parts]
    amounts = [int(amount + 1e-9) for amount in exact]
    # Largest remainder method; equal remainders are served in the order of the files.
    rest = sorted(range(len(parts)), key=lambda i: (amounts[i] - exact[i], i))
    for index in rest[: count - sum(amounts)]:
        amounts[index] += 1
    for part, have, amount in zip(parts, available, amounts, strict=True):
        if amount > have:
            raise UserError(
                f"{part.path} has {have:,} conversations, and the ratio needs {amount:,}; "
                "choose a smaller -n, or leave -n out"
            )
    return amounts


def mix(
    parts: Sequence[DataShare],
    seed: int,
    count: int | None,
    exclusion: Exclusion,
    *,
    whole: bool = False,
) -> tuple[list[Conversation], dict[str, Any], dict[Path, ReadReport]]:
    """Return the mixture, its description for the manifest, and the report of each file. `whole`: take all
    conversations."""
    pools: list[list[Conversation]] = []
    reports: dict[Path, ReadReport] = {}
    for part in parts:
        reports[part.path] = ReadReport()
        read = read_any(part.path, reports[part.path])
        pools.append([conversation for conversation in read if exclusion.check(conversation) is None])
        if not pools[-1]:
            why = "; ".join([*reports[part.path].list_reasons(), *exclusion.lines()])
            raise UserError(f"{part.path} has no conversation that may be trained on; {why}")
    chosen: list[Conversation] = []
    table = []
    available = [len(pool) for pool in pools]
    drawn_of = available if whole else divide(parts, available, count)
    for number, (part, pool, amount) in enumerate(zip(parts, pools, drawn_of, strict=True), 1):
        drawn = Random(f"mix/{seed}/{number}").sample(pool, amount)
        # Two files can have the same conversation id; the file's number makes the ids of the mixture unique.
        chosen += [replace(conversation, id=f"{number}:{conversation.id}") for conversation in drawn]
        table.append(
            {
                "file": part.path.name,
                "sha256": hash_files(part.path),
                "share": None if whole else part.share,
                "drawn": amount,
                "of": len(pool),
                "order": reports[part.path].order.to_json(),
            }
        )
    Random(f"mix/{seed}").shuffle(chosen)
    made = {"command": "refine mix", "seed": seed, "parts": table}
    return chosen, {**made, "excluded": exclusion.to_json()}, reports
