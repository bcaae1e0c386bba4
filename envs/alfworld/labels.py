"""The published subgoals, as regular expressions over observations, from what a task asks for.

The label file spells them out. They follow from the task type and its parameters, so generated tasks get labels
of the same form, and a test rebuilds all published ones.
"""

from __future__ import annotations

from collections.abc import Sequence

from evalharness.envs.base import Difficulty

KINDS = {
    "pick_and_place_simple": "put",
    "pick_clean_then_place_in_recep": "clean",
    "pick_heat_then_place_in_recep": "heat",
    "pick_cool_then_place_in_recep": "cool",
    "look_at_obj_in_light": "examine",
    "pick_two_obj_and_place": "puttwo",
}
"""ALFWorld's task type -> the benchmark's short name."""


def subgoals(kind: str, object_type: str, target_type: str) -> tuple[str, ...]:
    """`kind` is a short name; the types are lower-case words as in observations (`soapbar`, `countertop`).

    The target is the receptacle to put things in, or the lamp to look by.
    """
    first = (rf"^(?=.* you see)(?=.*a {object_type} \d+)", rf"You pick up the {object_type} \d+")
    match kind:
        case "put":
            return first
        case "clean":
            return (*first, rf"You clean the {object_type} \d+")
        case "heat" | "cool":
            return (*first, rf"You {kind} the {object_type} \d+ using the")
        case "examine":
            return (*first, rf"^(?=.* you see)(?=.*a {target_type})")
        case "puttwo":
            return (*first, rf"You put the {object_type} \d+ in/on the {target_type} \d+")
    raise ValueError(f"no task of the kind {kind!r}")


def difficulty(subgoals: Sequence[str]) -> Difficulty:
    """Published rule: hard with more than two subgoals."""
    return "hard" if len(subgoals) > 2 else "easy"
