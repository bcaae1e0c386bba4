"""Parse a model's reply in the ReAct format: find the thought, the action, and format errors."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Any

from evalharness.protocol.marks import (
    MARKS_ALONE,
    OPENING,
    cut_template_tokens,
    drop_closing_marks,
    plain_spaces,
    strip_marks,
)
from evalharness.protocol.reasoning import split_reasoning


class FormatError(StrEnum):
    """Errors in the format of a reply. An unknown action is no format error, because the environment refuses it."""

    EMPTY = "empty"
    """The reply has only white space."""
    NO_ACTION = "no_action"
    """The reply has neither a non-empty `Action:` line nor a `Thought:` label."""
    THOUGHT_ONLY = "thought_only"
    """The reply has a thought, but no action."""
    TRUNCATED = "truncated"
    """The token limit cut the reply off before its action was complete."""
    REASONING_TRUNCATED = "reasoning_truncated"
    """The token limit cut the reply off inside its reasoning, so that there is no answer."""
    SEVERAL_ACTIONS = "several_actions"
    """The reply has more than one action. The harness plays the first action, or with some agents no action."""
    INVENTED_OBSERVATION = "invented_observation"
    """The model itself wrote an observation, or a stop sequence prevented this. The reply is cut off there."""
    BAD_CALL = "bad_call"
    """The reply calls another tool than `act`, or `act` without a command (`--agent tools`)."""
    ECHOED_OBSERVATION = "echoed_observation"
    """The reply begins with an observation, and a thought or action follows. The observation is left out."""
    PROTOCOL_INVALID = "protocol_invalid"
    """The protocol of another group (`--protocol`) counts the reply as invalid, although its action is played."""


@dataclass(frozen=True)
class ParsedReply:
    thought: str
    action: str | None
    """The action; None if the reply has no action. Then the model gets a correction, and the turn is lost."""
    kept: str
    """The reply without its reasoning and without any text after the first action. Later prompts contain this text."""
    errors: tuple[FormatError, ...]
    reasoning: str = ""
    """The model's reasoning before its answer. An action in the reasoning is never played."""

    def conversation_text(self, *, keep_thinking: bool = False) -> str:
        """Return the reply as a message, which is never empty, because some servers refuse empty messages."""
        if keep_thinking and self.reasoning:
            return f"<think>\n{self.reasoning}\n</think>\n\n{self.kept}".rstrip()
        return self.kept or "(no reply)"


# A model can repeat one character for ten thousand tokens. So the time of each search may grow only linearly with the
# length of the reply. Therefore quantifiers are possessive (`*+`) or bounded, and searches backwards are limited.
_LABEL_END = r"[ \t]*+\d*+[ \t]*+[*_`]*+[ \t]*+[:：][*_`]*+"
_LABEL = re.compile(
    rf"^(?:[ \t>#\-]|{OPENING})*+(?P<label>thought|action|observation){_LABEL_END}",
    re.IGNORECASE | re.MULTILINE,
)
_INLINE_LABEL = re.compile(
    rf"(?<!\w)(?P<marks>{OPENING}{{0,8}}+)(?P<label>thought|action|observation){_LABEL_END}", re.IGNORECASE
)
_LOOK_BACK = 200
"""Number of characters before an `Action:` that `_begins_action` reads."""
_SENTENCE_END = re.compile(r"[.!?;:。！？；：…)\]\"'”’*_`\n][ \t]*\Z")
_NAMES_AN_ACTION = re.compile(
    r"\b(?:an?|the|this|that|my|your|its|our|each|every|any|same|one|other|first|second|third|last|latest|final|"
    r"previous|next|new|old|current|following|possible|valid|invalid|right|wrong|best|good|bad|only)[ \t]*\Z",
    re.IGNORECASE,
)
_NEXT = re.compile(r"(?:\A|\n)[ \t>*_#`\-]*(?:(?:my|the)[ \t]+)?(?:next|final)[ \t]*\Z", re.IGNORECASE)
_MOST_LABELS = 4
"""Maximum number of labels that are skipped before an action; `Action: Action: look` has two labels."""
_MARKS = "*_`\"'~ \t"
"""If a text has only these characters, it is not an action."""
_BETWEEN = ",;|→-> \t"
"""Characters that may stand between an action and the next label in the same line."""
STOP_SEQUENCES = ("\nObservation:",)
"""Stop sequences of every request, so that a model does not continue with observations of its own."""


