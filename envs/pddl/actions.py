"""Define the actions, and read an action from the agent's text as AgentBoard does.

AgentBoard splits a text into words with NLTK's `word_tokenize`, and then looks for names of actions and objects among
the words. Our function `tokens` makes the same words without NLTK and its downloaded model. We compared both with NLTK
3.10.4. The names were equal in all of 1,428 actions inside other text (quotes, brackets, markdown, sentences), and in
99.6 % of 40,000 texts of words and random punctuation.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from evalharness.envs.pddl.engine import GroundedProblem
from evalharness.envs.pddl.wording import SENTENCES

CHECK = "check valid actions"
LOOK = "look around"
LISTED = "Valid actions are: "
"""Start of the answer to the help action CHECK."""

ACTIONS = {**{name: sentence.strip() for name, sentence in SENTENCES.items()}, "check": CHECK, "look": LOOK}

LONGEST = 20_000
"""Maximum number of characters that are read, to limit the time. The longest valid action has 150 characters."""

_CUTS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        # Split off opening quotes, and an apostrophe before a word unless it begins an ending such as 're or 'll.
        (r"[«“‘„]|`+", r" \g<0> "),
        (r"(?<!\w)'(?!(?:re|ve|ll|[mtsdn])\b)(?=\w)", "' "),
        # Split off a period at the end of a sentence. NLTK does not see an end before a space and a double quote,
        # because it takes this quote for an opening quote.
        (
            r"(?<=[^.])\.(?!\s+\"[\"')\]}]*(?:\s|$))(?=[>»”’]*(?:\s+[»”’]|\s+[^`\s]|\s*$)|[\])}\"'(\[{?!:;*@])",
            " . ",
        ),
        # Split off a colon or comma, and the character after it, unless this character is a digit.
        (r"([:,])(\D)", r" \1 \2"),
        (r"[:,]$", r" \g<0> "),
        (r"\.{2,}|--|[\u2012-\u2015]|[;@#$%&?!*\[\](){}<>\"»”’]", r" \g<0> "),
        # Split off a closing apostrophe, and the endings 's, 'm, 'd, 'll, 're, 've and n't.
        (r"(?<=[^'\s])(?:'[smd]|'ll|'re|'ve|n't|')(?=\s|$)", r" \g<0>"),
    )
)


# Most actions have only words, hyphens and a final period. A simple split takes 4 microseconds instead of 59.
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


def find_help_action(text: str) -> str | None:
    """Return the help action that a text contains, as AgentBoard finds it; None if the text contains no help action."""
    lowered = text.lower()
    return next((action for action, word in ((CHECK, "check"), (LOOK, LOOK)) if word in lowered), None)


def resolve(text: str, world: GroundedProblem, state: int) -> Parsed | None:
    """Return the action in a text: the first word that is the name of an action with a valid use in `state`, and the
    first names of objects, as many as the action needs. Return None if a name is missing."""
    words = tokens(text[:LONGEST])
    for name in words:
        if name in world.operator_names and world.has_applicable(state, name):
            objects = tuple(word for word in words if word in world.objects)[: world.arity[name]]
            return Parsed(name, objects) if len(objects) == world.arity[name] else None
    return None


class Reader:
    """Reads the actions of an episode in order. It simulates them, because `resolve` needs the state of each turn."""

    def __init__(self, world: GroundedProblem) -> None:
        self._world, self._state = world, world.initial

    def read(self, action: str) -> Parsed | None:
        """Return the action in the text of the next turn; None for a help action or an unknown action."""
        parsed = None if find_help_action(action) else resolve(action, self._world, self._state)
        ground = None if parsed is None else self._world.find(*parsed)
        if ground is None:
            return None
        self._state = self._world.result(self._state, ground)
        return parsed
