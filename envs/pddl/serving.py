"""A barman without privileged information: one drink after the other, by one fixed order of steps.

An observation shows only what has become true, so the player keeps what each hand holds, what each shot was used for
and what is in the shaker; its thoughts carry the part that decides. Cocktails come before single ingredients: their
shot is also the measure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from evalharness.envs.pddl.carrying import worded
from evalharness.envs.pddl.wording import SENTENCES
from evalharness.envs.surface import ActionSurface
from evalharness.envs.teaching import Decision

_SURFACE: Final = ActionSurface({name: sentence.strip() for name, sentence in SENTENCES.items()})
_CONTAINS = re.compile(r"\b(shot\d+|shaker\d+) contains (\w+)")
_USED = re.compile(r"pour (shot\d+) from a shot glass to a used shaker (\w+)")
_PART = re.compile(r"(cocktail\d+) part([12]) ingredient is (\w+)")
_DISPENSES = re.compile(r"(dispenser\d+) dispenses (\w+)")
_LEVEL = re.compile(r"\bis at level (l\d+)")
_HANDS: Final = ("left", "right")


class Barman:
    """One episode's player. Ask `next`, play it, and say with `saw` what came of it."""

    reads_valid = True

    def __init__(self, subgoals: Sequence[str]) -> None:
        found = [match for text in subgoals for match in _CONTAINS.findall(text.lower())]
        self._wanted = sorted(found, key=lambda pair: not pair[1].startswith("cocktail"))
        self._holds: dict[str, str] = {}
        """Hand -> shot or shaker."""
        self._inside: dict[str, list[str]] = {}
        """Shot or shaker -> what it contains."""
        self._used: dict[str, str] = {}
        """Shot -> what it was used for, where it is not clean."""
        self._parts: dict[str, list[str]] = {}
        self._taps: dict[str, str] = {}
        self._shaker = "shaker1"
        self._level = "l0"
        self._clean = self._shaked = False
        """The shaker."""

    def _read(self, text: str) -> None:
        text = text.lower()
        for cocktail, _, part in sorted(_PART.findall(text)):
            self._parts.setdefault(cocktail, []).append(part)
        self._taps = {what: tap for tap, what in _DISPENSES.findall(text)}
        for vessel, what in _CONTAINS.findall(text):
            self._inside.setdefault(vessel, []).append(what)
        self._used = dict(_USED.findall(text))
        if level := _LEVEL.search(text):
            self._level = level[1]
        self._clean, self._shaked = "shaker1 is clean" in text, "shaker1 is shaked" in text
        vessels = sorted(set(re.findall(r"\b(?:shot|shaker)\d+", text)))
        held = [vessel for vessel in vessels if f"{vessel} is on the table" not in text]
        busy = [hand for hand in _HANDS if f"handempty {hand}" not in text]
        self._holds = dict(zip(busy, held, strict=False))

    def next(self, observation: str, valid: Sequence[str]) -> Decision | None:
        """What it does next, out of the valid actions; None when it is at a loss."""
        if not self._taps:
            self._read(observation)
        for shot, drink in self._wanted:
            if self._inside.get(shot) != [drink]:
                step = (
                    self._mix(shot, drink) if drink in self._parts else self._measure(shot, drink, keep=True)
                )
                if step is None:
                    return None
                action, why = step
                hands = ", ".join(f"{hand}: {self._holds.get(hand, 'empty')}" for hand in _HANDS)
                shaker = " + ".join(self._inside.get(self._shaker, [])) or "nothing"
                parts = f" = {' + '.join(self._parts[drink])}" if drink in self._parts else ""
                in_shaker = f" Shaker: {shaker}." if parts else ""
                thought = f"Next: {shot} with {drink}{parts}. {hands}.{in_shaker} {why}"
                parsed = _SURFACE.parse(action)
                return worded(Decision(action, parsed.name if parsed else "other", (thought,)), valid)
        return None

    def _hold(self, vessel: str) -> tuple[str, str] | None:
        """Towards holding one vessel and nothing else; None where that is so."""
        for hand in _HANDS:
            if (held := self._holds.get(hand)) is not None and held != vessel:
                return f"{hand} leave {held}.", f"I need {vessel} alone. I leave {held}."
        if vessel not in self._holds.values():
            return f"left grasp {vessel}.", f"I need {vessel}. I grasp it."
        return None

    def _hands(self, vessel: str) -> tuple[str, str]:
        """(the hand that holds it, the other)."""
        hand = next(hand for hand, held in self._holds.items() if held == vessel)
        return hand, _HANDS[1 - _HANDS.index(hand)]

    def _measure(self, shot: str, what: str, *, keep: bool = False) -> tuple[str, str] | None:
        """Towards `what` in the shot."""
        if step := self._hold(shot):
            return step
        hand, other = self._hands(shot)
        inside, used = self._inside.get(shot), self._used.get(shot)
        if inside:
            action = f"use hand {hand} to empty-shot glass {shot} with beverage {inside[0]}."
            return action, f"{shot} contains {inside[0]}. I empty it."
        if used == what:
            tap = self._taps[what]
            return (
                f"refill-shot {shot} with {what} with {hand} and {other} holding {tap}.",
                f"{shot} had {what}.",
            )
        if used is not None:
            return self._wash(shot, used)
        action = f"fill-shot glass {shot} with {what} with {hand} and {other} holding {self._taps[what]}."
        return action, f"{shot} is clean. I fill it."

    def _wash(self, shot: str, used: str) -> tuple[str, str]:
        hand, other = self._hands(shot)
        action = f"clean-shot glass {shot} with {used} with hand {hand} holding shot glass and {other}."
        return action, f"{shot} was used for {used}. I clean it."

    def _mix(self, shot: str, cocktail: str) -> tuple[str, str] | None:
        shaker, parts = self._shaker, self._parts[cocktail]
        there = self._inside.get(shaker, [])
        if not self._shaked and any(what not in parts for what in there):
            # Only what was shaken can be poured away.
            made = next((name for name, its in self._parts.items() if set(there) <= set(its)), None)
            step = None if made is None else self._mix(shot, made)
            return None if step is None else (step[0], f"First {made}, to empty the shaker. {step[1]}")
        if self._shaked or (not there and not self._clean):
            if there == [cocktail] and not self._inside.get(shot) and shot not in self._used:
                if step := self._hold(shaker):
                    return step
                hand, _ = self._hands(shaker)
                lower = f"l{int(self._level[1:]) - 1}"
                action = (
                    f"pour-shaker-to-shot to a shot glass {cocktail} the ingredient {shot} with hand {hand} "
                )
                action += f"from shaker {shaker} from level {self._level} to level {lower}"
                return action, "It is ready. I pour it."
            if there == [cocktail]:
                if step := self._hold(shot):
                    return step
                return self._wash(shot, self._used.get(shot, cocktail))
            return self._rinse(there)
        missing = [part for part in parts if part not in there]
        if missing:
            if self._inside.get(shot) != [missing[0]]:
                return self._measure(shot, missing[0])
            if step := self._hold(shot):
                return step
            hand, _ = self._hands(shot)
            state, higher = "used" if there else "clean", f"l{int(self._level[1:]) + 1}"
            action = (
                f"pour-shot-to-{state}-shaker from a shot glass {shot} with {missing[0]} to a {state} shaker {shaker} "
                f"with hand {hand} from level {self._level} to level {higher}"
            )
            return action, f"{shot} has {missing[0]}. I pour it into the shaker."
        if (used := self._used.get(shot)) is not None:
            return self._hold(shot) or self._wash(shot, used)
        if step := self._hold(shaker):
            return step
        hand, other = self._hands(shaker)
        action = (
            f"shake a cocktail {cocktail} with ingredient {parts[0]} and ingredient {parts[1]} in a shaker {shaker} "
            f"with hand {hand} and hand {other}"
        )
        return action, "Both parts are in. I shake."

    def _rinse(self, there: Sequence[str]) -> tuple[str, str] | None:
        """Towards a clean, empty shaker."""
        if step := self._hold(self._shaker):
            return step
        hand, other = self._hands(self._shaker)
        if there:
            action = f"use hand {hand} to empty-shaker {self._shaker} with ingredient {there[0]}"
            return (
                f"{action} from level {self._level} to level l0.",
                f"The shaker has {there[0]}. I empty it.",
            )
        return (
            f"use hand {hand} and hand {other} to clean-shaker {self._shaker}",
            "The shaker is used. I clean it.",
        )

    def saw(self, action: str, before: str, after: str, completed: Sequence[int]) -> None:
        if not self._taps:
            self._read(before)
        parsed = _SURFACE.parse(action.strip())
        if parsed is None:
            return
        name, slots = parsed.name, parsed.arguments
        shot, shaker = slots.get("shot", ""), self._shaker
        if level := _LEVEL.search(after.lower()):
            self._level = level[1]
        match name:
            case "grasp":
                self._holds[slots["hand"]] = slots["container"]
            case "leave":
                self._holds.pop(slots["hand"], None)
            case "fill-shot" | "refill-shot":
                self._inside[shot], self._used[shot] = [slots["ingredient"]], slots["ingredient"]
            case "empty-shot":
                self._inside.pop(shot, None)
            case "clean-shot":
                self._used.pop(shot, None)
            case "pour-shot-to-clean-shaker" | "pour-shot-to-used-shaker":
                self._inside.setdefault(shaker, []).append(slots["ingredient"])
                self._inside.pop(shot, None)
                self._clean = False
            case "shake":
                self._inside[shaker], self._shaked = [slots["cocktail"]], True
            case "pour-shaker-to-shot":
                self._inside[shot], self._used[shot] = [slots["beverage"]], slots["beverage"]
            case "empty-shaker":
                self._inside.pop(shaker, None)
                self._shaked, self._level = False, slots["empty_level"].rstrip(".")
            case "clean-shaker":
                self._clean = True
