"""A barman without privileged information: one drink after the other, by one fixed order of steps.

An observation shows only what has become true, so the player keeps what each hand holds, what each shot was used for
and what is in the shaker; its thoughts carry the part that decides, each sentence before what follows from it: which
drinks are served, what hands, shot and shaker hold, what is to be done, and whether the hands allow it. What a hand
holds at the start is what is not on the table, so the first thought goes over all that could be.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from evalharness.envs.pddl.actions import Reader
from evalharness.envs.pddl.wording import SENTENCES
from evalharness.envs.surface import ActionSurface
from evalharness.training.teachers.pddl.carrying import worded
from evalharness.training.teachers.teaching import Decision

_SURFACE: Final = ActionSurface({name: sentence.strip() for name, sentence in SENTENCES.items()})
_CONTAINS = re.compile(r"\b(shot\d+|shaker\d+) contains (\w+)")
_USED = re.compile(r"pour (shot\d+) from a shot glass to a used shaker (\w+)")
_PART = re.compile(r"(cocktail\d+) part([12]) ingredient is (\w+)")
_DISPENSES = re.compile(r"(dispenser\d+) dispenses (\w+)")
_LEVEL = re.compile(r"\bis at level (l\d+)")
_SLOT = re.compile(r"\{(\w+)\}")
_HANDS: Final = ("left", "right")


class Barman:
    """One episode's player. Ask `next`, play it, and say with `saw` what came of it."""

    reads_valid = True

    def __init__(self, subgoals: Sequence[str], reader: Reader) -> None:
        self._reader = reader
        self._wanted = [match for text in subgoals for match in _CONTAINS.findall(text.lower())]
        self._holds: dict[str, str] = {}
        """Hand -> shot or shaker."""
        self._known_hands = True
        """False where both hands hold something at the start: no observation says which hand holds what."""
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
        self._table: dict[str, bool] = {}
        """Shot or shaker -> whether it stood on the table at the start, in the order of their names; empty where both
        hands were seen to be empty, and once something was done."""

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
        table = {vessel: f"{vessel} is on the table" in text for vessel in vessels}
        busy = [hand for hand in _HANDS if f"handempty {hand}" not in text]
        self._table = table if busy else {}
        self._known_hands = len(busy) < len(_HANDS)
        self._holds = dict(zip(busy, (vessel for vessel in vessels if not table[vessel]), strict=False))

    def next(self, observation: str, valid: Sequence[str]) -> Decision | None:
        """What it does next, out of the valid actions; None when it is at a loss."""
        if not self._taps:
            self._read(observation)
        if not self._known_hands:
            return None
        said = [f"{vessel}: {'table' if there else 'not'}." for vessel, there in self._table.items()]
        for shot, drink in self._wanted:
            served = self._inside.get(shot) == [drink]
            said.append(f"{shot} contains {drink}: {'yes' if served else 'no'}.")
            if served:
                continue
            said += [
                f"{drink} part{number} ingredient is {part}."
                for number, part in enumerate(self._parts.get(drink, ()), 1)
            ]
            hands = ", ".join(f"{hand}: {self._holds.get(hand, 'empty')}" for hand in _HANDS)
            said.append(f"{hands}. {self._of_shot(shot)}.")
            if drink in self._parts:
                said.append(f"{self._of_shaker()}.")
            step = self._mix(shot, drink) if drink in self._parts else self._measure(shot, drink)
            if step is None:
                return None
            action, why = step
            parsed = _SURFACE.parse(action)
            decision = Decision(action, parsed.name if parsed else "other", (" ".join([*said, why]),))
            return worded(decision, valid)
        return None

    def _of_shot(self, shot: str) -> str:
        if inside := self._inside.get(shot):
            return f"{shot} has {inside[0]}"
        used = self._used.get(shot)
        return f"{shot} is clean" if used is None else f"{shot} was used for {used}"

    def _of_shaker(self) -> str:
        there = " + ".join(self._inside.get(self._shaker, []))
        if self._shaked:
            there += " shaked"
        return f"Shaker: {there or ('clean' if self._clean else 'used')}, {self._level}"

    def _do(self, vessel: str, name: str, step: str, **slots: str) -> tuple[str, str]:
        """Towards an action, `step` in words, for which one holds `vessel` and nothing else."""
        for hand in _HANDS:
            if (held := self._holds.get(hand)) is not None and held != vessel:
                return f"{hand} leave {held}.", f"To do: {step}. {hand} has {held}: I leave it."
        if vessel not in self._holds.values():
            return f"left grasp {vessel}.", f"To do: {step}. No hand has {vessel}: I grasp it."
        hand = next(hand for hand, held in self._holds.items() if held == vessel)
        level = int(self._level[1:])
        known = {
            "hand": hand,
            "other_hand": _HANDS[1 - _HANDS.index(hand)],
            "shot": vessel,
            "shaker": self._shaker,
            "level": self._level,
            "lower_level": f"l{level - 1}",
            "next_level": f"l{level + 1}",
            "empty_level": "l0",
        }
        action = SENTENCES[name].format(**{**known, **slots}).strip()
        return action, f"To do: {step}. {hand} has {vessel} alone: I do it."

    def _measure(self, shot: str, what: str) -> tuple[str, str]:
        """Towards `what` in the shot."""
        used = self._used.get(shot)
        if self._inside.get(shot) or used not in (None, what):
            return self._wash(shot)
        name = "fill-shot" if used is None else "refill-shot"
        return self._do(shot, name, f"fill {shot} with {what}", ingredient=what, dispenser=self._taps[what])

    def _wash(self, shot: str) -> tuple[str, str]:
        """Towards a clean, empty shot; one is cleaned only when nothing is in it."""
        if inside := self._inside.get(shot):
            return self._do(shot, "empty-shot", f"empty {shot}", beverage=inside[0])
        used = self._used[shot]
        return self._do(shot, "clean-shot", f"clean {shot} of {used}", beverage=used)

    def _mix(self, shot: str, cocktail: str) -> tuple[str, str] | None:
        shaker, parts = self._shaker, self._parts[cocktail]
        there, used = self._inside.get(shaker, []), self._used.get(shot)
        if not self._shaked and any(what not in parts for what in there):
            # Only what was shaken can be poured away.
            made = next((name for name, its in self._parts.items() if set(there) <= set(its)), None)
            step = None if made is None else self._mix(shot, made)
            return None if step is None else (step[0], f"First {made}, to empty the shaker. {step[1]}")
        if self._shaked or (not there and not self._clean):
            if there != [cocktail]:
                return self._rinse(there)
            if self._inside.get(shot) or used is not None:
                return self._wash(shot)
            return self._do(
                shaker, "pour-shaker-to-shot", f"pour {cocktail} into {shot}", beverage=cocktail, shot=shot
            )
        missing = [part for part in parts if part not in there]
        if missing:
            what = missing[0]
            if self._inside.get(shot) != [what]:
                return self._measure(shot, what)
            name = f"pour-shot-to-{'used' if there else 'clean'}-shaker"
            return self._do(shot, name, f"pour {what} into the shaker", ingredient=what)
        if used is not None:
            return self._wash(shot)
        slots = {"cocktail": cocktail, "ingredient": parts[0], "other_ingredient": parts[1]}
        return self._do(shaker, "shake", "shake both parts", **slots)

    def _rinse(self, there: Sequence[str]) -> tuple[str, str]:
        """Towards a clean, empty shaker."""
        if there:
            return self._do(
                self._shaker, "empty-shaker", f"empty the shaker of {there[0]}", cocktail=there[0]
            )
        return self._do(self._shaker, "clean-shaker", "clean the shaker")

    def saw(self, action: str, before: str, after: str, completed: Sequence[int]) -> None:
        if not self._taps:
            self._read(before)
        played = self._reader.read(action)
        if played is None:
            return
        self._table = {}
        name = played.name
        slots = dict(zip(_SLOT.findall(SENTENCES[name]), played.arguments, strict=True))
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
                self._shaked, self._level = False, slots["empty_level"]
            case "clean-shaker":
                self._clean = True
