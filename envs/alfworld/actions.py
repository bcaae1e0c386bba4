"""Define the action surface, and the published benchmark's corrections of an action before it is played."""

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
"""The actions of the published games. `examine` takes a carried object, or the receptacle at the agent's place."""


def repair(action: str) -> str:
    """Return the action as the published task loop sends it to the environment; grounding is judged on this text.

    Remove outer white space and a final period. In a text with `put`, replace ` in ` or ` on ` by ` in/on `.
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
