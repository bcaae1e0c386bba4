"""What of a data set is trained: the paper's method and the ablations of its table 2.

Marks say what went wrong: `error` on a player turn, `refine` on the first right one after a run of errors. `is_trained`
alone decides what the marks and the mode make of a turn.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

from evalharness.training.datasets.conversation import Conversation, MarkedMessage

Mode = Literal["full", "no_refine_loss", "no_refine_data", "all_turns"]


def is_trained(turn: MarkedMessage, mode: Mode) -> bool:
    """Whether a player turn is trained. `loss` is false on turns that are left out for another reason than an error."""
    right = turn.loss is not False and not turn.error
    match mode:
        case "full" | "no_refine_data":
            return right
        case "no_refine_loss":
            return right and not turn.refine
        case "all_turns":  # not what is masked for another reason, such as an acknowledgement
            return turn.loss is not False or bool(turn.error)


def marked(messages: Iterable[MarkedMessage]) -> tuple[MarkedMessage, ...]:
    """With what follows from the errors: they are not trained, and the first trained turn after a run of them is the
    refinement."""
    found, erred = [], False
    for message in messages:
        if message.role == "assistant":
            trained = is_trained(message, "full")
            found.append(replace(message, loss=trained, refine=erred and trained))
            erred = bool(message.error) or (erred and not trained)
        else:
            found.append(message)
    return tuple(found)


def in_mode(conversation: Conversation, mode: Mode) -> Conversation | None:
    """The conversation as `mode` trains it; None where it has no place in it."""
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
    """The trajectory as it would have been without its errors; None where that is not known.

    A grounded one says which turns go and how the first right ones read then: the world is as it was before the errors,
    so that what is left is a trajectory of its own.
    """
    if not any(message.error for message in conversation.messages):
        return conversation
    plan = conversation.metadata.get("without_errors")
    if not isinstance(plan, dict):
        return None
    messages, skip = [], False
    for index, message in enumerate(conversation.messages):
        if skip:  # the world's answer to a turn that is gone
            skip = False
            continue
        change = plan.get(str(index), message.content)
        if change is None:
            skip = True
        elif isinstance(change, str):
            messages.append(replace(message, content=change, refine=False))
    if any(message.error for message in messages):
        return None
    return conversation.retold(tuple(messages))
