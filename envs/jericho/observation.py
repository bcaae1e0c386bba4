"""What the agent reads, and the comparison of game text with a subgoal's phrase."""

from __future__ import annotations

import re
from typing import Final

CHECK_PREFIX: Final = "You can take the following actions: "

_SPACES: Final = re.compile(" {2,}")
_SCORE: Final = re.compile(r"\[Your score.*?\]")


class _Letters(dict[int, int | None]):
    """A translation table that keeps ASCII letters, digits and white space; filled as characters are met."""

    def __missing__(self, code: int) -> int | None:
        character = chr(code)
        kept = (character.isascii() and character.isalnum()) or character.isspace()
        self[code] = code if kept else None
        return self[code]


_LETTERS: Final = _Letters()


def clean(text: str) -> str:
    """The published clean-up: one line, single spaces, then without the note of a change of score."""
    return _SCORE.sub("", _SPACES.sub(" ", text.replace("\n", " ")))


def letters(text: str) -> str:
    """Letters, digits and white space only: what the published rule compares."""
    return text.translate(_LETTERS)


def refused(observation: str) -> bool:
    """The published sign that a command was not understood. Of the 20 games only 905 ever prints it."""
    return "[!" in observation


_NOT_UNDERSTOOD: Final = re.compile(
    r"\[!|not a verb I recogni[sz]e|I don't know the word|I only understood you as far as"
    r"|You used the word .* in a way|There was no verb|didn't understand|isn't one I recogni[sz]e"
    r"|I beg your pardon|can't see any|There seems to be a noun missing|It's not clear what|said too little"
    r"|^\W*(What|Who|Whom|Which|Where) do(es)? (you|.*) (want|mean)|can only do that to something animate"
    r"|There were too many nouns|can't use multiple objects|excepted something not included",
    re.IGNORECASE,
)


def understood(observation: str) -> bool:
    """Whether the game's parser could make sense of the command: the grounding that `refused` misses.

    By the stock messages of the Inform and Infocom parsers; a game that words its own can escape it.
    """
    return _NOT_UNDERSTOOD.search(observation) is None
