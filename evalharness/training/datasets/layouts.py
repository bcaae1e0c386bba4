"""Training data as others write it: ShareGPT and messages layouts in JSON lines, JSON or parquet; into ours.

What does not fit is named and counted, a reason and a record number each; nothing is guessed. Of data that says which
turns are trained and not why, the mask makes the marks: see `_errors_by_mask`.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from evalharness.base.errors import UserError, system_errors
from evalharness.base.reading import lines_of, open_file, read_bytes
from evalharness.protocol import react
from evalharness.training.datasets.conversation import (
    Conversation,
    MarkedMessage,
    Role,
    UnfitError,
    parse_json,
)
from evalharness.training.datasets.modes import marked
from evalharness.training.datasets.order import OrderCheck

_ROLES: Mapping[str, Role] = {
    "system": "system",
    "user": "user", "human": "user", "observation": "user", "environment": "user", "dm": "user",
    "assistant": "assistant", "gpt": "assistant", "chatgpt": "assistant", "model": "assistant", "bot": "assistant",
    "agent": "assistant", "player": "assistant", "bing": "assistant", "bard": "assistant",
    "tool": "user", "function": "user", "function_response": "user", "function_result": "user",
    "tool_response": "user", "ipython": "user", "function_call": "assistant", "tool_call": "assistant",
}  # fmt: skip
_TOOLS = ("tool", "function", "function_response", "function_result", "tool_response", "ipython", "function_call",
          "tool_call")  # fmt: skip
"""Speakers that stand for a call of a tool, or for what it answered."""
_LISTS = ("messages", "conversations", "conversation", "dialog", "trajectory")
_TEXTS = ("content", "value", "text")
_NAMES = ("role", "from")
_LOSSES = ("loss", "train", "weight", "loss_weight", "training", "loss_mask")
_ERRORS = ("error", "errors")
_ERROR_FLAGS = ("parameter_error", "place_error", "logic_error")
"""As AgentRefine's Dungeon Master says them of the turn before its own."""
_MARKS = (*_ERRORS, *_ERROR_FLAGS, "refine")
_FEW = 3
MaskedTurns = Literal["errors", "ignore"]
MASKED, UNNAMED = "masked", "unnamed"
"""Kinds of error: one that a mask alone tells of, and one that a mark gives no name."""
_ACT = re.compile(r"^[ \t>*_#`\-]*act[ \t]*[*_`]*:", re.IGNORECASE | re.MULTILINE)
"""AgentInstruct's label for an action, which a run does not take for one."""


@dataclass
class Unfit:
    """Records that are no conversation."""

    reasons: Counter[str] = field(default_factory=Counter)
    first: dict[str, list[int]] = field(default_factory=dict)
    """Reason -> the first record numbers, from 1."""
    fields: Counter[str] = field(default_factory=Counter)
    """Names of the columns that were there."""
    message_fields: Counter[str] = field(default_factory=Counter)
    """Names of what stood on messages."""
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
    unfit.has_marks = masked == "errors" and any(_has_marks(record) for record in _records(path, unfit))
    for number, record in enumerate(_records(path, unfit), 1):
        if isinstance(record, UnfitError):
            unfit.add(number, str(record))
            continue
        try:
            conversation = to_conversation(record, f"{path.stem}/{number}", source, unfit, masked)
        except UnfitError as error:
            unfit.add(number, str(error))
            continue
        ordered = unfit.order(conversation, tools=_has_tools(record))
        if ordered is not None:
            yield ordered
    unfit.order.require()


def _listed(record: object) -> object:
    """What stands where a record has its messages: a list, also one as JSON text. Raises UnfitError."""
    found = record
    if isinstance(record, Mapping):
        found = next((record[key] for key in _LISTS if record.get(key)), None)
    return parse_json(found) if isinstance(found, str) else found


def _messages_of(record: object) -> list[Any]:
    """Empty where there are none."""
    try:
        found = _listed(record)
    except UnfitError:
        return []
    return found if isinstance(found, list) else []


