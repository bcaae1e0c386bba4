"""Define the templates of the actions, and AgentBoard's corrections of an action before it is played."""

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
"""Action name -> template. `examine` works on a carried object, and on the receptacle in front of the agent."""


def repair(action: str) -> str:
    """Correct an action as AgentBoard does: remove outer white space and a final period. In an action with `put`,
    replace ` in ` or ` on ` by ` in/on `. Then the corrected text decides whether the action is valid."""
    action = action.strip()
    if "put" in action:
        if " in " in action:
            action = action.replace(" in ", " in/on ")
        elif " on " in action:
            action = action.replace(" on ", " in/on ")
    return drop_period(action)


def drop_period(action: str) -> str:
    """Remove a final period. AgentBoard does this again after the validity check: it plays `look..`, but as invalid."""
    return action.removesuffix(".").strip()
