"""Clean the game's text, and compare it with the phrases of subgoals."""

from __future__ import annotations

import re
from typing import Final

CHECK_PREFIX: Final = "You can take the following actions: "

_SPACES: Final = re.compile(" {2,}")
_SCORE: Final = re.compile(r"\[Your score.*?\]")
_OTHERS: Final = re.compile(r"[^A-Za-z0-9\s]+")


def clean(text: str) -> str:
    """Clean the text by the published rule: one line, single spaces, and no message about the score."""
    return _SCORE.sub("", _SPACES.sub(" ", text.replace("\n", " ")))


def letters(text: str) -> str:
    """Return only letters, digits and white space; the published rule compares these."""
    return _OTHERS.sub("", text)


def is_refused(observation: str) -> bool:
    """Return whether the text has the published phrase for an unknown command. Only the game 905 prints this phrase."""
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
    r"|Please answer yes or n"  # a question needs an answer (905, afflicted)
    r"|not a trick you know"  # snacktime
    r"|\"Huh\?\" The wolf|\"That's nice\.\" Mary |care to rephrase that|I don't know that one\. Please try"  # loose
    r"|slightest idea what you're referring to|Whatever are you talking about|Please give one of the answers above"
    r"|^(\w+) \2 \.\.\. *$",  # zork1: the loud room repeats the last word
    re.IGNORECASE,
)
"""Messages of single games about unknown words. We found them by typing an unknown word at every turn of every plan."""


def is_known(observation: str) -> bool:
    """Return whether the answer is not a stock message of the Inform and Infocom parsers about unknown words.

    It decides on the nouns in lists of valid actions. So a change here would change these lists and the floors.
    """
    return _NOT_UNDERSTOOD.search(observation) is None


def is_understood(observation: str) -> bool:
    """Return whether the game's parser understood the command; `is_refused` misses most commands that it did not."""
    return is_known(observation) and _OWN_WORDS.search(observation) is None
