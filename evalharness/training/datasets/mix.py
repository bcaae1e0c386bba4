"""One data set out of several, by stated ratio: drawn without replacement, shuffled, both by seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

from evalharness.base.errors import UserError
from evalharness.training.datasets.conversation import Conversation
from evalharness.training.datasets.layouts import MaskedTurns, Unfit, digest_of, read_any
from evalharness.training.datasets.overlap import Exclusion


@dataclass(frozen=True)
class DataShare:
    path: Path
    share: float
    """Relative to those of the other parts."""


def parse_part(text: str) -> DataShare:
    """`FILE` or `FILE:SHARE`. Raises UserError."""
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


def amounts(parts: Sequence[DataShare], there: Sequence[int], wanted: int | None) -> list[int]:
    """How many conversations each part gives. Without `wanted` as many as the ratio allows. Raises UserError."""
    total = sum(part.share for part in parts)
    if wanted is None:
        wanted = int(min(have * total / part.share for part, have in zip(parts, there, strict=True)) + 1e-9)
    exact = [wanted * part.share / total for part in parts]
    found = [int(amount + 1e-9) for amount in exact]
    # Largest remainders, the first part first where they are equal.
    rest = sorted(range(len(parts)), key=lambda i: (found[i] - exact[i], i))
    for index in rest[: wanted - sum(found)]:
        found[index] += 1
    for part, have, amount in zip(parts, there, found, strict=True):
        if amount > have:
            raise UserError(
                f"{part.path} has {have:,} conversations and the ratio asks for {amount:,}; "
                "give a smaller -n, or leave it out for as many as there are"
            )
    return found


def mix(
    parts: Sequence[DataShare],
    seed: int,
    wanted: int | None,
    exclusion: Exclusion,
    masked: MaskedTurns = "errors",
    *,
    whole: bool = False,
) -> tuple[list[Conversation], dict[str, Any], dict[Path, Unfit]]:
    """(conversations, what they were made of, what did not fit in each file). `whole`: all of each part."""
    pools: list[list[Conversation]] = []
    unfit: dict[Path, Unfit] = {}
    for part in parts:
        unfit[part.path] = Unfit()
        read = read_any(part.path, unfit[part.path], masked=masked)
        pools.append([conversation for conversation in read if exclusion.why_not(conversation) is None])
        if not pools[-1]:
            why = "; ".join([*unfit[part.path].lines(), *exclusion.lines()])
            raise UserError(f"{part.path} holds no conversation that may be trained on; {why}")
    chosen: list[Conversation] = []
    table = []
    there = [len(pool) for pool in pools]
    drawn_of = there if whole else amounts(parts, there, wanted)
    for number, (part, pool, amount) in enumerate(zip(parts, pools, drawn_of, strict=True), 1):
        drawn = Random(f"mix/{seed}/{number}").sample(pool, amount)
        # Ids name a conversation within its set; here they must do so among several.
        chosen += [replace(conversation, id=f"{number}:{conversation.id}") for conversation in drawn]
        table.append(
            {
                "file": part.path.name,
                "sha256": digest_of(part.path),
                "share": None if whole else part.share,
                "drawn": amount,
                "of": len(pool),
                "order": unfit[part.path].order.to_json(),
            }
        )
    Random(f"mix/{seed}").shuffle(chosen)
    made = {"command": "refine mix", "seed": seed, "masked_turns": masked, "parts": table}
    return chosen, {**made, "excluded": exclusion.to_json()}, unfit
