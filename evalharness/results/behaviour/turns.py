"""Read the behaviour in one episode, turn by turn. Only `action_reader` looks at the installed environments."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from evalharness.envs.surface import ActionSurface

if TYPE_CHECKING:
    from evalharness.records.episode import Episode, Turn

_WORD = re.compile(r"\w+(?:['’-]\w+)*")
_CHECK = re.compile(r"check (?:valid|available) actions?\b")
NOVELTY_WORDS = 3
"""Novelty of a thought: compare its sequences of so many words with those of the earlier thoughts."""


@dataclass(frozen=True)
class ActionReader:
    """Reads a family's actions. The default uses only facts that every environment has."""

    to_world: Callable[[str], str] = field(default=lambda action: action)
    """Translate an action in a perturbation's words to the environment's own words."""
    surface: ActionSurface = field(default_factory=lambda: ActionSurface({}))
    help_action: str = "check valid actions"
    """The action that asks for the valid actions."""
    place: Callable[[str, str], str | None] | None = None
    """(action, observation) -> the agent's place; `EnvSpec.place`."""


@dataclass(frozen=True)
class TurnFacts:
    """The behaviour in one turn."""

    error: bool
    """The environment did nothing: the reply had no action, or the action was not valid."""
    progressed: bool
    """Progress after the turn is higher than after any earlier turn (before the first turn it is 0)."""
    repeated: bool
    """The agent made the same move before, after the same observation."""
    help: bool
    """The turn asked for the valid actions."""
    place: str | None
    """The agent's place after the turn; None if no text has named a place."""
    words: int
    """Number of words in the thought."""
    word_runs: int
    """Number of three-word sequences in the thought; 0 if the episode has no earlier thought to compare with."""
    new_word_runs: int
    """Number of these sequences that no earlier thought of the episode has."""
    names_arguments: bool | None
    """Whether the thought has every word of the action's arguments, except numbers. None if there is no thought, if no
    action template of the environment fits, or if the action has no arguments."""


def words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def plain(action: str) -> str:
    """Return the action in lower case, without extra white space and final period: `Look.` becomes `look`."""
    return " ".join(action.casefold().split()).rstrip(".")


def move(turn: Turn) -> str:
    """Return the action, or the whole reply if it has no action: a model can also repeat a malformed reply."""
    return plain(turn.action) if turn.action is not None else f"no action: {turn.reply}"


def moves(episode: Episode) -> list[tuple[str, str]]:
    """Return (last observation, move) for every turn. The observation represents the state that the model saw."""
    observations = [episode.first_observation, *(turn.observation for turn in episode.turns)]
    return [(observations[i], move(turn)) for i, turn in enumerate(episode.turns)]


def longest_loop(steps: Sequence[object]) -> int:
    """Return the length of the longest part that repeats one cycle at least twice; 0 if there is no such part.

    `abcabcab` gives 8 (the cycle `abc` 2 2/3 times); `aba` gives 0.
    """
    longest = 0
    for period in range(1, len(steps) // 2 + 1):
        same = 0
        for i in range(period, len(steps)):
            same = same + 1 if steps[i] == steps[i - period] else 0
            if same >= period:
                longest = max(longest, same + period)
    return longest


def runs_of(flags: Iterable[bool]) -> list[int]:
    """Return the lengths of the runs of consecutive true flags, in order."""
    lengths: list[int] = []
    before = False
    for flag in flags:
        if flag and before:
            lengths[-1] += 1
        elif flag:
            lengths.append(1)
        before = flag
    return lengths


def read_turns(episode: Episode, how: ActionReader | None = None) -> list[TurnFacts]:
    """Return the facts of each turn of `episode`, in order."""
    how = how or ActionReader()
    facts = []
    best = 0.0
    place = how.place("", episode.first_observation) if how.place else None
    earlier_moves: set[tuple[str, str]] = set()
    thought_runs: set[tuple[str, ...]] = set()
    thought_before = False
    for turn, step in zip(episode.turns, moves(episode), strict=True):
        action = None if turn.action is None else how.to_world(turn.action)
        if how.place and turn.valid and action is not None:
            place = how.place(plain(action), turn.observation) or place
        spoken = words(turn.thought)
        word_runs = {tuple(spoken[i : i + NOVELTY_WORDS]) for i in range(len(spoken) - NOVELTY_WORDS + 1)}
        facts.append(
            TurnFacts(
                error=turn.action is None or not turn.valid,
                progressed=turn.progress > best,
                repeated=step in earlier_moves,
                help=action is not None and _asks(plain(action), how.help_action),
                place=place,
                words=len(spoken),
                word_runs=len(word_runs) if thought_before else 0,
                new_word_runs=len(word_runs - thought_runs) if thought_before else 0,
                names_arguments=_names_arguments(spoken, action, how.surface),
            )
        )
        best = max(best, turn.progress)
        earlier_moves.add(step)
        thought_runs |= word_runs
        thought_before = thought_before or bool(spoken)
    return facts


def _asks(action: str, help_action: str) -> bool:
    """Return whether the action asks for the valid actions. `check valid actions` does so in every environment."""
    return action.startswith(help_action) or _CHECK.match(action) is not None


def _names_arguments(thought: Sequence[str], action: str | None, surface: ActionSurface) -> bool | None:
    if not thought or action is None:
        return None
    parsed = surface.parse(plain(action))
    if parsed is None:
        return None
    named = {word for text in parsed.arguments.values() for word in words(text) if not word.isdecimal()}
    return named <= set(thought) if named else None


@cache
def action_reader(family: str, perturbation: str | None, words: str = "") -> ActionReader:
    """Return the reader of a family's actions; the default reader without its environment. `words`: as in `Task`."""
    from evalharness.envs import specs
    from evalharness.protocol.perturb import make_surface

    spec = specs().get(family)
    if spec is None:
        return ActionReader()
    surface = make_surface(spec, perturbation).for_game(words)
    templates = {name: plain(text) for name, text in surface.canonical.templates.items()}
    return ActionReader(
        to_world=surface.to_world,
        surface=ActionSurface(templates),
        help_action=templates.get(spec.actions.help_action or "", ActionReader.help_action),
        place=spec.place,
    )
