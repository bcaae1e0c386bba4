"""Training data as others write it: ShareGPT and messages layouts in JSON lines, JSON or parquet; into our samples.

What does not fit is named and counted, a reason and a record number each; nothing is guessed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evalharness.errors import UserError
from evalharness.refine.sample import Role, Sample, SampleError, SampleMessage, parse_json

_ROLES: Mapping[str, Role] = {
    "system": "system",
    "user": "user", "human": "user", "observation": "user", "environment": "user", "dm": "user",
    "assistant": "assistant", "gpt": "assistant", "chatgpt": "assistant", "model": "assistant", "bot": "assistant",
    "agent": "assistant", "player": "assistant",
}  # fmt: skip
_LISTS = ("messages", "conversations", "conversation", "dialog", "trajectory")
_TEXTS = ("content", "value", "text")
_NAMES = ("role", "from")
_LOSSES = ("loss", "train", "weight", "loss_weight", "training")
_FEW = 3


@dataclass
class Unfit:
    """Records that are no conversation."""

    reasons: Counter[str] = field(default_factory=Counter)
    first: dict[str, list[int]] = field(default_factory=dict)
    """Reason -> the first record numbers, from 1."""
    fields: Counter[str] = field(default_factory=Counter)
    """Names of the columns that were there."""

    def add(self, number: int, reason: str) -> None:
        self.reasons[reason] += 1
        numbers = self.first.setdefault(reason, [])
        if len(numbers) < _FEW:
            numbers.append(number)

    def lines(self) -> list[str]:
        """A line a reason, the commonest first."""
        return [
            f"{count:,} record{'s' * (count != 1)} left out: {reason} (e.g. {', '.join(map(str, self.first[reason]))})"
            for reason, count in sorted(self.reasons.items(), key=lambda item: (-item[1], item[0]))
        ]


def read_any(path: Path, unfit: Unfit, source: str = "general") -> Iterator[Sample]:
    """The conversations of a file in any of these layouts, our own among them, one at a time.

    Raises UserError where the file cannot be read at all.
    """
    for number, record in enumerate(_records(path, unfit), 1):
        if isinstance(record, SampleError):
            unfit.add(number, str(record))
            continue
        try:
            yield to_sample(record, f"{path.stem}/{number}", source, unfit)
        except SampleError as error:
            unfit.add(number, str(error))


def to_sample(record: object, name: str, source: str, unfit: Unfit | None = None) -> Sample:
    """Raises SampleError."""
    if isinstance(record, list):
        record = {"messages": record}
    if not isinstance(record, dict):
        raise SampleError("it is no object")
    if unfit is not None:
        unfit.fields.update(str(key) for key in record)
    if {"id", "source", "world", "messages"} <= record.keys():
        return Sample.from_json(record)
    found = next((record[key] for key in _LISTS if record.get(key)), None)
    if isinstance(found, str):
        found = parse_json(found)
    if not isinstance(found, list) or not found:
        raise SampleError(f"it has no list of messages (looked for: {', '.join(_LISTS)})")
    messages = [_message(message) for message in found]
    if isinstance(record.get("system"), str) and record["system"].strip() and messages[0].role != "system":
        messages.insert(0, SampleMessage("system", record["system"]))
    if not any(message.role == "assistant" for message in messages):
        raise SampleError("no message is the assistant's")
    metadata = {key: value for key, value in record.items() if isinstance(value, str | int | float | bool)}
    return Sample(name, source, str(record.get("world", "")), None, tuple(messages), _plain(metadata))


def _plain(metadata: dict[str, Any]) -> dict[str, Any]:
    """Short values alone, by their own names: what a person may want to filter by."""
    return {
        key: value
        for key, value in metadata.items()
        if key != "system" and not (isinstance(value, str) and len(value) > 200) and value == value
    }


def _message(message: object) -> SampleMessage:
    if not isinstance(message, dict):
        raise SampleError("a message is no object")
    role = next((message[key] for key in _NAMES if isinstance(message.get(key), str)), None)
    if role is None:
        raise SampleError(f"a message says nowhere who speaks (looked for: {', '.join(_NAMES)})")
    known = _ROLES.get(role.strip().lower())
    if known is None:
        raise SampleError("a message is of a role that is not known here (a tool's, say)")
    text = next((message[key] for key in _TEXTS if key in message), None)
    if isinstance(text, list):  # [{"type": "text", "text" or "value": ...}]
        parts = [part.get("text", part.get("value")) for part in text if isinstance(part, dict)]
        texts = [part for part in parts if isinstance(part, str)]
        text = "".join(texts) if texts and len(texts) == len(parts) else None
    if not isinstance(text, str):
        raise SampleError(f"a message has no text (looked for: {', '.join(_TEXTS)})")
    if known != "assistant":
        return SampleMessage(known, text)
    return SampleMessage(known, text, _loss(message), _errors(message), message.get("refine") is True)


def _loss(message: Mapping[str, Any]) -> bool:
    value = next((message[key] for key in _LOSSES if message.get(key) is not None), True)
    if isinstance(value, bool | int | float):
        return value > 0
    if isinstance(value, str) and value.strip().lower() in ("true", "false", "0", "1"):
        return value.strip().lower() in ("true", "1")
    raise SampleError("a message's loss is neither true nor false")


def _errors(message: Mapping[str, Any]) -> tuple[str, ...]:
    error = message.get("error")
    return tuple(kind for kind in error if isinstance(kind, str)) if isinstance(error, list) else ()


def _records(path: Path, unfit: Unfit) -> Iterator[Any]:
    """The records of a file; a SampleError in place of one that is broken."""
    try:
        with path.open("rb") as file:
            start = file.read(64)
        if start.startswith(b"PAR1"):
            yield from _parquet(path)
            return
        if start.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"["):
            yield from _whole(path)
            return
        with path.open("rb") as file:
            for line in file:
                if not line.strip():
                    continue
                try:
                    yield parse_json(line)
                except SampleError as error:
                    yield error
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None


def _whole(path: Path) -> Iterator[Any]:
    try:
        records = parse_json(path.read_bytes().removeprefix(b"\xef\xbb\xbf"))
    except SampleError as error:
        raise UserError(f"{path} begins like a JSON list and is none: {error}") from None
    yield from records


def _parquet(path: Path) -> Iterator[Any]:
    import pyarrow
    import pyarrow.parquet

    try:
        for batch in pyarrow.parquet.ParquetFile(path).iter_batches(batch_size=256):
            for row in batch.to_pylist():
                # Times and decimals become text, so that what is kept is JSON.
                yield json.loads(json.dumps(row, default=str))
    except pyarrow.ArrowException as error:
        raise UserError(f"{path} is no readable parquet file: {str(error).splitlines()[0]}") from None
