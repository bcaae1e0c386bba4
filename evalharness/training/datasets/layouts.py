"""Training data as others write it (JSON lines, JSON, parquet; also .gz, or a folder of such files), into ours.

What does not fit is named and counted, a reason and a record number each; nothing is guessed and nothing goes unsaid.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from math import isfinite
from pathlib import Path
from typing import IO, Any, Literal, cast

from evalharness.base import reading
from evalharness.base.errors import UserError, system_errors
from evalharness.base.reading import lines_of, open_file
from evalharness.base.text import printable
from evalharness.training.datasets import foreign, marks
from evalharness.training.datasets.conversation import Conversation, MarkedMessage, UnfitError
from evalharness.training.datasets.order import OrderCheck

_FEW, _NAMED = 3, 20
_LONGEST = 1000
"""Characters of a value that stays in a conversation's metadata."""
MaskedTurns = Literal["errors", "ignore"]


@dataclass
class Unfit:
    """Records that are no conversation."""

    reasons: Counter[str] = field(default_factory=Counter)
    first: dict[str, list[int]] = field(default_factory=dict)
    """Reason -> the first record numbers, from 1."""
    fields: Counter[str] = field(default_factory=Counter)
    """Names of the columns that were there."""
    unread: Counter[str] = field(default_factory=Counter)
    """Names of fields that are not in the data set -> records that had them."""
    unread_of_messages: Counter[str] = field(default_factory=Counter)
    """Names of message fields that are not in the data set -> number of messages that had them."""
    shares: int = 0
    """Trained turns whose weight is neither 0 nor 1."""
    no_numbers: int = 0
    """NaN, Infinity, and numbers that no float can hold."""
    has_marks: bool = False
    """A conversation of the data has marks of its own: then a mask makes none anywhere."""
    masked_errors: int = 0
    """Turns that were taken for errors because they are masked."""
    masked_alone: int = 0
    """Masked turns of conversations without marks that were not."""
    masked_refinements: int = 0
    """First trained turns after them."""
    order: OrderCheck = field(default_factory=OrderCheck)
    """Of the turns."""

    def add(self, number: int, reason: str) -> None:
        self.reasons[reason] += 1
        numbers = self.first.setdefault(reason, [])
        if len(numbers) < _FEW:
            numbers.append(number)

    def no_number(self, text: str) -> None:
        """Count a number that cannot be represented, and replace it by None."""
        self.no_numbers += 1

    def all_lines(self) -> list[str]:
        """Return report lines about the records that were left out of the data set or changed on the way."""
        return [*self.lines(), *self.order.lines(), *self.masked_lines(), *self.unread_lines()]

    def unread_lines(self) -> list[str]:
        """What the records held and the data set does not."""
        lines = [
            f"{what} not read: "
            + ", ".join(
                f"{printable(name, single_line=True)[:40]} ({n:,})" for name, n in names.most_common(_NAMED)
            )
            + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
            for what, names in (("fields", self.unread), ("fields of messages", self.unread_of_messages))
            if names
        ]
        if self.shares:
            lines.append(
                f"{self.shares:,} turns have weights between 0 and 1, or above: trained like all others"
            )
        if self.no_numbers:
            lines.append(f"{self.no_numbers:,} values are NaN, infinite or too large, and count as missing")
        return lines

    def masked_lines(self) -> list[str]:
        """What the mask was taken to say; none where it was asked nothing."""
        errors, corrections, alone = self.masked_errors, self.masked_refinements, self.masked_alone
        lines = []
        if errors:
            hold = "turn that holds an action and is" if errors == 1 else "turns that hold an action and are"
            lines.append(
                f"{errors:,} masked {hold} answered read as error{_s(errors)}, {corrections:,} trained "
                f"turn{_s(corrections)} after {'it' if errors == 1 else 'them'} as correction{_s(corrections)}; the "
                "data has no marks of its own (--masked-turns ignore: as a mask alone)"
            )
        if alone:
            why = (
                "other conversations of the data have marks of their own"
                if self.has_marks
                else "no action (Action: ...), an opening acknowledgement, or no answer"
            )
            lines.append(f"{alone:,} masked turn{_s(alone)} not read as error{_s(alone)}: {why}")
        return lines

    def lines(self) -> list[str]:
        """A line a reason, the commonest first."""
        return [
            f"{count:,} record{'s' * (count != 1)} left out: {reason} (e.g. {', '.join(map(str, self.first[reason]))})"
            for reason, count in sorted(self.reasons.items(), key=lambda item: (-item[1], item[0]))
        ]


def _s(count: int) -> str:
    return "s" * (count != 1)


