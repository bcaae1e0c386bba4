"""Find valid commands: try many commands in a copy of the interpreter, and keep those that change the world.

Commands are made from verbs of the game's grammar and from nouns. Jericho itself finds nouns with a spaCy model. We
take the names of nearby objects and the words of the observation, if the game's dictionary has them and EXAMINE accepts
them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import cache
from importlib import resources
from itertools import pairwise
from typing import Any, Final

from evalharness.envs.jericho.interpreter import Interpreter
from evalharness.envs.jericho.observation import clean, is_known

MAX_NOUNS: Final = 14
MAX_COMMANDS: Final = (1000, 250)
"""Maximum number of tried commands with at most one object, and with two objects. Trying a command takes 0.06 to 1.8 ms
(measured). So a list of valid commands takes half a second in most games, and 3.5 s in the slowest game."""

DIRECTIONS: Final = (
    "north", "south", "east", "west", "northeast", "northwest", "southeast", "southwest",
    "up", "down", "enter", "exit",
)  # fmt: skip

COMMON_GRAMMAR: Final = (
    *DIRECTIONS, "take all", "wait", "stand up",
    "take OBJ", "drop OBJ", "open OBJ", "close OBJ", "push OBJ", "pull OBJ", "turn OBJ", "turn on OBJ",
    "turn off OBJ", "search OBJ", "read OBJ", "eat OBJ", "drink OBJ", "wear OBJ", "remove OBJ", "enter OBJ",
    "climb OBJ", "light OBJ", "touch OBJ", "move OBJ", "look under OBJ", "talk to OBJ", "wave OBJ",
    "ring OBJ",
    "unlock OBJ with OBJ", "lock OBJ with OBJ", "put OBJ in OBJ", "put OBJ on OBJ", "give OBJ to OBJ",
    "show OBJ to OBJ", "tie OBJ to OBJ", "attack OBJ with OBJ", "fill OBJ from OBJ", "cut OBJ with OBJ",
)  # fmt: skip
"""Command templates for a game whose grammar Jericho cannot read."""

NOT_THINGS: Final = frozenset(
    re.findall(
        r"\w+",
        """
        a all an another both each every everything here him her it me my myself none other room self some
        that the them there these this those us you your yourself n s e w u d north south east west northeast
        northwest southeast southwest up down in out inside outside
        """,
    )
)

_WORD: Final = re.compile(r"[a-z]+(?:['-][a-z]+)*")
_SIDE_EFFECT: Final = re.compile(r"\(taken\)|\(first taking", re.IGNORECASE)


@cache
def _verb_counts() -> dict[str, int]:
    """Return verb -> how often human players used it, from a file of the package jericho."""
    text = resources.files("jericho").joinpath("clubfloyd_verb_counts.json").read_text(encoding="utf-8")
    return {str(verb): int(count) for verb, count in json.loads(text).items()}


@cache
def _whole_verb(verb: str, word_length: int) -> str:
    """Return the most frequent word that begins with `verb`, which the game's grammar shortens to `word_length`."""
    if len(verb) < word_length:
        return verb
    counts = _verb_counts()
    words = [word for word in counts if word.startswith(verb)]
    return max(words, key=lambda word: (counts[word], word), default=verb)


def _rank(command: str) -> tuple[int, int, str]:
    return (-_verb_counts().get(command.split()[0], 0), len(command), command)


def _templates(interpreter: Interpreter) -> list[str]:
    generator = interpreter.frotz.act_gen
    if generator is None:
        return list(COMMON_GRAMMAR)
    length = int(interpreter.frotz.bindings["max_word_length"])
    templates = set()
    for template in generator.templates:
        verb, _, rest = template.partition(" ")
        templates.add(f"{_whole_verb(verb, length)} {rest}".strip())
    return sorted(templates, key=_rank)


