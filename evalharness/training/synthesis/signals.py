"""What the verification of a reply says."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Signal(StrEnum):
    """The paper's signals (algorithm 1, appendix J), the verification of a script among them, and four of ours."""

    OK = "OK"
    JSON = "JSON"
    """Not JSON: broken, cut off, too long, nested too deep."""
    KEYS = "KEYS"
    """Keys or types are wrong, or a turn is the wrong speaker's."""
    EXPRESSION = "EXPRESSION"
    """Of a script: an expression does not compile, is too slow, or does not accept its own action."""
    ACTION = "ACTION"
    """The player's action is none of the script's, and the Dungeon Master did not say so."""
    LAST_ERROR = "LAST_ERROR"
    """The last turn is an error."""
    UNFINISHED = "UNFINISHED"
    """The last turn does not say that the task succeeded, or is the player's."""
    TOO_FEW = "TOO_FEW"
    """Too few error turns."""
    ERRS = "ERRS"
    """Ours: the player errs in a game that was to have no errors."""
    CONTEXT = "CONTEXT"
    """Ours: the conversation no longer fits the model's context."""
    REFUSED = "REFUSED"
    """Ours: the server refuses this request and answers others (a content filter, say)."""
    NO_CALLS = "NO_CALLS"
    """Ours: the script took every call that the persona had."""


MEANINGS = {
    Signal.JSON: "not JSON, or cut off",
    Signal.KEYS: "keys or types wrong",
    Signal.EXPRESSION: "an expression does not accept its own action",
    Signal.ACTION: "an action that the script does not have",
    Signal.LAST_ERROR: "ends in an error",
    Signal.UNFINISHED: "does not say that the task succeeded",
    Signal.TOO_FEW: "too few error turns",
    Signal.ERRS: "an error where none was wanted",
    Signal.CONTEXT: "outgrew the model's context",
    Signal.REFUSED: "refused by the server",
    Signal.NO_CALLS: "the script took all calls",
}


@dataclass(frozen=True)
class ReplyCheck:
    """Of one reply."""

    signal: Signal
    mistakes: tuple[str, ...] = ()
    """What was wrong, as the model gets to read it."""
