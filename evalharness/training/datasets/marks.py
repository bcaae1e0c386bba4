"""What training data says of its turns: which are trained (masks), which were errors and corrections (marks).

Of data that says which turns are trained and not why, the mask makes the marks: see `_errors_by_mask`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from evalharness.protocol import react
from evalharness.training.datasets.conversation import MarkedMessage, UnfitError
from evalharness.training.datasets.foreign import listed_messages, role_of, says_no
from evalharness.training.datasets.modes import marked

_LOSSES = ("loss", "train", "weight", "loss_weight", "training", "loss_mask", "loss_scale", "trainable", "trained",
           "is_trained", "is_train", "train_on", "train_on_turn")  # fmt: skip
_ERRORS = ("error", "errors")
_ERROR_FLAGS = ("parameter_error", "place_error", "logic_error")
"""As AgentRefine's Dungeon Master says them of the turn before its own."""
_VERDICTS = ("label", "correct", "is_correct", "valid", "is_valid")
"""Of a turn: an error if it says no. A `success` or a `reward` of 0 is no such: most turns of an episode have it."""
_MARKS = (*_ERRORS, *_ERROR_FLAGS, *_VERDICTS, "refine")
READ_OF_MESSAGES = frozenset((*_LOSSES, *_MARKS, "is_copied_context"))
"""Fields of messages that are read here."""
MASKED, UNNAMED = "masked", "unnamed"
"""Kinds of error: one that a mask alone tells of, and one that a mark gives no name."""
_ACT = re.compile(r"^[ \t>*_#`\-]*act[ \t]*[*_`]*:", re.IGNORECASE | re.MULTILINE)
"""The label that AgentInstruct puts before an action; a run does not accept it as an action label."""


def with_listed_marks(
    record: Mapping[str, Any], found: Sequence[Mapping[str, Any]], read: set[str]
) -> list[dict[str, Any]]:
    """The messages, each with its value of the masks and marks that stand beside them as a list: a value for each
    message or for each of the assistant's."""
    messages = [dict(message) for message in found]
    own = [at for at, message in enumerate(messages) if role_of(message) == "assistant"]
    for key in (*_LOSSES, *_ERRORS, *_ERROR_FLAGS):
        values = record.get(key)
        if not isinstance(values, list):
            continue
        if len(values) not in (len(messages), len(own)):
            raise UnfitError(
                f"its list {key!r} has a value neither for each message nor for each assistant's"
            )
        places = range(len(messages)) if len(values) == len(messages) else own
        read.add(key)
        for at, value in zip(places, values, strict=True):
            messages[at].setdefault(key, value)
    return messages


def loss_of(message: Mapping[str, Any]) -> bool | None:
    """None where nothing says whether the message is trained."""
    found = {_truth(message[key], "loss") for key in _LOSSES if message.get(key) is not None}
    if message.get("is_copied_context"):  # ATIF: said in an earlier trajectory
        return False
    if len(found) > 1:
        raise UnfitError("a message's masks disagree about whether it is trained")
    return found.pop() if found else None


def has_share(message: Mapping[str, Any]) -> bool:
    """Whether a weight says that the message is trained more or less than others, which is not done here."""
    return any(
        isinstance(message.get(key), int | float) and message[key] > 0 and message[key] != 1
        for key in _LOSSES
    )


def _truth(value: object, what: str) -> bool:
    if isinstance(value, bool | int | float):
        return value > 0
    if isinstance(value, str) and value.strip().lower() in ("true", "false", "0", "1"):
        return value.strip().lower() in ("true", "1")
    raise UnfitError(f"a message's {what} is neither true nor false")


def has_marks(record: object) -> bool:
    """Whether a conversation says of any turn that it was an error, was none, or corrected one."""
    return any(
        isinstance(place, Mapping) and any(_says_something(place.get(key)) for key in _MARKS)
        for place in (record, *listed_messages(record))
    )


def _says_something(value: object) -> bool:
    return any(each is not None for each in value) if isinstance(value, list) and value else value is not None


def with_marks(
    raw: Sequence[Mapping[str, Any]], messages: Sequence[MarkedMessage], by_mask: bool
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
    for key in _VERDICTS:
        if message.get(key) is not None:
            kinds = [*(kinds or []), *([UNNAMED] if says_no(message[key]) else [])]
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
