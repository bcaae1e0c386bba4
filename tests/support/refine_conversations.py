"""Training data by hand, for tests of formats: every kind of turn once."""

from __future__ import annotations

from evalharness.training.datasets.conversation import Conversation, MarkedMessage


def said(thought: str, action: str, *, error: tuple[str, ...] = (), refine: bool = False) -> MarkedMessage:
    return MarkedMessage("assistant", f"Thought: {thought}\nAction: {action}", not error, error, refine)


def user(text: str) -> MarkedMessage:
    return MarkedMessage("user", text)


def erring_conversation(name: str = "a", *, system: bool = True) -> Conversation:
    """A right turn, two errors in a row, the correction, the end."""
    messages = (
        *([MarkedMessage("system", "You act in a world.")] if system else []),
        user("Goal: open the box\nObservation: a room with a box"),
        said("The box is there.", "go to box"),
        user("Observation: You are at the box."),
        said("I open it.", "opne box", error=("parameter",)),
        user("Observation: What?"),
        said("Perhaps from the door.", "go to wall", error=("place",)),
        user("Observation: You cannot."),
        said("I misspelt open. I open it.", "open box", refine=True),
        user("Observation: The box is open."),
        said("a", "b"),
    )
    first = 3 if system else 2
    without = {
        str(first + 1): None,
        str(first + 3): None,
        str(first + 5): "Thought: I open it.\nAction: open box",
    }
    return Conversation(f"x/{name}", "grounded", "made", None, messages, {"without_errors": without})


def clean_conversation(name: str = "c") -> Conversation:
    """Replies of one letter, which also stand in the template's own words."""
    messages = (
        user("Which one?"),
        MarkedMessage("assistant", "a", True),
        user("s"),
        MarkedMessage("assistant", "t", False),
        user("And now?"),
        MarkedMessage("assistant", "sis", True),
        user("Nobody reads this."),
    )
    return Conversation(f"y/{name}", "general", "", None, messages)
