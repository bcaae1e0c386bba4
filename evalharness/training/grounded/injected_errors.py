"""Propose wrong actions for a turn of a task: a wrong name or verb, a wrong place, or a useless action.

The module `draft` plays a proposal in the simulator to find out whether it really is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from string import Formatter
from typing import Literal, get_args

from evalharness.protocol.perturb import PlayedSurface
from evalharness.training.teachers.scene import Scene, mentions
from evalharness.training.teachers.teaching import Teaching

Kind = Literal["parameter", "place", "logic"]
KINDS: tuple[Kind, ...] = get_args(Kind)
_WEIGHTS = {"parameter": 0.4, "place": 0.3, "logic": 0.3}


@dataclass(frozen=True)
class InjectedError:
    """A proposed wrong action, with the texts for its thoughts."""

    kind: Kind
    action: str
    why: tuple[str, ...]
    """Sentences that say what was wrong. One of them begins the thought of the next right turn."""
    thoughts: tuple[str, ...] = ()
    """Thoughts to choose from for the wrong action. Empty: use the thought for the plan's next action."""
    back: str | None = None
    """The action that undoes the error."""
    leads_away: bool = False
    """Whether the action changes the state. Such an action is the last error of a sequence."""
    unless: str = ""
    """If the observation contains this word, the action was useful and therefore is no error."""
    verbatim: bool = False
    """Whether the action is played literally, without translation to the wording of the perturbation."""


_SYNONYMS = {
    "activate": "enable", "clean": "rinse", "close": "shut", "cool": "chill", "drop": "release", "examine": "inspect",
    "focus": "concentrate", "go": "walk", "heat": "warm", "jack-down": "lower", "jack-up": "raise", "loosen": "unscrew",
    "mix": "stir", "move": "transfer", "open": "unseal", "pick": "grab", "pickup": "grab", "pour": "tip",
    "put": "place", "putdown": "lay", "stack": "pile", "take": "grab", "toggle": "press", "turn": "rotate",
    "unstack": "lift", "use": "apply",
}  # fmt: skip
"""First word of an action -> synonym that the environment does not know."""


def _misspell(name: str, rng: Random) -> str:
    """Return the name with one letter removed, doubled, or swapped with the next."""
    spots = [i for i, letter in enumerate(name) if letter.isalpha() and i > 0]
    spots = [i for i in spots if i + 1 < len(name) and name[i + 1].isalpha()] or spots
    spot = rng.choice(spots)
    match rng.randrange(3):
        case 0:
            return name[:spot] + name[spot + 1 :]
        case 1:
            return name[:spot] + name[spot] + name[spot:]
    return name[:spot] + name[spot + 1 : spot + 2] + name[spot] + name[spot + 2 :]


def _propose_parameter_errors(
    scene: Scene, world: Teaching, rng: Random, surface: PlayedSurface
) -> Iterator[InjectedError]:
    action = scene.action
    if surface.from_world(action) != action:
        yield InjectedError(
            "parameter",
            action,
            (
                f'"{action}" is not how it is said here.',
                "The action is worded otherwise here; the list says how.",
            ),
            verbatim=True,
        )
    parsed = scene.next
    names = (list(parsed.arguments.values()) if parsed else []) or _list_words(action)
    for name in names:
        if sum(letter.isalpha() for letter in name) > 2:
            wrong = _misspell(name, rng)
            if wrong != name and not mentions(scene.seen, wrong):
                yield InjectedError(
                    "parameter",
                    action.replace(name, wrong, 1),
                    (
                        f'I wrote "{wrong}", but the name is "{name}".',
                        f'There is no "{wrong}". It is called "{name}".',
                        f'"{wrong}" is misspelt: I meant "{name}".',
                    ),
                )
        if match := re.fullmatch(r"(.*?)(\d+)", name):
            wrong = f"{match[1]}{int(match[2]) + rng.randint(1, 9)}"
            if not mentions(scene.seen, wrong):
                yield InjectedError(
                    "parameter",
                    action.replace(name, wrong, 1),
                    (
                        f"There is no {wrong} here. I mean {name}.",
                        f"I have never seen {wrong}; what I want is {name}.",
                    ),
                )
    first, _, rest = action.partition(" ")
    if world.synonyms and (verb := _SYNONYMS.get(first.lower())):
        wrong = f"{verb} {rest}".strip()
        yield InjectedError(
            "parameter",
            wrong,
            (
                f'"{verb}" is not an action here. I have to say "{first}".',
                f'The world does not know "{verb}"; the action is "{first}".',
            ),
        )
    if parsed is not None and len(parsed.arguments) > 1 and (short := _cut_short(scene, parsed.name)):
        yield InjectedError(
            "parameter",
            short,
            (
                f'"{short}" is not complete. I have to say the whole action.',
                "I left out a part of the action.",
            ),
        )


