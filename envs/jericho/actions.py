"""Define the commands, and the rules that shorten a command before the interpreter gets it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Final

CHECK: Final = "check valid actions"

ACTIONS: Final[Mapping[str, str]] = {
    "look": "look",
    "inventory": "inventory",
    "go": "go {direction}",
    "go_in": "in",
    "go_out": "out",
    "examine": "examine {object}",
    "search": "search {object}",
    "read": "read {object}",
    "take": "take {object}",
    "drop": "drop {object}",
    "put_in": "put {object} in {container}",
    "put_on": "put {object} on {surface}",
    "open": "open {object}",
    "close": "close {object}",
    "unlock": "unlock {object} with {key}",
    "push": "push {object}",
    "pull": "pull {object}",
    "turn_on": "turn on {device}",
    "turn_off": "turn off {device}",
    "wear": "wear {object}",
    "eat": "eat {object}",
    "enter": "enter {place}",
    "ask": "ask {person} about {topic}",
    "give": "give {object} to {person}",
    "show": "show {object} to {person}",
    "attack": "attack {creature} with {weapon}",
    "wait": "wait",
    "check": CHECK,
}
"""Name -> template of the commands that most games know. The agent may also send any other text to a game."""

MAX_WORDS: Final = 20
"""Maximum number of words in a command; AgentBoard cuts off all further words."""

MAX_CHARACTERS: Final = 99
"""Maximum length of a line that a game gets. The smallest input buffer of the 20 games has 100 characters.

The Z-machine standard (section 15, `read`) says that an interpreter cuts a longer line. Frotz does not cut it, but
overwrites the memory after the buffer, so we cut it.
"""

_ONLY_LOOKS: Final = frozenset(
    re.findall(
        r"\w+",
        """
    l look x examine inspect describe watch search read consult listen hear smell taste feel touch count think i inv
    inventory z wait score diagnose time date help hint hints info about credits version verbose brief superbrief
    normal notify full places objects pronouns save restore script unscript undo quit q restart
    ask tell say talk answer reply hello shout yell yes no y
    """,
    )
)
"""Verbs that inspect, talk, wait or control the program. It is no error if such a command does not change the world."""


def should_change_world(command: str) -> bool:
    """Return whether the command's verb is not in `_ONLY_LOOKS`, so that the command should change the world."""
    words = command.lower().split()
    return bool(words) and words[0] not in _ONLY_LOOKS


_TYPOGRAPHY: Final = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"', "–": "-", "—": "-", "…": "..."})
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


def cut_action(action: str) -> str:
    """Shorten an action as AgentBoard does: cut it at the first comma or period, and after 20 words."""
    text = action.split(",")[0].split(".")[0]
    return " ".join(text.split(" ")[:MAX_WORDS])


def is_check(action: str) -> bool:
    """Return whether the action asks for the list of valid actions."""
    lowered = action.lower()
    return "check" in lowered and "action" in lowered


def make_typeable(text: str) -> str:
    """Convert a text to one line of printable ASCII that fits into a game's input buffer.

    The interpreter would execute a second line in a later turn, and a NUL would make it read beyond the buffer.
    """
    lines = text.splitlines() or [""]
    line = next((line for line in lines if line.strip()), lines[0])  # a blank line is a key press in a menu
    line = unicodedata.normalize("NFKD", line.translate(_TYPOGRAPHY))
    line = "".join(character for character in line if not unicodedata.combining(character))
    line = line.encode("ascii", errors="replace").decode("ascii")
    return _CONTROL.sub(" ", line)[:MAX_CHARACTERS]
