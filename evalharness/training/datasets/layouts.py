"""Read training data in the layouts of other projects: JSON lines, JSON or parquet (also .gz, or a folder of files).

A record that cannot be read with certainty is left out and counted by reason.
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
from typing import IO, Any, cast

from evalharness.base import reading
from evalharness.base.errors import UserError, system_errors
from evalharness.base.reading import lines_of, open_file
from evalharness.base.text import printable
from evalharness.training.datasets import foreign, marks
from evalharness.training.datasets.conversation import Conversation, MarkedMessage, UnfitError
from evalharness.training.datasets.order import OrderCheck

_FEW, _NAMED = 3, 20
_LONGEST = 1000
"""The most characters of a value that stays in a conversation's metadata."""


@dataclass
class ReadReport:
    """Counts of records and fields that were left out or changed while reading."""

    reasons: Counter[str] = field(default_factory=Counter)
    first: dict[str, list[int]] = field(default_factory=dict)
    """Reason -> numbers of the first records left out for this reason, from 1."""
    fields: Counter[str] = field(default_factory=Counter)
    """Name of a record's field -> number of records with this field."""
    unread: Counter[str] = field(default_factory=Counter)
    """Name of a record's field that is left out of the data set -> number of records."""
    unread_of_messages: Counter[str] = field(default_factory=Counter)
    """Name of a message's field that is left out of the data set -> number of messages."""
    shares: int = 0
    """Trained turns whose loss weight is neither 0 nor 1; they are trained with weight 1."""
    no_numbers: int = 0
    """Values that are NaN, infinite, or too large for a float."""
    has_marks: bool = False
    """Whether any conversation of the data marks errors. If so, a masked turn is never taken as an error."""
    masked_errors: int = 0
    """Turns excluded from the loss (masked) that were marked as errors."""
    masked_alone: int = 0
    """Turns excluded from the loss, in conversations without error marks, that were not marked as errors."""
    masked_refinements: int = 0
    """Trained turns that were marked as corrections, because they follow masked errors."""
    order: OrderCheck = field(default_factory=OrderCheck)
    """Counts of conversations whose turns were out of order."""

    def add(self, number: int, reason: str) -> None:
        self.reasons[reason] += 1
        numbers = self.first.setdefault(reason, [])
        if len(numbers) < _FEW:
            numbers.append(number)

    def count_no_number(self, text: str) -> None:
        """Count a number that cannot be represented; the caller stores None instead."""
        self.no_numbers += 1

    def all_lines(self) -> list[str]:
        """Return report lines about the records that were left out of the data set or changed on the way."""
        return [*self.list_reasons(), *self.order.lines(), *self.list_masked(), *self.list_unread()]

    def list_unread(self) -> list[str]:
        """Return messages about fields and values that the data set leaves out."""
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
                f"{self.shares:,} turns have weights between 0 and 1, or above 1: they are trained like all others"
            )
        if self.no_numbers:
            lines.append(f"{self.no_numbers:,} values are NaN, infinite or too large, and count as missing")
        return lines

    def list_masked(self) -> list[str]:
        """Return messages about masked turns: how many were marked as errors, and why other masked turns were not."""
        errors, corrections, alone = self.masked_errors, self.masked_refinements, self.masked_alone
        lines = []
        if errors:
            lines.append(
                f"{errors:,} masked turn{_s(errors)} with an action and an answer marked as error{_s(errors)}, "
                f"{corrections:,} trained turn{_s(corrections)} after errors as correction{_s(corrections)}; "
                "the data itself marks no errors"
            )
        if alone:
            why = (
                "other conversations of the data mark errors"
                if self.has_marks
                else "no action (Action: ...), an acknowledgement at the beginning, or no answer"
            )
            lines.append(f"{alone:,} masked turn{_s(alone)} not marked as error{_s(alone)}: {why}")
        return lines

    def list_reasons(self) -> list[str]:
        """Return a message for each reason why records were left out, the most frequent first."""
        return [
            f"{count:,} record{'s' * (count != 1)} left out: {reason} (e.g. {', '.join(map(str, self.first[reason]))})"
            for reason, count in sorted(self.reasons.items(), key=lambda item: (-item[1], item[0]))
        ]


def _s(count: int) -> str:
    return "s" * (count != 1)


