"""Measure the behaviour in each turn of an episode."""

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
"""Length of the word sequences that measure novelty: a sequence is new if no earlier thought of the episode has it."""


@dataclass(frozen=True)
class ActionReader:
    """Recognises the actions and places of a family. The default values work without the family's environment."""

    to_world: Callable[[str], str] = field(default=lambda action: action)
    """Translate an action from the wording of a perturbation to the original wording."""
    surface: ActionSurface = field(default_factory=lambda: ActionSurface({}))
    help_action: str = "check valid actions"
    """The action that asks for the valid actions."""
    place: Callable[[str, str], str | None] | None = None
    """Map (action, observation) to the agent's place (see `EnvSpec.place`); None: places are not measured."""


@dataclass(frozen=True)
class TurnFacts:
    """The behaviour in one turn."""

    error: bool
    """Whether the reply had no action, or an action that was not valid. In both cases the environment did nothing."""
    progressed: bool
    """Whether progress after the turn is higher than after any earlier turn. Progress starts at 0."""
    repeated: bool
    """Whether the agent made the same move (see `move`) in an earlier turn, after the same observation."""
    help: bool
    """Whether the action asked for the list of valid actions."""
    place: str | None
    """The agent's place after the turn; None if no observation has named a place yet."""
    words: int
    """Number of words in the thought."""
    word_runs: int
    """Number of different three-word sequences in the thought; 0 for the first thought of the episode."""
    new_word_runs: int
    """Number of the three-word sequences in the thought that no earlier thought of the episode has."""
    names_arguments: bool | None
    """Whether the thought contains every word of the action's arguments, except numbers. None if the turn has no
    thought, if no action template of the environment matches the action, or if the action has no arguments."""


def words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def plain(action: str) -> str:
    """Return the action in lower case, without extra white space and final period: `Look.` becomes `look`."""
    return " ".join(action.casefold().split()).rstrip(".")


def move(turn: Turn) -> str:
    """Return the action, or the whole reply if it has no action, so that repeated malformed replies are found, too."""
    return plain(turn.action) if turn.action is not None else f"no action: {turn.reply}"


def moves(episode: Episode) -> list[tuple[str, str]]:
    """Return (last observation, move) for every turn. The last observation stands for the state of the environment."""
    observations = [episode.first_observation, *(turn.observation for turn in episode.turns)]
    return [(observations[i], move(turn)) for i, turn in enumerate(episode.turns)]


def longest_loop(steps: Sequence[object]) -> int:
    """Return the length of the longest part of `steps` in which a cycle occurs twice or more in a row; 0 without one.

    For example, `abcabcab` gives 8 (the cycle is `abc`), and `aba` gives 0.
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
    """Return the lengths of the sequences of consecutive true flags, in order."""
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
    """Return the behaviour in each turn of `episode`, in order."""
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
                help=action is not None and _asks_for_valid_actions(plain(action), how.help_action),
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


def _asks_for_valid_actions(action: str, help_action: str) -> bool:
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
    """Return the reader of a family's actions, or `ActionReader()` if it is not installed. `words`: see `Task`."""
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