def _has_tools(record: object) -> bool:
    return any(
        isinstance(message, Mapping)
        and any(str(message.get(key, "")).strip().lower() in _TOOLS for key in _NAMES)
        for message in _messages_of(record)
    )


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
        return Conversation.from_json(record)
    found = _listed(record)
    if not isinstance(found, list) or not found:
        raise UnfitError(f"it has no list of messages (looked for: {', '.join(_LISTS)})")
    raw = _with_lists_of_the_record(record, found)
    unfit.message_fields.update(str(key) for message in raw for key in message)
    by_mask = masked == "errors" and not unfit.has_marks and not _has_marks(record)
    plain = [_message(message) for message in raw]
    messages = _marked(raw, plain, by_mask, unfit)
    if masked == "errors" and not _has_marks(record):
        unfit.masked_alone += sum(
            before.role == "assistant" and before.loss is False and not after.error
            for before, after in zip(plain, messages, strict=True)
        )
    if isinstance(record.get("system"), str) and record["system"].strip() and messages[0].role != "system":
        messages = (MarkedMessage("system", record["system"]), *messages)
    if not any(message.role == "assistant" for message in messages):
        raise UnfitError("no message is the assistant's")
    return Conversation(name, source, str(record.get("world", "")), None, messages, _plain(record))


def _plain(record: Mapping[str, Any]) -> dict[str, Any]:
    """Short values alone, by their own names: what a person may want to filter by."""
    return {
        key: value
        for key, value in record.items()
        if isinstance(value, str | int | float | bool) and key != "system" and value == value
        if not (isinstance(value, str) and len(value) > 200)
    }


def _message(message: Mapping[str, Any]) -> MarkedMessage:
    """Without its marks."""
    role = _role(message)
    text = next((message[key] for key in _TEXTS if key in message), None)
    if isinstance(text, list):  # [{"type": "text", "text" or "value": ...}]
        parts = [part.get("text", part.get("value")) for part in text if isinstance(part, dict)]
        texts = [part for part in parts if isinstance(part, str)]
        text = "".join(texts) if texts and len(texts) == len(parts) else None
    if not isinstance(text, str):
        raise UnfitError(f"a message has no text (looked for: {', '.join(_TEXTS)})")
    return MarkedMessage(role, text, _loss(message) if role == "assistant" else None)


def _role(message: Mapping[str, Any]) -> Role:
    role = next((message[key] for key in _NAMES if isinstance(message.get(key), str)), None)
    if role is None:
        raise UnfitError(f"a message says nowhere who speaks (looked for: {', '.join(_NAMES)})")
    known = _ROLES.get(role.strip().lower())
    if known is None:
        raise UnfitError("a message is of a role that is not known here")
    return known


def _with_lists_of_the_record(record: Mapping[str, Any], found: Sequence[Any]) -> list[dict[str, Any]]:
    """The messages, each with its value of the masks and marks that stand beside them as a list: a value for each
    message or for each of the assistant's."""
    if not all(isinstance(message, dict) for message in found):
        raise UnfitError("a message is no object")
    messages: list[dict[str, Any]] = [dict(message) for message in found]
    own = [at for at, message in enumerate(messages) if _role(message) == "assistant"]
    for key in (*_LOSSES, *_ERRORS, *_ERROR_FLAGS):
        values = record.get(key)
        if not isinstance(values, list):
            continue
        if len(values) not in (len(messages), len(own)):
            raise UnfitError(
                f"its list {key!r} has a value neither for each message nor for each assistant's"
            )
        places = range(len(messages)) if len(values) == len(messages) else own
        for at, value in zip(places, values, strict=True):
            messages[at].setdefault(key, value)
    return messages


def _loss(message: Mapping[str, Any]) -> bool | None:
    """None where nothing says whether the message is trained."""
    found = {_truth(message[key], "loss") for key in _LOSSES if message.get(key) is not None}
    if len(found) > 1:
        raise UnfitError("a message's masks disagree about whether it is trained")
    return found.pop() if found else None


def _truth(value: object, what: str) -> bool:
    if isinstance(value, bool | int | float):
        return value > 0
    if isinstance(value, str) and value.strip().lower() in ("true", "false", "0", "1"):
        return value.strip().lower() in ("true", "1")
    raise UnfitError(f"a message's {what} is neither true nor false")


# --- marks -------------------------------------------------------------------------------------------------------


def _has_marks(record: object) -> bool:
    """Whether a conversation says of any turn that it was an error, was none, or corrected one."""
    return any(
        isinstance(place, Mapping) and any(_says_something(place.get(key)) for key in _MARKS)
        for place in (record, *_messages_of(record))
    )


def _says_something(value: object) -> bool:
    return any(each is not None for each in value) if isinstance(value, list) and value else value is not None


