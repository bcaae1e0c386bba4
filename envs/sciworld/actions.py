"""Define the templates of the actions, and check whether the simulator carried out an action."""

from __future__ import annotations

import re
from functools import cache

CHECK = "check valid actions"

ACTIONS = {
    "look_around": "look around",
    "look_at": "look at {object}",
    "look_in": "look in {container}",
    "go": "go to {location}",
    "open": "open {object}",
    "close": "close {object}",
    "pick_up": "pick up {object}",
    "put_down": "put down {object}",
    "move": "move {object} to {container}",
    "pour": "pour {substance} into {container}",
    "dunk": "dunk {container} into {liquid}",
    "mix": "mix {container}",
    "activate": "activate {device}",
    "deactivate": "deactivate {device}",
    "use": "use {tool} on {object}",
    "read": "read {document}",
    "eat": "eat {food}",
    "flush": "flush {device}",
    "connect": "connect {terminal} to {terminal_of_another}",
    "disconnect": "disconnect {object}",
    "focus": "focus on {object}",
    "wait1": "wait1",
    "wait": "wait",
    "inventory": "inventory",
    "task": "task",
    "check": CHECK,
}

# All answers with which the simulator (1.1.3) refuses an action: it knows no such action, the action is ambiguous, or
# the objects do not allow it. `X` stands for any name.
_REFUSALS = (
    "No known action matches that input.",
    "I'm not sure what that means",
    "<unknown catch>",
    "You can't move something into itself.",
    "You can't pick up a liquid directly. Try pouring X",
    "You can't pick up a gas directly.",
    "That can't be moved there.",
    "That can't be moved there, because X isn't open.",
    "That can't be moved there, because it's not a container.",
    "That object already appears to be in the inventory.",
    "That object does not appear to be in the inventory.",
    "I'm not sure how to pour a solid.",
    "You can't pour a gas directly.",
    "X can't be poured out because it doesn't appear to be in a container.",
    "X can't be poured out, because it's not open.",
    "X is empty, so there's nothing to pour.",
    "The X is in is not movable.",
    "X is not moveable.",
    "You can't dunk something into itself.",
    "X is not a container.",
    "X does not contain any liquids to dunk into.",
    "The liquids in X aren't able to move.",
    "X is already open.",
    "X is already closed.",
    "X is not open.",
    "X is not openable.",
    "X is not closeable.",
    "The door doesn't appear to go anywhere.",
    "It's not clear how to get there from here.",
    "Its not clear how to go to/through a X.",
    "X isn't open, so you can't see inside.",
    "It's not clear how to look inside of that.",
    "X is not something that can be activated.",
    "X is already activated.",
    "X is already deactivated.",
    "I'm not sure how to use the X.",
    "I'm not sure how to use those two things together.",
    "It's not clear how to read that.",
    "X is not edible.",
    "It's not clear how to flush that.",
    "That is already flushing.",
    "Something can't be connected to itself.",
    "It's not clear how to connect something to X",
    "X is already connected, and must be disconnected before it can be connected to something else",
    "Connections must specify specific points of contact X",
    "You must disconnect entire objects X",
    "It's not clear how to disconnect that",
    "X appears broken, and can't be activated or deactivated.",
    "It's not clear how to shovel that.",
    "It's not clear how to use an axe with that.",
    "You can't chop a seed.",
)

# Beginnings of refusals that continue differently: with the options of an ambiguous request, with a help text, or with
# the text of an error in the simulator (`ERROR: SHOULD USE OVERRIDE FOR PORTAL.` after `examine` of a door).
_REFUSED_OPENINGS = ("Ambiguous request: ", "Unknown action. ", "ERROR: ", "<ERROR")


@cache
def _compile_refusals() -> re.Pattern[str]:
    """Compile the refusals at their first use, because every command imports this module, but few play ScienceWorld."""
    return re.compile("|".join(re.escape(sentence).replace("X", ".+") for sentence in _REFUSALS))


def was_carried_out(observation: str) -> bool:
    """Return whether the simulator carried out the action. Only the text of its answer tells this."""
    return (
        not observation.startswith(_REFUSED_OPENINGS) and _compile_refusals().fullmatch(observation) is None
    )
