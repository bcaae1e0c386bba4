"""One episode, turn by turn: what each turn was. Pure, but `action_reader` asks the installed environments."""

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
"""A thought is compared with the earlier ones by its runs of so many words."""


@dataclass(frozen=True)
class ActionReader:
    """How to read a family's actions. The default reads nothing but what every environment has."""

    to_world: Callable[[str], str] = field(default=lambda action: action)
    """A policy's action in the environment's own words, where a perturbation worded it otherwise."""
    surface: ActionSurface = field(default_factory=lambda: ActionSurface({}))
    help_action: str = "check valid actions"
    """The action that asks for the valid actions."""
    place: Callable[[str, str], str | None] | None = None
    """(action, observation) -> where the agent is; `EnvSpec.place`."""


@dataclass(frozen=True)
class TurnFacts:
    """What one turn was."""

    error: bool
    """The environment carried out nothing: the reply had no action, or the action was not valid."""
    progressed: bool
    """Progress after it is higher than after any earlier turn (0 before the first)."""
    repeated: bool
    """The same move was made before on the same last observation."""
    help: bool
    """The turn asked for the valid actions."""
    place: str | None
    """The agent's place after the turn; None if no text has named it."""
    words: int
    """Words of the thought."""
    word_runs: int
    """Runs of three words in the thought, where there was an earlier thought to compare it with; else 0."""
    new_word_runs: int
    """Those of them that no earlier thought of the episode holds."""
    names_arguments: bool | None
    """The thought has every word (numbers apart) of what the action is done to; None where there is no thought, no
    action that a template of the environment fits, or an action without arguments."""


def words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def plain(action: str) -> str:
    """Return the action in lower case, without extra white space and final period: `Look.` is `look`."""
    return " ".join(action.casefold().split()).rstrip(".")


def move(turn: Turn) -> str:
    """The action, or the whole reply where it has none: a model can be stuck in a malformed reply as well."""
    return plain(turn.action) if turn.action is not None else f"no action: {turn.reply}"


def moves(episode: Episode) -> list[tuple[str, str]]:
    """(last observation, move) of every turn: as much of the state as the model was shown last."""
    seen = [episode.first_observation, *(turn.observation for turn in episode.turns)]
    return [(seen[i], move(turn)) for i, turn in enumerate(episode.turns)]


def longest_loop(steps: Sequence[object]) -> int:
    """Steps in the longest stretch that goes round one cycle at least twice, 0 without any.

    `abcabcab` is 8 (the cycle `abc`, twice and two thirds); `aba` is 0.
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
    """Lengths of the maximal runs of true flags, in order."""
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
    """The facts of each turn of `episode`, in order."""
    how = how or ActionReader()
    facts = []
    best = 0.0
    place = how.place("", episode.first_observation) if how.place else None
    made: set[tuple[str, str]] = set()
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
                repeated=step in made,
                help=action is not None and _asks(plain(action), how.help_action),
                place=place,
                words=len(spoken),
                word_runs=len(word_runs) if thought_before else 0,
                new_word_runs=len(word_runs - thought_runs) if thought_before else 0,
                names_arguments=_names_arguments(spoken, action, how.surface),
            )
        )
        best = max(best, turn.progress)
        made.add(step)
        thought_runs |= word_runs
        thought_before = thought_before or bool(spoken)
    return facts


def _asks(action: str, help_action: str) -> bool:
    """`check valid actions` asks in every environment's ears, however that environment words it itself."""
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
    """Return how to read a family's actions; the default if its environment is not installed. `words` as in `Task`."""
    from evalharness.envs import specs
    from evalharness.protocol.perturb import PlayedSurface

    spec = specs().get(family)
    if spec is None:
        return ActionReader()
    surface = PlayedSurface(spec, perturbation).for_game(words)
    templates = {name: plain(text) for name, text in surface.canonical.templates.items()}
    return ActionReader(
        to_world=surface.to_world,
        surface=ActionSurface(templates),
        help_action=templates.get(spec.actions.help_action or "", ActionReader.help_action),
        place=spec.place,
    )