def read_any(
    path: Path, unfit: Unfit, source: str = "general", masked: MaskedTurns = "errors"
) -> Iterator[Conversation]:
    """The conversations of a file in any of these layouts, our own among them, one at a time.

    Raises UserError where the file cannot be read at all.
    """
    # Of the whole file: a data set in which only some conversations have errors marks those alone.
    unfit.has_marks = masked == "errors" and any(marks.has_marks(record) for record in _records(path, unfit))
    unfit.no_numbers = 0  # they are met once more
    for number, record in enumerate(_records(path, unfit), 1):
        if isinstance(record, UnfitError):
            unfit.add(number, str(record))
            continue
        try:
            conversation = to_conversation(record, f"{path.stem}/{number}", source, unfit, masked)
            tools = foreign.uses_tools(foreign.listed_messages(record))
        except UnfitError as error:
            unfit.add(number, str(error))
            continue
        ordered = unfit.order(conversation, tools=tools)
        if ordered is not None:
            yield ordered


_OURS = {"id", "source", "world", "task_hash", "messages", "metadata"}
_OURS_OF_MESSAGES = {"role", "content", "loss", "error", "refine"}


def to_conversation(
    record: object, name: str, source: str, unfit: Unfit | None = None, masked: MaskedTurns = "errors"
) -> Conversation:
    """Raises UnfitError."""
    unfit = Unfit() if unfit is None else unfit
    if isinstance(record, list):
        record = {"messages": record}
    if not isinstance(record, dict):
        raise UnfitError("it is no object")
    unfit.fields.update(str(key) for key in record)
    if {"id", "source", "world", "messages"} <= record.keys():
        return _ours(record)
    preferences = record.get("input")
    if isinstance(preferences, dict) and foreign.listed_messages(preferences):  # OpenAI's layout
        record = {**preferences, **{key: value for key, value in record.items() if key != "input"}}
    read: set[str] = set()
    raw = marks.with_listed_marks(record, foreign.raw_messages(record, read), read)
    parts = foreign.parts_of(record, raw, read)
    by_mask = masked == "errors" and not unfit.has_marks and not marks.has_marks(record)
    plain = [
        MarkedMessage(part.role, part.text, marks.loss_of(part.marks) if part.role == "assistant" else None)
        for part in parts
    ]
    messages = marks.with_marks([part.marks for part in parts], plain, by_mask)
    if not any(message.role == "assistant" for message in messages):
        raise UnfitError("no message is the assistant's")
    if marks.has_share(record):
        unfit.shares += sum(message.role == "assistant" for message in messages)
    _count(unfit, raw, plain, messages, by_mask, masked == "errors" and not marks.has_marks(record))
    return Conversation(
        name, source, str(record.get("world", "")), None, messages, _kept(record, read, unfit)
    )


def _ours(record: dict[str, Any]) -> Conversation:
    """Raises UnfitError, also where another tool has added what would be lost."""
    conversation = Conversation.from_json(record)
    more = record.keys() - _OURS | {
        key for message in record["messages"] for key in message.keys() - _OURS_OF_MESSAGES
    }
    if more:
        raise UnfitError(
            f"it is in our layout and has other fields, too: {', '.join(sorted(map(repr, more)))[:200]}"
        )
    return conversation


def _count(
    unfit: Unfit,
    raw: list[dict[str, Any]],
    plain: list[MarkedMessage],
    messages: tuple[MarkedMessage, ...],
    by_mask: bool,
    may_be_alone: bool,
) -> None:
    for message in raw:
        unread = [key for key in foreign.unread_fields(message) if message[key] not in _EMPTY]
        unfit.unread_of_messages.update(key for key in unread if key.lower() not in marks.READ_OF_MESSAGES)
        unfit.shares += foreign.role_of(message) == "assistant" and marks.has_share(message)
    if by_mask:
        unfit.masked_errors += sum(bool(message.error) for message in messages)
        unfit.masked_refinements += sum(message.refine for message in messages)
    if may_be_alone:
        unfit.masked_alone += sum(
            before.role == "assistant" and before.loss is False and not after.error
            for before, after in zip(plain, messages, strict=True)
        )


_EMPTY: tuple[object, ...] = (None, "", [], {})


def _kept(record: Mapping[str, Any], read: set[str], unfit: Unfit) -> dict[str, Any]:
    """Short values by their own names, for a person to filter by. The names of the others are counted."""
    kept: dict[str, Any] = {}
    paths: set[str] = set()
    unfit.unread.update(key for key in foreign.WORSE if record.get(key))
    left = {key: value for key, value in record.items() if key not in read and key not in foreign.WORSE}
    for name, value in foreign.nested_fields(left):
        if isinstance(value, str | int | float | bool) and len(str(value)) <= _LONGEST:
            kept[name] = value
        elif value not in _EMPTY:
            unfit.unread[name] += 1
            paths.update(_PATH.findall(json.dumps(value)))
    return kept | ({"paths": sorted(paths)[:_MOST_PATHS]} if paths else {})


