"""The action surface, and the published benchmark's repairs to an action before it is played."""

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
"""The actions of the published games. `examine` takes an object in hand or the receptacle at which the agent stands."""


def repair(action: str) -> str:
    """Return the action as the published task loop passes it on; grounding is judged on this text.

    Without outer white space and final period, and with `put X in/on Y` for `put X in Y` (`put` anywhere in the text).
    """
    action = action.strip()
    if "put" in action:
        if " in " in action:
            action = action.replace(" in ", " in/on ")
        elif " on " in action:
            action = action.replace(" on ", " in/on ")
    return drop_period(action)


def drop_period(action: str) -> str:
    """Remove a second period: the published environment plays `look..`, but counts it as not grounded."""
    return action.removesuffix(".").strip()