def _begins_action(text: str, match: re.Match[str]) -> bool:
    """Return whether an `Action:` inside a line begins an action: after a sentence, after `next` at the beginning of a
    line, or with a capital letter or marks, unless it is a noun ("the previous Action: go north failed")."""
    if match["label"].lower() != "action":
        return False
    end = match.start()
    part = max(0, end - _LOOK_BACK), end
    begins = end <= _LOOK_BACK and not text[:end].strip()
    if begins or _SENTENCE_END.search(text, *part) or _NEXT.search(text, *part):
        return True
    return bool(match["marks"] or match["label"][0] == "A") and not _NAMES_AN_ACTION.search(text, *part)


def reasoning_in(reply: str) -> str:
    """Return the reasoning in the text of a reply; "" if there is no reasoning."""
    return split_reasoning(reply)[0]


def answer_in(reply: str) -> str:
    """Return the reply without reasoning and without tokens of a chat template."""
    return cut_template_tokens(split_reasoning(reply)[1])[0].strip()


def template_token_in(reply: str) -> str:
    """Return the first token of a chat template that the server has not removed from the answer, or ""."""
    return cut_template_tokens(split_reasoning(reply)[1])[1]


def _without_echo(text: str) -> tuple[str, bool]:
    """Remove an observation at the start of a reply if a thought or action follows. Return (text, whether removed)."""
    labels = list(_LABEL.finditer(text))
    if not labels or labels[0]["label"].lower() != "observation" or text[: labels[0].start()].strip():
        return text, False
    later = next((m for m in labels if m["label"].lower() != "observation"), None)
    return (text, False) if later is None else (text[later.start() :], True)


