"""Errors that could be made at a moment of a task: a wrong name or verb, a wrong place, or a useless action. Pure.

These are candidates only: whether one is an error is for the world to say (`draft`).
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
    """One wrong action."""

    kind: Kind
    action: str
    why: tuple[str, ...]
    """Wordings of what was wrong, as the correction's thought says it."""
    thoughts: tuple[str, ...] = ()
    """Wordings of the thought that leads to it; none: it is meant as the plan's next action."""
    back: str | None = None
    """What takes it back."""
    leads_away: bool = False
    """It changes the state (and ends its run of errors)."""
    unless: str = ""
    """It is no error if the world's answer holds this word."""
    as_said: bool = False
    """To be said just so, although the world is worded otherwise."""


_SYNONYMS = {
    "activate": "enable", "clean": "rinse", "close": "shut", "cool": "chill", "drop": "release", "examine": "inspect",
    "focus": "concentrate", "go": "walk", "heat": "warm", "jack-down": "lower", "jack-up": "raise", "loosen": "unscrew",
    "mix": "stir", "move": "transfer", "open": "unseal", "pick": "grab", "pickup": "grab", "pour": "tip",
    "put": "place", "putdown": "lay", "stack": "pile", "take": "grab", "toggle": "press", "turn": "rotate",
    "unstack": "lift", "use": "apply",
}  # fmt: skip
"""First word of an action -> one that people would say and the world does not know."""


def _misspelt(name: str, rng: Random) -> str:
    """One letter left out, doubled, or changed places with the next."""
    spots = [i for i, letter in enumerate(name) if letter.isalpha() and i > 0]
    spots = [i for i in spots if i + 1 < len(name) and name[i + 1].isalpha()] or spots
    spot = rng.choice(spots)
    match rng.randrange(3):
        case 0:
            return name[:spot] + name[spot + 1 :]
        case 1:
            return name[:spot] + name[spot] + name[spot:]
    return name[:spot] + name[spot + 1 : spot + 2] + name[spot] + name[spot + 2 :]


def _parameter(scene: Scene, world: Teaching, rng: Random, surface: PlayedSurface) -> Iterator[InjectedError]:
    action = scene.action
    if surface.action(action) != action:
        yield InjectedError(
            "parameter",
            action,
            (
                f'"{action}" is not how it is said here.',
                "The action is worded otherwise here; the list says how.",
            ),
            as_said=True,
        )
    parsed = scene.next
    names = (list(parsed.arguments.values()) if parsed else []) or _words(action)
    for name in names:
        if sum(letter.isalpha() for letter in name) > 2:
            wrong = _misspelt(name, rng)
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
    if parsed is not None and len(parsed.arguments) > 1 and (short := _cut(scene, parsed.name)):
        yield InjectedError(
            "parameter",
            short,
            (
                f'"{short}" is not complete. I have to say the whole action.',
                "I left out a part of the action.",
            ),
        )


def _words(action: str) -> list[str]:
    return [word for word in re.findall(r"[A-Za-z][\w-]{2,}", action) if word]


def _cut(scene: Scene, name: str) -> str | None:
    """The action up to its first slot: `take plate 1` of `take plate 1 from shelf 2`."""
    assert scene.next is not None
    text = ""
    for literal, slot, _, _ in Formatter().parse(scene.surface.templates[name]):
        text += literal
        if slot is not None:
            return (text + scene.next.arguments[slot]).strip()
    return None


def _place(scene: Scene, world: Teaching, rng: Random) -> Iterator[InjectedError]:
    """Actions of other moments of the plan, all of whose names have been read: right, but not here and now."""
    own = scene.action
    for at, step in enumerate(scene.steps):
        parsed = scene.parse(step.action)
        names = list(parsed.arguments.values()) if parsed is not None else _words(step.action)[1:]
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
            f"I can do it at once: {_bare(step.action)}.",
            f"I try it from here: {_bare(step.action)}.",
            f"Perhaps this works now: {_bare(step.action)}.",
        )
        yield InjectedError("place", step.action, why, thoughts)


def _logic(scene: Scene, world: Teaching, valid: Sequence[str]) -> Iterator[InjectedError]:
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
                    f"I am not sure how to go on. I try: {_bare(action)}.",
                    f"Before I go on I try: {_bare(action)}.",
                ),
            )
    for detour in world.detours(scene, valid):
        wording = (f"Perhaps I should {_lower(detour.action)}.", f"I could {_lower(detour.action)} first.")
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


def _bare(action: str) -> str:
    return action.strip().rstrip(".")


def _lower(action: str) -> str:
    action = _bare(action)
    return action[:1].lower() + action[1:]


def possible_errors(
    scene: Scene,
    world: Teaching,
    rng: Random,
    surface: PlayedSurface,
    valid: Sequence[str],
    kinds: Sequence[Kind] = KINDS,
) -> list[InjectedError]:
    """Candidates in the order in which they should be tried: kinds drawn by weight, each kind's shuffled.

    What the world lists as valid is no candidate for a refusal.
    """
    makers = {
        "parameter": lambda: list(_parameter(scene, world, rng, surface)),
        "place": lambda: list(_place(scene, world, rng)),
        "logic": lambda: list(_logic(scene, world, valid)),
    }
    found: list[InjectedError] = []
    left = list(kinds)
    while left:
        kind = rng.choices(left, [_WEIGHTS[name] for name in left])[0]
        left.remove(kind)
        made = makers[kind]()
        rng.shuffle(made)
        allowed = set(valid)
        found += [
            injected
            for injected in made
            if kind == "logic" or injected.as_said or injected.action not in allowed
        ]
    return found
