"""Plans in the words of the prompt. Pure: the world is a function."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

Answer = Callable[[Sequence[str]], str]
"""Plays actions in a fresh world; what it says to the last of them."""


def spelled_out(plan: Sequence[str], answer: Answer) -> list[str]:
    """`plan` with every `pour A in B`, the simulator's own form, as `pour A into B`, the form of the prompt.

    Things are known by their places ("cup in art studio"), so `pour A in B in C` has two readings; the world
    decides: the one to which it gives the same answer is meant.
    """
    spelled: list[str] = []
    for action in plan:
        readings = _readings(action)
        if len(readings) > 1:
            said = answer([*spelled, action])
            readings = [reading for reading in readings if answer([*spelled, reading]) == said]
        spelled.append(readings[0] if readings else action)
    return spelled


def _readings(action: str) -> list[str]:
    """With each `in` taken for the action's, the last first; the action itself when it is no pouring."""
    if not action.startswith("pour ") or " into " in action:
        return [action]
    places = [match.start() for match in re.finditer(" in ", action)]
    return [f"{action[:place]} into {action[place + 4 :]}" for place in reversed(places)]
