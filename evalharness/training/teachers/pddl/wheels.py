"""A tyreworld player without privileged information: one condition after the other, each by what it lacks.

An observation shows only what has become true, so the player keeps what it has read and what its actions undo. Its
thoughts carry what it has, and ask for each thing that is needed: what was read of it last stands beside the question
before the answer. (A small model that had to answer without quoting decided 19 of 139 turns otherwise.)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from evalharness.envs.pddl.actions import Reader
from evalharness.training.teachers.pddl.carrying import worded
from evalharness.training.teachers.teaching import Decision

_KEPT = (
    r"hub [\w-]+ is (?:not )?on the ground", r"hub [\w-]+ is (?:un)?fastened", r"wheel \w+ is (?:not )?inflated",
    r"the nut \w+ on the hub [\w-]+ is (?:loose|tight)", r"you have \w+", r"\w+ is in \w+",
    r"\w+ is (?:open|closed)", r"[\w-]+ is on [\w-]*hub\d+", r"[\w-]*hub\d+ is free",
)  # fmt: skip
_FACT = re.compile("|".join(_KEPT))
_OPPOSITE = (
    (" is not on the ground", " is on the ground"),
    (" is unfastened", " is fastened"),
    (" is not inflated", " is inflated"),
    (" is loose", " is tight"),
    (" is open", " is closed"),
)
_TOOLS = ("wrench", "jack", "pump")
_NUT = re.compile(r"the nut (\w+) on the hub ([\w-]+) is (?:loose|tight)")
_SLOT = re.compile(r"\{(\w+)\}")
_OF_WHAT = re.compile(r"^(?:you have |the nut |wheel |hub )")
_HUB = r"(?P<hub>[\w-]*hub\d+)"
_GROUND, _UP = "hub {hub} is on the ground", "hub {hub} is not on the ground"
_BRINGS = (
    (r"(?P<box>\w+) is open", "Open {box}."),
    (r"(?P<box>\w+) is closed", "Close {box}."),
    (r"(?P<thing>\w+) is in (?P<box>\w+)", "Put-away {thing} in {box}.", "you have {thing}", "{box} is open"),
    (r"wheel (?P<wheel>\w+) is inflated", "Inflate the wheel {wheel}.", "you have pump"),
    (rf"the nut (?P<nut>\w+) on the hub {_HUB} is loose", "Loosen the nut {nut} on the hub {hub}.", "you have wrench",
     _GROUND),
    (rf"the nut (?P<nut>\w+) on the hub {_HUB} is tight", "Tighten the nut {nut} on the hub {hub}.",
     "hub {hub} is fastened", "you have wrench", _GROUND),
    (rf"(?P<wheel>\w+) is on {_HUB}", "put-on-wheel {wheel} on the hub {hub}.", "{hub} is free", "you have {wheel}",
     _UP),
    (rf"{_HUB} is free", "Remove-wheel {old} from the hub {hub}.", "hub {hub} is unfastened", _UP),
    (rf"hub {_HUB} is unfastened", "Undo the fastening of the nut {nut} on the hub {hub}.",
     "the nut {nut} on the hub {hub} is loose", "you have wrench", _UP),
    (rf"hub {_HUB} is fastened", "Do-up the nut {nut} on the hub {hub}.", "you have {nut}", "you have wrench", _UP),
    (rf"hub {_HUB} is not on the ground", "jack-up the hub {hub}.", "you have jack"),
    (rf"hub {_HUB} is on the ground", "Jack-down the hub {hub}."),
)  # fmt: skip
"""(a fact, the action that brings it, what that needs). `nut` is the hub's, `old` the wheel that is on it."""
_LONGEST = 30
"""Questions of a thought, at most: a chain of needs that comes back to itself ends."""
_QUESTIONS: Final = {
    " is not on the ground": "Up", " is on the ground": "Down", " is unfastened": "Unfastened",
    " is fastened": "Fastened", " is loose": "Loose", " is free": "Free", " is open": "Open",
}  # fmt: skip
"""What is needed of a hub, a nut or the boot, in a word: what was read of it follows, of whichever thing it is."""


def facts_in(text: str) -> list[str]:
    return _FACT.findall(text.lower())


def errand_order(fact: str) -> tuple[int, str, int]:
    """Wheels are inflated; then hub by hub the wheel is put on, the nut tightened; then things are put away hub by hub,
    wheels before nuts; then hubs are let down, tools put away; last the boot is closed."""
    if hub := re.search(r"hub(\d+)", fact):
        if fact.endswith(" on the ground"):
            return 2, f"hub{hub[1]}", 0
        return 1, hub[1], int(fact.startswith(("the nut ", "hub ")))
    if " is in " in fact:
        thing = fact.split()[0]
        return 2, "tool" if thing in _TOOLS else re.sub(r"\D", "", thing), int(thing.startswith("nuts"))
    return (3 if " is closed" in fact else 0), fact, 0


def _opposites(fact: str) -> list[str]:
    return [
        fact.removesuffix(mine) + other
        for pair in _OPPOSITE
        for mine, other in (pair, pair[::-1])
        if fact.endswith(mine)
    ]


def _asked(need: str) -> str:
    if (thing := need.removeprefix("you have ")) != need:
        return thing.capitalize()
    return next((question for ending, question in _QUESTIONS.items() if need.endswith(ending)), need)


def _short(fact: str) -> str:
    return fact.removeprefix("hub ").removeprefix("the nut ")


