"""Read loss masks and error marks from other projects' data. A mask says whether a turn is trained; a mark says whether
it is an error or a correction.

If data has masks but no marks, `_errors_by_mask` derives error marks from the masks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from evalharness.protocol import react
from evalharness.training.datasets.conversation import MarkedMessage, UnfitError
from evalharness.training.datasets.foreign import list_messages, read_role, says_no
from evalharness.training.datasets.modes import mark_turns

_LOSSES = ("loss", "train", "weight", "loss_weight", "training", "loss_mask", "loss_scale", "trainable", "trained",
           "is_trained", "is_train", "train_on", "train_on_turn")  # fmt: skip
_ERRORS = ("error", "errors")
_ERROR_FLAGS = ("parameter_error", "place_error", "logic_error")
"""Flags in the turns of AgentRefine's Dungeon Master (the simulator) about the player's previous turn."""
_VERDICTS = ("label", "correct", "is_correct", "valid", "is_valid")
"""Fields of a turn that mark an error if their value is negative. `success` and `reward` are not among these fields,
because they are 0 on most turns."""
_MARKS = (*_ERRORS, *_ERROR_FLAGS, *_VERDICTS, "refine")
READ_OF_MESSAGES = frozenset((*_LOSSES, *_MARKS))
"""Message fields that this module reads."""
MASKED, UNNAMED = "masked", "unnamed"
"""Kinds of error: `masked` for an error derived from a loss mask, `unnamed` for a mark that names no kind."""
_ACT = re.compile(r"^[ \t>*_#`\-]*act[ \t]*[*_`]*:", re.IGNORECASE | re.MULTILINE)
"""The label `Act:` that AgentInstruct puts before an action. Agents in a run must write `Action:`."""


def spread_lists(
    record: Mapping[str, Any], raw: Sequence[Mapping[str, Any]], read: set[str]
) -> list[dict[str, Any]]:
    """Return the messages, with the values of the record's mask and mark lists added to them. A list has one value for
    each message, or one for each assistant's message."""
    messages = [dict(message) for message in raw]
    own = [at for at, message in enumerate(messages) if read_role(message) == "assistant"]
    for key in (*_LOSSES, *_ERRORS, *_ERROR_FLAGS):
        values = record.get(key)
        if not isinstance(values, list):
            continue
        if len(values) not in (len(messages), len(own)):
            raise UnfitError(
                f"its list {key!r} must have a value for each message, or for each assistant message"
            )
        places = range(len(messages)) if len(values) == len(messages) else own
        read.add(key)
        for at, value in zip(places, values, strict=True):
            messages[at].setdefault(key, value)
    return messages


def read_loss(message: Mapping[str, Any]) -> bool | None:
    """Return whether the message is trained; None if the message has no field about it."""
    values = {_read_truth(message[key], "loss") for key in _LOSSES if message.get(key) is not None}
    if len(values) > 1:
        raise UnfitError("a message's masks disagree: one says trained, another not")
    return values.pop() if values else None


def has_weight(message: Mapping[str, Any]) -> bool:
    """Return whether the message has a weight other than 0 or 1. Such weights are not supported."""
    return any(
        isinstance(message.get(key), int | float) and message[key] > 0 and message[key] != 1
        for key in _LOSSES
    )


def _read_truth(value: object, what: str) -> bool:
    if isinstance(value, bool | int | float):
        return value > 0
    if isinstance(value, str) and value.strip().lower() in ("true", "false", "0", "1"):
        return value.strip().lower() in ("true", "1")
    raise UnfitError(f"a message's {what} is neither true nor false")


def has_marks(record: object) -> bool:
    """Return whether the conversation marks any turn as an error, as right, or as a correction."""
    return any(
        isinstance(place, Mapping) and any(_has_value(place.get(key)) for key in _MARKS)
        for place in (record, *list_messages(record))
    )


def _has_value(value: object) -> bool:
    return any(each is not None for each in value) if isinstance(value, list) and value else value is not None


def set_marks(
    raw: Sequence[Mapping[str, Any]], messages: Sequence[MarkedMessage], by_mask: bool
) -> tuple[MarkedMessage, ...]:
    """Return the messages with errors and corrections set: from loss masks if `by_mask`, otherwise from the data's
    marks."""
    says = [_read_errors(message) for message in raw]
    errors = [() if message.role != "assistant" else says[at] or () for at, message in enumerate(messages)]
    # A Dungeon Master's message has the flags of the player's previous turn.
    for at, message in enumerate(messages):
        if message.role == "user" and says[at] and at and messages[at - 1].role == "assistant":
            errors[at - 1] = errors[at - 1] or says[at] or ()
    if by_mask:
        errors = _errors_by_mask(messages)
    done = mark_turns(replace(message, error=error) for message, error in zip(messages, errors, strict=True))
    if any(message.get("refine") is not None for message in raw):
        done = tuple(
            replace(message, refine=message.role == "assistant" and own.get("refine") is True)
            for message, own in zip(done, raw, strict=True)
        )
    return done


_ACKNOWLEDGES = re.compile(
    r"\W*(ok(ay)?|sure|understood|got it|certainly|of course|all ?right|yes|i understand)\b", re.IGNORECASE
)
"""Matches a first reply such as "OK. I'll follow your instructions". AgentGym's data masks this reply, which is no
error, even if it quotes the format of an action."""


def _errors_by_mask(messages: Sequence[MarkedMessage]) -> list[tuple[str, ...]]:
    """Return each message's kinds of error. A masked turn with an action and an answer is an error. An acknowledgement
    as the first reply is not."""
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


def _read_errors(message: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return the kinds of error that the message names; None if the message has no field about errors."""
    kinds: list[str] | None = None
    for key in _ERRORS:
        if message.get(key) is not None:
            kinds = [*(kinds or []), *_read_kinds(message[key])]
    for key in _ERROR_FLAGS:
        if message.get(key) is not None:
            kinds = [*(kinds or []), *([_read_kind(key)] if _read_truth(message[key], key) else [])]
    for key in _VERDICTS:
        if message.get(key) is not None:
            kinds = [*(kinds or []), *([UNNAMED] if says_no(message[key]) else [])]
    return None if kinds is None else tuple(dict.fromkeys(kinds))


def _read_kinds(value: object) -> list[str]:
    if isinstance(value, dict):
        return [
            _read_kind(name)
            for name, holds in value.items()
            if holds is not None and _read_truth(holds, "error")
        ]
    if isinstance(value, list):
        if any(isinstance(each, list) for each in value):
            raise UnfitError("a message's error is no list of names")
        return [kind for each in value for kind in _read_kinds(each)]
    if isinstance(value, str):
        text = value.strip().lower()
        if text in ("", "none", "no", "null", "false", "0"):
            return []
        return [UNNAMED if text in ("true", "yes", "1") else _read_kind(text)]
    return [UNNAMED] if _read_truth(value, "error") else []


def _read_kind(name: str) -> str:
    """Return the kind of error without the ending `_error`; `unnamed` if the text cannot be a name."""
    kind = str(name).strip().lower().removesuffix("_error")
    return kind if re.fullmatch(r"[a-z][a-z0-9_-]{0,30}", kind) else UNNAMED
