"""Choose the trained turns: the paper's method and the ablations of its table 2.

`error` marks a player's wrong turn, `refine` the first right turn after a sequence of errors. Only
`is_trained` decides from the marks and the mode whether a turn is trained.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

from evalharness.training.datasets.conversation import Conversation, MarkedMessage

Mode = Literal["full", "no_refine_loss", "no_refine_data", "all_turns"]


def is_trained(turn: MarkedMessage, mode: Mode) -> bool:
    """Return whether a player turn is trained. `loss` is false on turns that are left out for another reason than an
    error."""
    right = turn.loss is not False and not turn.error
    match mode:
        case "full" | "no_refine_data":
            return right
        case "no_refine_loss":
            return right and not turn.refine
        case "all_turns":  # turns masked for another reason, such as an acknowledgement, stay untrained
            return turn.loss is not False or bool(turn.error)


def mark_turns(messages: Iterable[MarkedMessage]) -> tuple[MarkedMessage, ...]:
    """Return the messages with `loss` and `refine` set from the errors: an error is not trained, and the first trained
    turn after errors is the correction."""
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
    """Return the conversation as `mode` trains it; None if the mode leaves it out."""
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
    """Return the conversation without its errors; None if the data does not say how to cut them out.

    Grounded data says which turns to cut and how the turns after them read then. The environment is the same
    after an error and its correction, so the rest is a complete trajectory.
    """
    if not any(message.error for message in conversation.messages):
        return conversation
    plan = conversation.metadata.get("without_errors")
    if not isinstance(plan, dict):
        return None
    messages, skip = [], False
    for index, message in enumerate(conversation.messages):
        if skip:  # the environment's answer to a turn that was cut
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