class Mechanic:
    """One episode's player. Ask `next`, play it, and say with `saw` what came of it."""

    reads_valid = True

    def __init__(self, subgoals: Sequence[str], reader: Reader) -> None:
        self._reader = reader
        self._wanted = sorted((fact for text in subgoals for fact in facts_in(text)), key=errand_order)
        self._facts: dict[str, None] = {}
        """In the order in which they came."""
        self._nuts: dict[str, str] = {}
        """Hub -> its nut, by the last that was read of it, else by the goal."""
        self._match_nuts(self._wanted)
        self._said: list[str] = []
        """Questions and answers of the thought that is being made."""

    def next(self, observation: str, valid: Sequence[str]) -> Decision | None:
        """What it does next, out of the valid actions; None when it is at a loss."""
        if not self._facts:
            self._learn(observation)
        has = (thing for fact in self._facts if (thing := fact.removeprefix("you have ")) != fact)
        self._said = [f"I have {', '.join(has) or 'nothing'}."]
        action = self._after(None, *self._wanted)
        if action is None:
            return None
        thought = f"{' '.join(self._said)} I {action[0].lower()}{action[1:]}"
        return worded(Decision(action, action.split()[0].lower(), (thought,)), valid)

    def saw(self, action: str, before: str, after: str, completed: Sequence[int]) -> None:
        if not self._facts:
            self._learn(before)
        match self._reader.read(action):
            case "put-away", (thing, _):
                self._lose(f"you have {thing}")
            case "fetch", (thing, box):
                self._lose(f"{thing} is in {box}")
            case "jack-up", _:
                self._lose("you have jack")
            case "undo", (nut, hub):
                self._lose(f"the nut {nut} on the hub {hub} is loose")
            case "do-up", (nut, _):
                self._lose(f"you have {nut}")
            case "remove-wheel", (wheel, hub):
                self._lose(f"{wheel} is on {hub}")
            case "put-on-wheel", (wheel, hub):
                self._lose(f"you have {wheel}", f"{hub} is free")
        self._learn(after)

    def _learn(self, text: str) -> None:
        facts = facts_in(text)
        for fact in facts:
            self._lose(*_opposites(fact))
            self._facts.setdefault(fact)
        self._match_nuts(facts)

    def _match_nuts(self, facts: Iterable[str]) -> None:
        for fact in facts:
            if match := _NUT.fullmatch(fact):
                self._nuts[match[2]] = match[1]

    def _lose(self, *facts: str) -> None:
        for fact in facts:
            self._facts.pop(fact, None)

    def _known(self, pattern: str) -> str | None:
        """The group of the first fact, by the alphabet, that fits."""
        return next(
            (match[1] for fact in sorted(self._facts) if (match := re.fullmatch(pattern, fact))), None
        )

    def _after(self, action: str | None, *needs: str) -> str | None:
        """What brings the first of `needs` that does not hold; `action` where all hold."""
        for need in needs:
            question = _asked(need)
            if need in self._facts:
                had = need.startswith("you have ")
                self._said.append(f"{question}: yes." if had else f"{question}? {_short(need)}: yes.")
                continue
            if len(self._said) > _LONGEST:
                return None
            self._said.append(f"{question}? {_short(self._instead(need))}: no.")
            return self._towards(need)
        return action

    def _instead(self, need: str) -> str:
        """What was read of the thing instead of `need`."""
        for other in _opposites(need):
            if other in self._facts:
                return other
        thing = _OF_WHAT.sub("", need).split()[0]
        patterns = (
            (rf"(\w+ is on {thing})",) if need.endswith(" is free")
            else (rf"({thing} is on [\w-]+)", rf"({thing} is in \w+)", rf"(you have {thing})",
                  rf"(the nut {thing} on the hub [\w-]+ is \w+)",
                  *([r"(hub [\w-]+ is not on the ground)"] if thing == "jack" else []))
        )  # fmt: skip
        found = (self._known(pattern) for pattern in patterns)
        return next((fact for fact in found if fact is not None), f"{thing} is elsewhere")

    def _towards(self, fact: str) -> str | None:
        """The action that brings `fact`, or the first thing that it lacks."""
        if match := re.fullmatch(r"you have (\w+)", fact):
            return self._get(match[1])
        for pattern, action, *needs in _BRINGS:
            if match := re.fullmatch(pattern, fact):
                things = match.groupdict()
                if hub := things.get("hub"):
                    here = {"nut": self._nuts.get(hub), "old": self._known(rf"(\w+) is on {hub}")}
                    things = {**{name: thing for name, thing in here.items() if thing is not None}, **things}
                if not set(_SLOT.findall(" ".join((action, *needs)))) <= things.keys():
                    return None  # nobody has said which nut or wheel is the hub's
                return self._after(action.format(**things), *(need.format(**things) for need in needs))
        return None

    def _get(self, thing: str) -> str | None:
        if (place := self._known(rf"{thing} is in (\w+)")) is not None:
            return self._after(f"Fetch {thing} from {place}.", f"{place} is open")
        if thing == "jack":
            up = self._known(r"hub ([\w-]+) is not on the ground")
            return None if up is None else f"Jack-down the hub {up}."
        if (hub := self._known(rf"the nut {thing} on the hub ([\w-]+) is (?:loose|tight)")) is not None:
            return self._after(None, f"hub {hub} is unfastened")
        hub = self._known(rf"{thing} is on ([\w-]+)")
        return None if hub is None else self._after(None, f"{hub} is free")
