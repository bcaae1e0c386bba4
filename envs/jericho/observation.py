"""Clean the game's texts, and find out whether the game understood a command."""

from __future__ import annotations

import re
from typing import Final

CHECK_PREFIX: Final = "You can take the following actions: "

_SPACES: Final = re.compile(" {2,}")
_SCORE: Final = re.compile(r"\[Your score.*?\]")
_OTHERS: Final = re.compile(r"[^A-Za-z0-9\s]+")


def clean(text: str) -> str:
    """Clean a text as AgentBoard does: one line, single spaces, and no message about the score."""
    return _SCORE.sub("", _SPACES.sub(" ", text.replace("\n", " ")))


def letters(text: str) -> str:
    """Remove all characters except letters, digits and white space; AgentBoard compares texts in this form."""
    return _OTHERS.sub("", text)


def is_refused(observation: str) -> bool:
    """Return whether AgentBoard counts the action as not valid: the text contains `[!`. Only the game 905 prints it."""
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
    r"|Please answer yes or n"  # the game has asked a question (905, afflicted)
    r"|not a trick you know"  # snacktime
    r"|\"Huh\?\" The wolf|\"That's nice\.\" Mary |care to rephrase that|I don't know that one\. Please try"  # loose
    r"|slightest idea what you're referring to|Whatever are you talking about|Please give one of the answers above"
    r"|^(\w+) \2 \.\.\. *$",  # zork1: the Loud Room repeats the player's last word
    re.IGNORECASE,
)
"""Messages of single games about unknown words. To find them, we sent an unknown word at every turn of every plan."""


def is_known(observation: str) -> bool:
    """Return whether the game's parser knows all words of the command, by the messages of Inform and Infocom parsers.

    This function decides which nouns are in the lists of valid actions. So a change would change these lists, and the
    stored scores of the random policy.
    """
    return _NOT_UNDERSTOOD.search(observation) is None


def is_understood(observation: str) -> bool:
    """Return whether the game understood the command. AgentBoard's `is_refused` misses most misunderstood commands."""
    return is_known(observation) and _OWN_WORDS.search(observation) is None