def _marked(
    raw: Sequence[Mapping[str, Any]], messages: Sequence[MarkedMessage], by_mask: bool, unfit: Unfit
) -> tuple[MarkedMessage, ...]:
    """With errors and refinements: those that the data marks, else those that its mask tells of."""
    says = [_errors(message) for message in raw]
    errors = [() if message.role != "assistant" else says[at] or () for at, message in enumerate(messages)]
    for at, message in enumerate(messages):  # the world's message says what was wrong with the turn before it
        if message.role == "user" and says[at] and at and messages[at - 1].role == "assistant":
            errors[at - 1] = errors[at - 1] or says[at] or ()
    if by_mask:
        errors = _errors_by_mask(messages)
    done = marked(replace(message, error=error) for message, error in zip(messages, errors, strict=True))
    if by_mask:
        unfit.masked_errors += sum(bool(error) for error in errors)
        unfit.masked_refinements += sum(message.refine for message in done)
    if any(message.get("refine") is not None for message in raw):
        done = tuple(
            replace(message, refine=message.role == "assistant" and own.get("refine") is True)
            for message, own in zip(done, raw, strict=True)
        )
    return done


_ACKNOWLEDGES = re.compile(
    r"\W*(ok(ay)?|sure|understood|got it|certainly|of course|all ?right|yes|i understand)\b", re.IGNORECASE
)
"""An opening "OK. I'll follow your instructions" (masked in AgentGym's data), which may quote the form of an action."""


def _errors_by_mask(messages: Sequence[MarkedMessage]) -> list[tuple[str, ...]]:
    """A masked turn that acts and is answered is an error turn, but for an acknowledgement before the first task."""
    following = [*messages[1:], None]
    first = next((message for message in messages if message.role == "assistant"), None)
    return [
        (MASKED,)
        if message.role == "assistant"
        and message.loss is False
        and not (message is first and _ACKNOWLEDGES.match(message.content))
        and after is not None
        and after.role == "user"
        and (_ACT.search(message.content) or react.parse(message.content).action is not None)
        else ()
        for message, after in zip(messages, following, strict=True)
    ]


def _errors(message: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Kinds of error that the message names; None where it says nothing of errors."""
    kinds: list[str] | None = None
    for key in _ERRORS:
        if message.get(key) is not None:
            kinds = [*(kinds or []), *_kinds(message[key])]
    for key in _ERROR_FLAGS:
        if message.get(key) is not None:
            kinds = [*(kinds or []), *([_kind(key)] if _truth(message[key], key) else [])]
    return None if kinds is None else tuple(dict.fromkeys(kinds))


def _kinds(value: object) -> list[str]:
    if isinstance(value, dict):
        return [_kind(name) for name, holds in value.items() if holds is not None and _truth(holds, "error")]
    if isinstance(value, list):
        if any(isinstance(each, list) for each in value):
            raise UnfitError("a message's error is no list of names")
        return [kind for each in value for kind in _kinds(each)]
    if isinstance(value, str):
        text = value.strip().lower()
        if text in ("", "none", "no", "null", "false", "0"):
            return []
        return [UNNAMED if text in ("true", "yes", "1") else _kind(text)]
    return [UNNAMED] if _truth(value, "error") else []


def _kind(name: str) -> str:
    """`place_error` -> `place`; what is no name but a sentence has none."""
    kind = str(name).strip().lower().removesuffix("_error")
    return kind if re.fullmatch(r"[a-z][a-z0-9_-]{0,30}", kind) else UNNAMED


def _records(path: Path, unfit: Unfit) -> Iterator[Any]:
    """The records of a file; an UnfitError in place of one that is broken."""
    with system_errors(f"cannot read {path}"):
        with open_file(path) as file:
            start = file.read(64)
        if start.startswith(b"PAR1"):
            yield from _parquet(path)
            return
        if start.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"["):
            yield from _whole(path)
            return
        with open_file(path) as file:
            for line in lines_of(file):
                if not line.strip():
                    continue
                try:
                    yield parse_json(line)
                except UnfitError as error:
                    yield error


def _whole(path: Path) -> Iterator[Any]:
    try:
        records = parse_json(read_bytes(path))
    except UnfitError as error:
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
    except (pyarrow.ArrowException, UnicodeDecodeError) as error:
        raise UserError(f"{path} is no readable parquet file: {str(error).splitlines()[0]}") from None
