"""What of a data set is trained: the paper's method and the ablations of its table 2."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from evalharness.refine.sample import Sample

Mode = Literal["full", "no_refine_loss", "no_refine_data", "all_turns"]


def in_mode(sample: Sample, mode: Mode) -> Sample | None:
    """The sample as `mode` trains it; None where it has no place in it."""
    match mode:
        case "full":
            return sample
        case "all_turns":
            return replace(
                sample,
                messages=tuple(
                    replace(m, loss=True) if m.role == "assistant" else m for m in sample.messages
                ),
            )
        case "no_refine_loss":
            return replace(
                sample,
                messages=tuple(replace(m, loss=False) if m.refine else m for m in sample.messages),
            )
        case "no_refine_data":
            return without_errors(sample)


def without_errors(sample: Sample) -> Sample | None:
    """The trajectory as it would have been without its errors; None where that is not known.

    A grounded sample says which turns go and how the first right ones read then: the world is as it was before the
    errors, so that what is left is a trajectory of its own.
    """
    if not any(message.error for message in sample.messages):
        return sample
    plan = sample.metadata.get("without_errors")
    if not isinstance(plan, dict):
        return None
    messages, skip = [], False
    for index, message in enumerate(sample.messages):
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
    # These are by turn, and the turns are others now.
    by_turn = ("without_errors", "progress", "valid")
    metadata = {key: value for key, value in sample.metadata.items() if key not in by_turn}
    return replace(sample, messages=tuple(messages), metadata=metadata)