def read_any(path: Path, report: ReadReport, source: str = "general") -> Iterator[Conversation]:
    """Yield the conversations of a file in any known layout, also that of `write_data`. Raises UserError if the file
    cannot be read."""
    # Search the whole file first: a mask is taken as an error only if no conversation marks errors.
    report.has_marks = any(marks.has_marks(record) for record in _read_records(path, report))
    report.no_numbers = 0  # the second reading counts these values again
    for number, record in enumerate(_read_records(path, report), 1):
        if isinstance(record, UnfitError):
            report.add(number, str(record))
            continue
        try:
            conversation = to_conversation(record, f"{path.stem}/{number}", source, report)
        except UnfitError as error:
            report.add(number, str(error))
            continue
        ordered = report.order(conversation)
        if ordered is not None:
            yield ordered


_OURS = {"id", "source", "world", "task_hash", "messages", "metadata"}
_OURS_OF_MESSAGES = {"role", "content", "loss", "error", "refine"}


def to_conversation(record: object, name: str, source: str, report: ReadReport | None = None) -> Conversation:
    """Convert one record to a conversation. Raises UnfitError."""
    report = ReadReport() if report is None else report
    if isinstance(record, list):
        record = {"messages": record}
    if not isinstance(record, dict):
        raise UnfitError("it is no object")
    report.fields.update(str(key) for key in record)
    if {"id", "source", "world", "messages"} <= record.keys():
        return _read_own(record)
    read: set[str] = set()
    raw = marks.spread_lists(record, foreign.read_messages(record, read), read)
    texts = foreign.read_texts(record, raw, read)
    may_be_alone = not marks.has_marks(record)
    by_mask = may_be_alone and not report.has_marks
    plain = [
        MarkedMessage(text.role, text.text, marks.read_loss(text.marks) if text.role == "assistant" else None)
        for text in texts
    ]
    messages = marks.set_marks([text.marks for text in texts], plain, by_mask)
    if not any(message.role == "assistant" for message in messages):
        raise UnfitError("it has no message of the assistant")
    if marks.has_weight(record):
        report.shares += sum(message.role == "assistant" for message in messages)
    _count(report, raw, plain, messages, by_mask, may_be_alone)
    return Conversation(
        name, source, str(record.get("world", "")), None, messages, _keep_metadata(record, read, report)
    )


def _read_own(record: dict[str, Any]) -> Conversation:
    """Return the conversation of a record in the layout of `write_data`. Raises UnfitError, also if the record has
    unknown fields, because these would be lost."""
    conversation = Conversation.from_json(record)
    more = record.keys() - _OURS | {
        key for message in record["messages"] for key in message.keys() - _OURS_OF_MESSAGES
    }
    if more:
        raise UnfitError(
            f"it is in the format of evalharness, with unknown fields: {', '.join(sorted(map(repr, more)))[:200]}"
        )
    return conversation


def _count(
    report: ReadReport,
    raw: list[dict[str, Any]],
    plain: list[MarkedMessage],
    messages: tuple[MarkedMessage, ...],
    by_mask: bool,
    may_be_alone: bool,
) -> None:
    for message in raw:
        unread = [key for key in foreign.list_unread_fields(message) if message[key] not in _EMPTY]
        report.unread_of_messages.update(key for key in unread if key.lower() not in marks.READ_OF_MESSAGES)
        report.shares += foreign.read_role(message) == "assistant" and marks.has_weight(message)
    if by_mask:
        report.masked_errors += sum(bool(message.error) for message in messages)
        report.masked_refinements += sum(message.refine for message in messages)
    if may_be_alone:
        report.masked_alone += sum(
            before.role == "assistant" and before.loss is False and not after.error
            for before, after in zip(plain, messages, strict=True)
        )


_EMPTY: tuple[object, ...] = (None, "", [], {})


def _keep_metadata(record: Mapping[str, Any], read: set[str], report: ReadReport) -> dict[str, Any]:
    """Return the short values of unused fields, so that users can filter by them. Counts the names of longer values."""
    metadata: dict[str, Any] = {}
    paths: set[str] = set()
    left = {key: value for key, value in record.items() if key not in read}
    for name, value in foreign.flatten(left):
        if isinstance(value, str | int | float | bool) and len(str(value)) <= _LONGEST:
            metadata[name] = value
        elif value not in _EMPTY:
            report.unread[name] += 1
            paths.update(_PATH.findall(json.dumps(value)))
    return metadata | ({"paths": sorted(paths)[:_MOST_PATHS]} if paths else {})