_PATH = re.compile(r"[\w.-]{1,200}(?:/[\w.-]{1,200}){1,20}")
"""What may name a task: it stays, though the field that it is in goes."""
_MOST_PATHS = 50


# --- files -------------------------------------------------------------------------------------------------------

Odd = Callable[[str], Any]


def digest_of(path: Path) -> str:
    """SHA-256 of a file, or of those of a folder. Raises UserError."""
    with system_errors(f"cannot read {path}"):
        if not path.is_dir():
            return reading.sha256_of(path)
        return hashlib.sha256("".join(map(reading.sha256_of, _files_of(path))).encode()).hexdigest()


def _files_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))


def _records(path: Path, unfit: Unfit) -> Iterator[Any]:
    """The records of a file or folder; an UnfitError in place of one that is broken."""
    with system_errors(f"cannot read {path}"):
        if path.is_dir():
            for file in _files_of(path):
                yield from _records(file, unfit)
            return
        try:
            for record in (
                _parquet(path, unfit.no_number) if _starts(path, b"PAR1") else _json(path, unfit.no_number)
            ):
                yield from _rows(record)
        except (EOFError, zlib.error) as error:
            raise UserError(f"{path} is no whole gzip file: {error}") from None


def _open(path: Path) -> IO[bytes]:
    file = open_file(path)
    compressed = file.peek(2)[:2] == b"\x1f\x8b"
    return cast(IO[bytes], gzip.GzipFile(fileobj=file)) if compressed else file


def _starts(path: Path, magic: bytes) -> bool:
    with open_file(path) as file:
        return file.read(len(magic)) == magic


def _json(path: Path, odd: Odd) -> Iterator[Any]:
    """Of JSON lines, of one JSON list, or of one object over several lines."""
    with _open(path) as file:
        start = file.read(64).lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.startswith(b"["):
        try:
            yield from _whole(path, odd)
        except UnfitError as error:
            raise UserError(f"{path} begins like a JSON list and is none: {error}") from None
        return
    with _open(path) as file:
        for number, line in enumerate(filter(bytes.strip, lines_of(file))):
            try:
                record = _parsed(line, odd)
            except UnfitError as error:
                if not number and start.startswith(b"{") and (document := _document(path, odd)) is not None:
                    yield document
                    return
                record = error
            yield record


def _whole(path: Path, odd: Odd) -> Any:
    with _open(path) as file:
        text = file.read(reading.LARGEST_WHOLE + 1)
    if len(text) > reading.LARGEST_WHOLE:
        raise UnfitError("it is too large to be read at once; write it as JSON lines")
    return _parsed(text, odd)


def _document(path: Path, odd: Odd) -> Any:
    """The file as one object; None where it is none."""
    try:
        return _whole(path, odd)
    except UnfitError:
        return None


def _parsed(text: bytes, odd: Odd) -> Any:
    """Raises UnfitError."""
    try:
        return reading.parse_json(text, odd=odd)
    except ValueError as error:
        raise UnfitError(f"not JSON ({str(error).splitlines()[0][:120]})") from None


def _rows(record: Any) -> Iterator[Any]:
    """The records in what a dataset server answers; any other record itself."""
    rows = record.get("rows") if isinstance(record, dict) else None
    if isinstance(rows, list) and all(isinstance(row, dict) and "row" in row for row in rows):
        for row in rows:
            yield from _rows(row)
    elif isinstance(record, dict) and "row_idx" in record and "row" in record:
        cut = record.get("truncated_cells")
        yield UnfitError("the dataset server has cut off its cells") if cut else record["row"]
    else:
        yield record


def _parquet(path: Path, odd: Odd) -> Iterator[Any]:
    import pyarrow
    import pyarrow.parquet

    try:
        for batch in pyarrow.parquet.ParquetFile(path).iter_batches(batch_size=256):
            for row in batch.to_pylist():
                try:
                    yield {key: _as_json(value, key, odd) for key, value in row.items()}
                except UnfitError as error:
                    yield error
    except (pyarrow.ArrowException, UnicodeDecodeError) as error:
        raise UserError(f"{path} is no readable parquet file: {str(error).splitlines()[0]}") from None


def _as_json(value: Any, column: str, odd: Odd) -> Any:
    """A value of a parquet column as JSON has it: bytes are text, or nothing that can be read; times become text."""
    if isinstance(value, dict):
        return {str(key): _as_json(each, column, odd) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(each, column, odd) for each in value]
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise UnfitError(f"its column {column!r} holds bytes that are no text") from None
    if isinstance(value, float | Decimal):
        return float(value) if isfinite(value) else odd(str(value))
    return value if value is None or isinstance(value, str | int) else str(value)
