"""The action surface, and the repairs the published benchmark makes to an action before it is played."""

from __future__ import annotations

from types import MappingProxyType

CHECK = "check valid actions"
LOOK = "look"

ACTIONS = MappingProxyType(
    {
        "go": "go to {receptacle}",
        "take": "take {object} from {receptacle}",
        "put": "put {object} in/on {receptacle}",
        "open": "open {receptacle}",
        "close": "close {receptacle}",
        "use": "use {object}",
        "clean": "clean {object} with {receptacle}",
        "heat": "heat {object} with {receptacle}",
        "cool": "cool {object} with {receptacle}",
        "slice": "slice {object} with {tool}",
        "examine": "examine {object}",
        "inventory": "inventory",
        "look": LOOK,
        "check": CHECK,
    }
)
"""What the published games accept. `examine` takes an object in hand or the receptacle one stands at."""


def repaired(action: str) -> str:
    """The action as the published task loop hands it on; grounding is judged on this text.

    No outer white space, `put X in Y` as `put X in/on Y` (`put` anywhere in the text), no final period.
    """
    action = action.strip()
    if "put" in action:
        if " in " in action:
            action = action.replace(" in ", " in/on ")
        elif " on " in action:
            action = action.replace(" on ", " in/on ")
    return without_period(action)


def without_period(action: str) -> str:
    """The published environment drops a period more than its loop: `look..` is played, yet ungrounded."""
    return action.removesuffix(".").strip()
