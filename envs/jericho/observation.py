"""What the agent reads, and the comparison of game text with a subgoal's phrase."""

from __future__ import annotations

import re
from typing import Final

CHECK_PREFIX: Final = "You can take the following actions: "

_SPACES: Final = re.compile(" {2,}")
_SCORE: Final = re.compile(r"\[Your score.*?\]")
_OTHERS: Final = re.compile(r"[^A-Za-z0-9\s]+")


def clean(text: str) -> str:
    """The published clean-up: one line, single spaces, then without the note of a change of score."""
    return _SCORE.sub("", _SPACES.sub(" ", text.replace("\n", " ")))


_ROOM_TITLE: Final = re.compile(r"(?:\A|\n)\n+(?P<title>[A-Z][^\n.!?:]{0,39})\n(?=[^\s>])")
"""A line of its own with a description right after it: how most games head the description of a room."""


def room_titles(text: str) -> list[str]:
    """Of the game's own text, before `clean`, which makes one line of it."""
    return [match["title"].strip() for match in _ROOM_TITLE.finditer(text)]


def letters(text: str) -> str:
    """Letters, digits and white space only: what the published rule compares."""
    return _OTHERS.sub("", text)


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


_OWN_WORDS: Final = re.compile(
    r"^\W*(Which|What|Who) [\w ]+ do you (mean|want)"  # Infocom: "Which wall do you mean, the north wall or ...?"
    r"|Please answer yes or n"  # a question waits for its answer (905, afflicted)
    r"|not a trick you know"  # snacktime
    r"|\"Huh\?\" The wolf|\"That's nice\.\" Mary |care to rephrase that|I don't know that one\. Please try"  # loose
    r"|slightest idea what you're referring to|Whatever are you talking about|Please give one of the answers above"
    r"|^(\w+) \2 \.\.\. *$",  # zork1: the loud room repeats the last word instead
    re.IGNORECASE,
)
"""What single games say instead; found by an unknown word at every turn of every known plan."""


def known(observation: str) -> bool:
    """Whether the answer is none of the stock messages of the Inform and Infocom parsers.

    The nouns of the lists of valid actions are found with it, so a change would change those lists, and the floors.
    """
    return _NOT_UNDERSTOOD.search(observation) is None


def understood(observation: str) -> bool:
    """Whether the game's parser could make sense of the command: the grounding that `refused` misses."""
    return known(observation) and _OWN_WORDS.search(observation) is None
