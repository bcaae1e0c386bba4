"""Choose the turns to train on, by the AgentRefine paper's method (`full`) or an ablation of its table 2.

A message with `error` is a wrong turn of the player. A message with `refine` is the first right turn after errors.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

from evalharness.training.datasets.conversation import Conversation, MarkedMessage

Mode = Literal["full", "no_refine_loss", "no_refine_data", "all_turns"]


def is_trained(turn: MarkedMessage, mode: Mode) -> bool:
    """Return whether a player turn is trained. In all modes, a turn without an error is not trained if its `loss` is
    false."""
    right = turn.loss is not False and not turn.error
    match mode:
        case "full" | "no_refine_data":
            return right
        case "no_refine_loss":
            return right and not turn.refine
        case "all_turns":  # a masked turn without an error, such as an acknowledgement, is not trained
            return turn.loss is not False or bool(turn.error)


def mark_turns(messages: Iterable[MarkedMessage]) -> tuple[MarkedMessage, ...]:
    """Return the messages with `loss` and `refine` set. `loss` is false for an error. `refine` is true for the first
    trained turn after errors."""
    result, erred = [], False
    for message in messages:
        if message.role == "assistant":
            trained = is_trained(message, "full")
            result.append(replace(message, loss=trained, refine=erred and trained))
            erred = bool(message.error) or (erred and not trained)
        else:
            result.append(message)
    return tuple(result)


def apply_mode(conversation: Conversation, mode: Mode) -> Conversation | None:
    """Return the conversation with `loss` set by `mode`; None if the mode cannot use the conversation."""
    chosen = without_errors(conversation) if mode == "no_refine_data" else conversation
    if chosen is None:
        return None
    return replace(
        chosen,
        messages=tuple(
            replace(m, loss=is_trained(m, mode)) if m.role == "assistant" else m for m in chosen.messages
        ),
    )


def without_errors(conversation: Conversation) -> Conversation | None:
    """Return the conversation without its errors; None if the data does not say how to remove the errors.

    Data of `refine grounded` says which turns to remove, and how the next turns read without them. An error and its
    correction leave the environment unchanged, so the remaining turns are a complete trajectory.
    """
    if not any(message.error for message in conversation.messages):
        return conversation
    plan = conversation.metadata.get("without_errors")
    if not isinstance(plan, dict):
        return None
    messages, skip = [], False
    for index, message in enumerate(conversation.messages):
        if skip:  # the environment's answer to a removed turn
            skip = False
            continue
        change = plan.get(str(index), message.content)
        if change is None:
            skip = True
        elif isinstance(change, str):
            messages.append(replace(message, content=change, refine=False))
    if any(message.error for message in messages):
        return None
    return conversation.replace_messages(tuple(messages))