def parse(
    reply: str, *, reasoning: str = "", stopped_by: str | None = None, truncated: bool = False
) -> ParsedReply:
    """Parse a reply.

    `reasoning`: reasoning that the server sent in a separate field; reasoning in `reply` is found, too. `stopped_by`:
    stop sequence that ended the reply, if the server told it. `truncated`: whether the token limit ended the reply.
    """
    errors: list[FormatError] = []
    thinking, text = split_reasoning(reply)
    reasoning = "\n".join(filter(None, (reasoning.strip(), thinking)))
    whole = plain_spaces(text)
    text, _ = cut_template_tokens(whole)
    truncated = truncated and whole.endswith(text)  # the text before a template token is complete
    text, echoed = _without_echo(text)
    if echoed:
        errors.append(FormatError.ECHOED_OBSERVATION)

    labels = list(_LABEL.finditer(text))
    observation = next((m for m in labels if m["label"].lower() == "observation"), None)
    if observation is not None:
        text = text[: observation.start()]
        labels = labels[: labels.index(observation)]
    if observation is not None or stopped_by in STOP_SEQUENCES:
        errors.append(FormatError.INVENTED_OBSERVATION)

    thought_label = next((m for m in labels if m["label"].lower() == "thought"), None)
    ends = [*(m.start() for m in labels[1:]), len(text)]
    sections = [(m, end) for m, end in zip(labels, ends, strict=False) if m["label"].lower() == "action"]
    # An empty `Action:` before another `Action:` is a repeated label.
    starts = [(m, end) for m, end in sections if text[m.end() : end].strip()] or sections[:1]
    if not starts:
        inline = (m for m in _INLINE_LABEL.finditer(text) if _begins_action(text, m))
        starts = [(m, next((end for end in ends if end > m.start()), len(text))) for m in islice(inline, 1)]
    if not starts:
        thought = text.strip()
        if thought_label is not None:
            thought = drop_closing_marks(text[thought_label.end() :], [thought_label[0]])
        if truncated:
            inside = reasoning and not text.strip()
            errors.append(FormatError.REASONING_TRUNCATED if inside else FormatError.TRUNCATED)
        elif thought_label is not None or (reasoning and not thought):
            errors.append(FormatError.THOUGHT_ONLY)
        elif thought or observation is not None:
            errors.append(FormatError.NO_ACTION)
        else:
            errors.append(FormatError.EMPTY)
        return ParsedReply(thought, None, text.strip(), tuple(errors), reasoning)

    start, section_end = starts[0]
    thought = text[: start.start()].strip()
    if thought_label is not None and thought_label.end() <= start.start():
        thought = drop_closing_marks(text[thought_label.end() : start.start()], [thought_label[0]])
    openings = [start[0], *(m[0] for m in labels[:1])]
    place = start.end()
    for _ in range(_MOST_LABELS):
        line_start, line_end = _first_line(text, place, section_end)
        inner = _INLINE_LABEL.search(text, line_start, line_end)
        if inner is None or inner["label"].lower() != "action" or text[line_start : inner.start()].strip():
            break
        openings.append(inner[0])
        place = inner.end()
    line_end = inner.start() if inner else line_end
    if inner and inner["label"].lower() == "observation" and FormatError.INVENTED_OBSERVATION not in errors:
        errors.append(FormatError.INVENTED_OBSERVATION)
    line = text[line_start:line_end]
    action = strip_marks(line.rstrip(_BETWEEN) if inner else line, openings)
    if not action.strip(_MARKS):
        kind = FormatError.TRUNCATED if truncated else FormatError.NO_ACTION
        return ParsedReply(thought, None, text.strip(), (*errors, kind), reasoning)
    if truncated and not inner and line_end == len(text):
        # The token limit may have cut off the end of the action, so do not play it.
        errors.append(FormatError.TRUNCATED)
        return ParsedReply(thought, None, text.strip(), tuple(errors), reasoning)
    if len(starts) > 1 or (inner and inner["label"].lower() == "action"):
        errors.append(FormatError.SEVERAL_ACTIONS)
    return ParsedReply(thought, action, text[:line_end].strip(), tuple(errors), reasoning)


def _first_line(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the start and end of the first line with other text than marks; (end, end) if there is no such line."""
    for part in text[start:end].splitlines(keepends=True):
        line = part.splitlines()[0]
        if line.strip() and not MARKS_ALONE.fullmatch(line):
            return start, start + len(line)
        start += len(part)
    return end, end


_REASONS = {
    FormatError.EMPTY: "it was empty",
    FormatError.NO_ACTION: "it has no action",
    FormatError.THOUGHT_ONLY: "it has a thought but no action",
    FormatError.TRUNCATED: "it was too long and was cut off before the action was complete",
    FormatError.REASONING_TRUNCATED: "your reasoning was too long, and the reply was cut off before its answer began",
    FormatError.INVENTED_OBSERVATION: "it begins with an observation, which only the environment gives",
}


def correction(parsed: ParsedReply) -> str:
    """Return the text that the model gets instead of an observation if its reply has no action."""
    reason = next((_REASONS[e] for e in reversed(parsed.errors) if e in _REASONS), "it has no action")
    return (
        f"Your reply was not understood: {reason}. "
        "Reply with one line that starts with 'Thought:' and one line that starts with 'Action:'."
    )


def turn_messages(
    parsed: ParsedReply, observation: str, *, keep_thinking: bool = False
) -> list[dict[str, Any]]:
    """Return the two messages that a turn adds to the conversation: reply and observation."""
    return [
        {"role": "assistant", "content": parsed.conversation_text(keep_thinking=keep_thinking)},
        {"role": "user", "content": f"Observation: {observation}"},
    ]