_PATH = re.compile(r"[\w.-]{1,200}(?:/[\w.-]{1,200}){1,20}")
"""A path that may name a task. Paths stay in the metadata, even if the field with the path is left out."""
_MOST_PATHS = 50


# --- files -------------------------------------------------------------------------------------------------------

Odd = Callable[[str], Any]


def hash_files(path: Path) -> str:
    """Return the SHA-256 of a file, or of the hashes of a folder's files. Raises UserError."""
    with system_errors(f"cannot read {path}"):
        if not path.is_dir():
            return reading.sha256_of(path)
        return hashlib.sha256("".join(map(reading.sha256_of, _files_of(path))).encode()).hexdigest()


def _files_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))


def _read_records(path: Path, report: ReadReport) -> Iterator[Any]:
    """Yield the records of a file or folder, and an UnfitError for each broken record."""
    with system_errors(f"cannot read {path}"):
        if path.is_dir():
            for file in _files_of(path):
                yield from _read_records(file, report)
            return
        try:
            read = _read_parquet if _starts_with(path, b"PAR1") else _read_json
            yield from read(path, report.count_no_number)
        except (EOFError, zlib.error) as error:
            raise UserError(f"{path} is a damaged gzip file: {error}") from None


def _open_unzipped(path: Path) -> IO[bytes]:
    file = open_file(path)
    compressed = file.peek(2)[:2] == b"\x1f\x8b"
    return cast(IO[bytes], gzip.GzipFile(fileobj=file)) if compressed else file


def _starts_with(path: Path, magic: bytes) -> bool:
    with open_file(path) as file:
        return file.read(len(magic)) == magic


def _read_json(path: Path, odd: Odd) -> Iterator[Any]:
    """Yield the records of JSON lines, of one JSON list, or of one object on several lines."""
    with _open_unzipped(path) as file:
        start = file.read(64).lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.startswith(b"["):
        try:
            yield from _parse_whole(path, odd)
        except UnfitError as error:
            raise UserError(f"{path} begins like a JSON list and cannot be parsed: {error}") from None
        return
    with _open_unzipped(path) as file:
        for number, line in enumerate(filter(bytes.strip, lines_of(file))):
            try:
                record = _parse(line, odd)
            except UnfitError as error:
                if (
                    not number
                    and start.startswith(b"{")
                    and (document := _parse_document(path, odd)) is not None
                ):
                    yield document
                    return
                record = error
            yield record


def _parse_whole(path: Path, odd: Odd) -> Any:
    with _open_unzipped(path) as file:
        text = file.read(reading.LARGEST_WHOLE + 1)
    if len(text) > reading.LARGEST_WHOLE:
        raise UnfitError("it is too large for one JSON document; write it as JSON lines")
    return _parse(text, odd)


def _parse_document(path: Path, odd: Odd) -> Any:
    """Return the file parsed as one JSON document; None if it is not valid JSON."""
    try:
        return _parse_whole(path, odd)
    except UnfitError:
        return None


def _parse(text: bytes, odd: Odd) -> Any:
    try:
        return reading.parse_json(text, odd=odd)
    except ValueError as error:
        raise UnfitError(f"not JSON ({str(error).splitlines()[0][:120]})") from None


def _read_parquet(path: Path, odd: Odd) -> Iterator[Any]:
    import pyarrow
    import pyarrow.parquet

    try:
        for batch in pyarrow.parquet.ParquetFile(path).iter_batches(batch_size=256):
            for row in batch.to_pylist():
                try:
                    yield {key: _to_json(value, key, odd) for key, value in row.items()}
                except UnfitError as error:
                    yield error
    except (pyarrow.ArrowException, UnicodeDecodeError) as error:
        raise UserError(f"{path} is no readable parquet file: {str(error).splitlines()[0]}") from None


def _to_json(value: Any, column: str, odd: Odd) -> Any:
    """Convert a value of a parquet column to JSON: bytes must be UTF-8 text, and times become text."""
    if isinstance(value, dict):
        return {str(key): _to_json(each, column, odd) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_to_json(each, column, odd) for each in value]
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise UnfitError(f"its column {column!r} has bytes that are no UTF-8 text") from None
    if isinstance(value, float | Decimal):
        return float(value) if isfinite(value) else odd(str(value))
    return value if value is None or isinstance(value, str | int) else str(value)