def _nearby_names(interpreter: Interpreter) -> set[str]:
    """Return the short names of the objects in the player's room and hands."""
    frotz = interpreter.frotz
    player = frotz.get_player_object()
    if player is None:
        return set()
    room = player.parent
    # The player may be on or in an object, so go up to the room. In version 3, the rooms themselves have a parent.
    while interpreter.version > 3 and (node := frotz.get_object(room)) is not None and node.parent > 0:
        room = node.parent
    names: set[str] = set()
    pending = [room]
    seen = set()
    while pending:
        number = pending.pop()
        if number in seen:
            continue
        seen.add(number)
        node = frotz.get_object(number)
        child = node.child if node else 0
        while child > 0 and child not in seen:
            item = frotz.get_object(child)
            if item is None:
                break
            names.add(item.name.lower())
            pending.append(child)
            child = item.sibling
    return names


def _nouns(interpreter: Interpreter, state: Any, observation: str) -> list[str]:
    """Return one noun for each thing that EXAMINE accepts. Prefer names of nearby objects to other words of the
    texts."""
    vocabulary = {word.word: word for word in interpreter.frotz.get_dictionary()}
    length = max((len(word) for word in vocabulary), default=9)
    names = sorted(_nearby_names(interpreter))
    texts = [*names, observation]
    for command in ("look", "inventory"):
        interpreter.restore(state)
        texts.append(interpreter.send(command))

    def is_thing(word: str) -> bool:
        entry = vocabulary.get(word[:length])
        return word not in NOT_THINGS and entry is not None and (entry.is_noun or entry.is_adj)

    spoken = [_WORD.findall(text.lower()) for text in texts]
    words = list(dict.fromkeys(word for line in spoken for word in line if is_thing(word)))
    followed = {pair for line in spoken for pair in pairwise(line)}
    heads = {name.split()[-1] for name in names if name.split()}
    answers: dict[str, list[str]] = {}
    for word in words:
        interpreter.restore(state)
        answer = clean(interpreter.send(f"examine {word}"))
        if is_known(answer) and not interpreter.over:
            answers.setdefault(answer, []).append(word)

    adjectives = {
        word
        for synonyms in answers.values()
        for word in synonyms
        if any((word, other) in followed for other in synonyms)
    }

    def quality(word: str) -> tuple[bool, bool, bool, int]:
        is_noun = vocabulary[word[:length]].is_noun
        return (word not in heads, not is_noun, word in adjectives, words.index(word))

    chosen: list[str] = []
    for answer, synonyms in answers.items():
        # Words with the same answer name one thing, unless the answer is a stock phrase: short, and without a name.
        one_thing = any(word in answer.lower() for word in synonyms) or len(answer) > 60
        chosen += sorted(synonyms, key=quality)[: 1 if one_thing else None]
    return sorted(chosen, key=quality)[:MAX_NOUNS]


def _commands(templates: Iterable[str], nouns: list[str]) -> list[str]:
    """Return the templates with all combinations of nouns, at most `MAX_COMMANDS`."""
    single: list[str] = []
    pairs: list[str] = []
    for template in templates:
        slots = template.count("OBJ")
        if slots == 0:
            single.append(template)
        elif slots == 1:
            single += [template.replace("OBJ", noun) for noun in nouns]
        else:
            pairs += [
                template.replace("OBJ", first, 1).replace("OBJ", second, 1)
                for first in nouns
                for second in nouns
                if first != second
            ]
    most_single, most_pairs = MAX_COMMANDS
    return [*single[:most_single], *pairs[:most_pairs]]


def valid_commands(interpreter: Interpreter, observation: str) -> list[str]:
    """Return one command for each possible change of the world, sorted. Do not change the state of `interpreter`."""
    if interpreter.over or interpreter.awaits_key:
        return []
    trial = interpreter.fork()
    state = trial.snapshot()
    frotz = trial.frotz
    score = frotz.get_score()
    effects: dict[Any, str] = {}
    for command in sorted(_commands(_templates(trial), _nouns(trial, state, observation)), key=_rank):
        trial.restore(state)
        text = trial.send(command)
        if not (frotz._world_changed() or frotz.get_score() != score or trial.over):
            continue
        if not _SIDE_EFFECT.search(text):
            effects.setdefault(frotz._get_world_diff(), command)
    return sorted(effects.values())