def _list_words(action: str) -> list[str]:
    return [word for word in re.findall(r"[A-Za-z][\w-]{2,}", action) if word]


def _cut_short(scene: Scene, name: str) -> str | None:
    """Return the action up to its first slot: `take plate 1` from `take plate 1 from shelf 2`."""
    assert scene.next is not None
    text = ""
    for literal, slot, _, _ in Formatter().parse(scene.surface.templates[name]):
        text += literal
        if slot is not None:
            return (text + scene.next.arguments[slot]).strip()
    return None


def _propose_place_errors(scene: Scene, world: Teaching, rng: Random) -> Iterator[InjectedError]:
    """Yield actions of other plan steps, which are at the wrong place or time now. The player has already read all
    names in these actions."""
    own = scene.action
    for at, step in enumerate(scene.steps):
        parsed = scene.parse(step.action)
        names = list(parsed.arguments.values()) if parsed is not None else _list_words(step.action)[1:]
        if step.action == own or not names or not scene.knows(*names):
            continue
        early = at > scene.at
        why = (
            "That cannot be done here and now: something else comes first.",
            "The world refused that: I am not where it can be done yet.",
            "Too early: it is not the time for that yet.",
        ) if early else (
            "That cannot be done here any more.",
            "The world refused that: it belongs to another place.",
            "I am no longer where that can be done.",
        )  # fmt: skip
        thoughts = (
            f"I can do it at once: {_strip_point(step.action)}.",
            f"I try it from here: {_strip_point(step.action)}.",
            f"Perhaps this works now: {_strip_point(step.action)}.",
        )
        yield InjectedError("place", step.action, why, thoughts)


def _propose_logic_errors(scene: Scene, world: Teaching, valid: Sequence[str]) -> Iterator[InjectedError]:
    for action in world.idle(scene):
        if action != scene.action:
            yield InjectedError(
                "logic",
                action,
                (
                    "That told me nothing that I need.",
                    "That changed nothing and brought me no nearer to the goal.",
                    "I knew that already.",
                ),
                (
                    f"I am not sure how to go on. I try: {_strip_point(action)}.",
                    f"Before I go on I try: {_strip_point(action)}.",
                ),
            )
    for detour in world.detours(scene, valid):
        wording = (
            f"Perhaps I should {_lower_first(detour.action)}.",
            f"I could {_lower_first(detour.action)} first.",
        )
        if detour.back is None:
            why: tuple[str, ...] = (
                "What I need is not here.",
                "That was the wrong place.",
                "Nothing here helps me.",
            )
        else:
            why = (
                "That does not lead to the goal. I take it back.",
                "That was of no use, so I undo it.",
                "That led me away from the goal. I go back.",
            )
        yield InjectedError("logic", detour.action, why, wording, detour.back, True, detour.unless)


def _strip_point(action: str) -> str:
    return action.strip().rstrip(".")


def _lower_first(action: str) -> str:
    action = _strip_point(action)
    return action[:1].lower() + action[1:]


def propose_errors(
    scene: Scene,
    world: Teaching,
    rng: Random,
    surface: PlayedSurface,
    valid: Sequence[str],
    kinds: Sequence[Kind] = KINDS,
) -> list[InjectedError]:
    """Return proposals in the order in which to try them: the kinds in a random order by weight, and the proposals of
    each kind in random order.

    Leave out `parameter` and `place` errors that the environment lists as valid actions, because it would not refuse
    them.
    """
    makers = {
        "parameter": lambda: list(_propose_parameter_errors(scene, world, rng, surface)),
        "place": lambda: list(_propose_place_errors(scene, world, rng)),
        "logic": lambda: list(_propose_logic_errors(scene, world, valid)),
    }
    proposals: list[InjectedError] = []
    left = list(kinds)
    while left:
        kind = rng.choices(left, [_WEIGHTS[name] for name in left])[0]
        left.remove(kind)
        made = makers[kind]()
        rng.shuffle(made)
        allowed = set(valid)
        proposals += [
            injected
            for injected in made
            if kind == "logic" or injected.verbatim or injected.action not in allowed
        ]
    return proposals
