"""A model's reply -> thought and action, or a named format error. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum


class FormatError(StrEnum):
    """What was wrong with a reply's form. An action the world does not know is not among them: the world refuses it."""

    EMPTY = "empty"
    """Nothing but white space."""
    NO_ACTION = "no_action"
    """Text without an `Action:` line that says anything, and without a `Thought:` label."""
    THOUGHT_ONLY = "thought_only"
    """A thought and no action."""
    TRUNCATED = "truncated"
    """The token limit cut the reply off before its action was complete."""
    SEVERAL_ACTIONS = "several_actions"
    """More than one action; the first is carried out, the others are not."""
    INVENTED_OBSERVATION = "invented_observation"
    """The model went on to write the world's answer itself; all from there on is cut off."""


@dataclass(frozen=True)
class ParsedReply:
    thought: str
    action: str | None
    """None when the reply holds no action: the turn is spent and the model is told why."""
    kept: str
    """The part of the reply that goes into the conversation: no reasoning block, nothing after the first action."""
    errors: tuple[FormatError, ...]


_LABEL = re.compile(
    r"^[ \t>*_#`\-]*(?P<label>thought|action|observation)[ \t]*\d*[ \t]*[*_`]*[ \t]*[:：][*_`]*",
    re.IGNORECASE | re.MULTILINE,
)
_INLINE_ACTION = re.compile(r"(?<!\w)[*_`]*action[ \t]*\d*[*_`]*[ \t]*[:：][*_`]*", re.IGNORECASE)
_REASONING_END = "</think>"
_WRAPPERS = ("**", "__", "`", '"', "'", "*")

STOP_SEQUENCES = ("\nObservation:",)
"""Sent with every request, so that a model does not spend tokens on the world's side of the conversation."""


def _unwrap(text: str) -> str:
    """Take off markdown and quotes that wrap a whole action."""
    text = text.strip()
    unwrapped = True
    while unwrapped and text:
        unwrapped = False
        for mark in _WRAPPERS:
            if len(text) > 2 * len(mark) and text.startswith(mark) and text.endswith(mark):
                text, unwrapped = text[len(mark) : -len(mark)].strip(), True
    return text


def parse(reply: str, *, stopped_by: str | None = None, truncated: bool = False) -> ParsedReply:
    """Read one reply.

    `stopped_by` is the stop sequence that ended generation, if the server said so; `truncated` says that the
    token limit did.
    """
    errors: list[FormatError] = []
    head, end, rest = reply.rpartition(_REASONING_END)
    reasoning = head.replace("<think>", "").strip() if end else ""
    text = rest if end else reply
    if text.lstrip().startswith("<think>"):  # never closed: all of it is reasoning
        reasoning, text = text.lstrip()[len("<think>") :].strip(), ""

    observation = next((m for m in _LABEL.finditer(text) if m["label"].lower() == "observation"), None)
    if observation is not None:
        text = text[: observation.start()]
    if observation is not None or stopped_by in STOP_SEQUENCES:
        errors.append(FormatError.INVENTED_OBSERVATION)

    labels = list(_LABEL.finditer(text))
    starts = [m for m in labels if m["label"].lower() == "action"]
    inline = None if starts else _INLINE_ACTION.search(text)
    start = starts[0] if starts else inline
    if start is None:
        thought_label = next((m for m in labels if m["label"].lower() == "thought"), None)
        thought = text[thought_label.end() :].strip() if thought_label else text.strip()
        if truncated:
            errors.append(FormatError.TRUNCATED)
        elif thought_label is not None or (reasoning and not thought):
            errors.append(FormatError.THOUGHT_ONLY)
        elif thought or observation is not None:
            errors.append(FormatError.NO_ACTION)
        else:
            errors.append(FormatError.EMPTY)
        return ParsedReply(thought or reasoning, None, text.strip(), tuple(errors))

    section_end = next((m.start() for m in labels if m.start() > start.start()), len(text))
    section = text[start.end() : section_end]
    line = next((part for part in section.splitlines() if part.strip()), "")
    thought_start = next(
        (m.end() for m in labels if m["label"].lower() == "thought" and m.end() <= start.start()), 0
    )
    thought = text[thought_start : start.start()].strip() or reasoning
    second = len(starts) > 1 or _INLINE_ACTION.search(line) is not None
    inner = _INLINE_ACTION.search(line)
    action = _unwrap(line[: inner.start()] if inner else line)
    if not action:
        kind = FormatError.TRUNCATED if truncated else FormatError.NO_ACTION
        return ParsedReply(thought, None, text.strip(), (*errors, kind))
    if truncated and not section[section.find(line) + len(line) :] and section_end == len(text):
        # The limit fell inside the action itself: half an action is not what the model meant.
        errors.append(FormatError.TRUNCATED)
        return ParsedReply(thought, None, text.strip(), tuple(errors))
    if second:
        errors.append(FormatError.SEVERAL_ACTIONS)
    line_start = start.end() + section.find(line)
    kept = text[: line_start + (inner.start() if inner else len(line))].strip()
    return ParsedReply(thought, action, kept, tuple(errors))


_REASONS = {
    FormatError.EMPTY: "it was empty",
    FormatError.NO_ACTION: "it has no action",
    FormatError.THOUGHT_ONLY: "it has a thought but no action",
    FormatError.TRUNCATED: "it was too long and was cut off before the action was complete",
    FormatError.INVENTED_OBSERVATION: "it begins with an observation, which only the environment gives",
}


def correction(parsed: ParsedReply) -> str:
    """The observation that a reply without an action gets. It costs the turn."""
    reason = next((_REASONS[e] for e in reversed(parsed.errors) if e in _REASONS), "it has no action")
    return (
        f"Your reply was not understood: {reason}. "
        "Reply with one line that starts with 'Thought:' and one line that starts with 'Action:'."
    )
