"""Convert conversations to the token ids and labels of a training. Conversations that are too long are refused or left
out, but never cut."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from evalharness.base.errors import UserError, system_errors
from evalharness.base.reading import sha256_of
from evalharness.training.datasets import formats
from evalharness.training.datasets.conversation import BrokenLine, Conversation, read_data
from evalharness.training.datasets.modes import Mode
from evalharness.training.datasets.order import OrderCheck
from evalharness.training.datasets.tokens import TokenCounts, Tokens, tokenize, write_parquet
from evalharness.training.tune.settings import Settings

_NAMED = 3
"""Maximum number of conversations that one message names."""
_MOST_LOST = 0.1
"""`--too-long drop` may leave out at most this share of each family's conversations."""
Kind = tuple[str, str]
"""Family and kind of task: `("pddl", "gripper")`, `("general", "")`."""


@dataclass
class DataCounts:
    counts: TokenCounts = field(default_factory=TokenCounts)
    rows: int = 0
    """Number of trained conversations."""
    tokens: int = 0
    trained_tokens: int = 0
    trained_turns: int = 0
    longest: int = 0
    """Tokens of the longest conversation."""
    most_trained: int = 0
    """Largest number of trained tokens in one conversation."""
    left_out: Counter[str] = field(default_factory=Counter)
    order: OrderCheck = field(default_factory=OrderCheck)
    kinds: list[Kind] = field(default_factory=list)
    """Family and kind of each conversation with trained turns."""
    longer: Counter[Kind] = field(default_factory=Counter)
    """Family and kind -> number of conversations that are too long."""
    broken: dict[Path, list[BrokenLine]] = field(default_factory=dict)

    def list_losses(self) -> list[str]:
        """Return a message for each kind of task: how many of the kind's conversations are too long."""
        read = Counter(self.kinds)
        return [
            f"{_name_kind(kind)}: {count:,} of {read[kind]:,} too long"
            for kind, count in sorted(self.longer.items())
        ]

    def to_json(self) -> dict[str, Any]:
        return {
            "conversations": self.rows,
            "tokens": self.tokens,
            "trained_tokens": self.trained_tokens,
            "trained_turns": self.trained_turns,
            "longest_conversation_tokens": self.longest,
            "left_out": dict(sorted(self.left_out.items())),
            "special_texts": dict(sorted(self.counts.special_texts.items())),
            "order": self.order.to_json(),
            "too_long": {_name_kind(kind): count for kind, count in sorted(self.longer.items())},
            "broken_lines": sum(len(lines) for lines in self.broken.values()),
        }


def make_rows(
    files: Sequence[Path],
    model: Path,
    target: Path,
    settings: Settings,
    *,
    python: Path,
    on_line: Callable[[str], None] = lambda line: None,
) -> DataCounts:
    """Write the token ids and labels to `target` (parquet), in the order of the files. Raises UserError."""
    made = DataCounts()
    conversations = _read_trainable(files, settings.mode, made)
    tokens = tokenize(
        conversations, model, made.counts, template=settings.chat_template, python=python, on_line=on_line
    )
    write_parquet(target, _select_fitting(tokens, made, settings))
    made.left_out.update(made.counts.refused)
    if not made.rows:
        why = ", ".join(f"{count:,} {reason}" for reason, count in made.left_out.items())
        broken = next((f"; {lines[0]}" for lines in made.broken.values() if lines), "")
        raise UserError(
            f"{', '.join(map(str, files))}: no conversation to train on ({why or 'none in the format of evalharness'}"
            f"{broken}); see: evalharness refine --help"
        )
    return made


def data_sha256(path: Path) -> str:
    with system_errors(f"cannot read --data {path}"):
        return sha256_of(path)


def _read_trainable(files: Iterable[Path], mode: Mode, made: DataCounts) -> Iterator[Conversation]:
    read = chain.from_iterable(
        made.order.of(read_data(path, made.broken.setdefault(path, []))) for path in files
    )
    for conversation in formats.select_trainable(read, mode, made.left_out):
        kind = conversation.metadata.get("kind")
        made.kinds.append((conversation.world or conversation.source, kind if isinstance(kind, str) else ""))
        yield conversation


def _select_fitting(rows: Iterable[Tokens], made: DataCounts, settings: Settings) -> Iterator[Tokens]:
    max_length, too_long = settings.max_length, settings.too_long
    longer: list[str] = []
    for row in rows:
        length = len(row.input_ids)
        if length > max_length:
            longer.append(f"{row.id}: {length:,} tokens")
            made.longer[made.kinds[row.number]] += 1
            continue
        trained = row.trained_tokens
        made.rows += 1
        made.tokens += length
        made.trained_tokens += trained
        made.trained_turns += row.trained_turns
        made.longest = max(made.longest, length)
        made.most_trained = max(made.most_trained, trained)
        yield row
    if longer and too_long == "refuse":
        raise UserError(
            f"{_write_count(len(longer))} of {len(longer) + made.rows:,} have more than {max_length:,} tokens "
            f"({_list_first(longer)}): raise --max-length, or leave them out with --too-long drop"
        )
    if longer and too_long == "drop":
        _require_families(made, max_length)
    if longer:
        made.left_out[f"more than {max_length:,} tokens"] += len(longer)


def _name_kind(kind: Kind) -> str:
    return " ".join(filter(None, kind))


def _require_families(made: DataCounts, max_length: int) -> None:
    """Raise UserError if a family loses more than a tenth of its conversations."""
    read, longer = (Counter(family for family, _ in kinds) for kinds in (made.kinds, made.longer.elements()))
    lost = [family for family, count in sorted(longer.items()) if count > _MOST_LOST * read[family]]
    if lost:
        losses = "; ".join(f"{family} loses {longer[family]:,} of {read[family]:,}" for family in lost)
        raise UserError(
            f"too many conversations have more than {max_length:,} tokens: {losses} ({'; '.join(made.list_losses())}); "
            "raise --max-length, or drop any number of them with --too-long drop-any"
        )


def _write_count(count: int) -> str:
    return f"{count:,} conversation{'s' * (count != 1)}"


def _list_first(names: Sequence[str]) -> str:
    return "; ".join(names[:_NAMED]) + ("; ..." if len(names) > _NAMED else "")
