"""A player of ScienceWorld's find and life span tasks without privileged information, for a small model to imitate.

It knows what never changes: which room of the house is next to which, that animals are out of doors and plants in the
greenhouse, and about how long animals live. What is in a room it learns by looking around.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from typing import Final

from evalharness.envs.sciworld import place
from evalharness.training.teachers.teaching import Decision

DOORS: Final = {
    "hallway": ("art studio", "bedroom", "greenhouse", "kitchen", "living room", "workshop"),
    "kitchen": ("bathroom", "hallway", "outside"),
    "outside": ("foundry", "greenhouse", "kitchen"),
    "greenhouse": ("hallway", "outside"),
    "art studio": ("hallway",),
    "bedroom": ("hallway",),
    "living room": ("hallway",),
    "workshop": ("hallway",),
    "bathroom": ("kitchen",),
    "foundry": ("outside",),
}
"""The rooms of the house and where their doors lead; the same in every task."""
FIND: Final = ("find-animal", "find-living-thing", "find-non-living-thing", "find-plant")
LIFESPAN: Final = (
    "lifespan-longest-lived",
    "lifespan-longest-lived-then-shortest-lived",
    "lifespan-shortest-lived",
)
LIFE_SPANS: Final = (
    "giant tortoise", "parrot", "elephant", "crocodile", "brown bear", "wolf", "beaver", "frog", "rabbit", "chipmunk",
    "hedgehog", "mouse", "chameleon", "dragonfly", "ant",
)  # fmt: skip
"""The animals of these tasks, the longest lived first."""
_LIFELESS: Final = frozenset(["agent", "air", "axe", "ground", "shovel", "wood", "water", "fountain"]) | {
    "fire pit"
}
_BOX = re.compile(r"move it to the (\w+ box) in the ([\w ]+?)\.")
_PLANT = re.compile(r"^(flower pot \d+) \(containing a ([\w ]+?) in the (?:adult|reproducing) stage")
_LAID = re.compile(r"On the [\w ]+ is: an? ([\w ]+)")
_ARTICLE = re.compile(r"^(?:an?|the|some) ")


def next_door(here: str, room: str) -> str | None:
    """The first room on the shortest way; None where none is known."""
    queue = deque([(here, "")])
    seen = {here}
    while queue:
        spot, first = queue.popleft()
        if spot == room:
            return first or None
        for there in DOORS.get(spot, ()):
            if there not in seen:
                seen.add(there)
                queue.append((there, first or there))
    return None


def things_in(observation: str) -> list[str]:
    """What a look around lists, without articles, in its order."""
    listed = observation.partition("You also see")[0].split("\n\t")[1:]
    return [_ARTICLE.sub("", line.strip()) for line in listed]


def animals_in(observation: str) -> list[str]:
    names = [name for name in things_in(observation) if "substance" not in name]
    bare = [re.split(r" \(|\.|,", name)[0] for name in names]
    return [name for name in bare if name not in _LIFELESS]


def span(animal: str) -> int:
    """Its place in `LIFE_SPANS`; after all for one that is not known."""
    return next((place for place, name in enumerate(LIFE_SPANS) if name in animal), len(LIFE_SPANS))


class Finder:
    """One episode's player. Ask `next`, play it, and say with `saw` what came of it."""

    reads_valid = False

    def __init__(self, kind: str, goal: str) -> None:
        """A task's kind, one of `FIND` or `LIFESPAN`, and its goal."""
        self._kind = kind
        box = _BOX.search(goal)
        self._box, self._end = (box[1], box[2]) if box else ("", "")
        self._here = ""
        self._view = ""
        """What was seen by looking around here."""
        self._focused: list[str] = []
        self._carried = ""

    def next(self, observation: str, valid: Sequence[str]) -> Decision | None:
        """What it does next; None when it is at a loss."""
        if not self._here:
            self._arrived(observation)
        return self._compare() if self._kind in LIFESPAN else self._find()

    def saw(self, action: str, before: str, after: str, completed: Sequence[int]) -> None:
        if not self._here:
            self._arrived(before)
        verb, _, rest = action.partition(" ")
        if verb in ("go", "look"):
            self._arrived(after)
        elif verb == "focus" and "You focus" in after:
            self._focused.append(rest.removeprefix("on "))
        elif verb == "pick" and "inventory" in after:
            self._carried = rest.removeprefix("up ")

    def _arrived(self, text: str) -> None:
        room = place("", text)
        if room is not None and room != self._here:
            self._here, self._view = room, ""
        if "see:" in text:
            self._view = text

    def _go(self, room: str, why: str) -> Decision | None:
        """Both rooms are named side by side: a small model takes one that it comes through for the one it goes to."""
        door = next_door(self._here, room)
        if door is None:
            return None
        thought = f"{why} I am in the {self._here}, not in the {room}. I go to the {door}."
        return Decision(f"go to {door}", "go: next door", thought)

    def _look(self, why: str) -> Decision:
        return Decision("look around", "look around", f"{why} I am in the {self._here}. I look around.")

    def _compare(self) -> Decision | None:
        shortest = "shortest" in self._kind
        both = "then" in self._kind
        wanted = "shortest" if shortest and (not both or self._focused) else "longest"
        why = f"I need the animal with the {wanted} life."
        if self._here != "outside":
            return self._go("outside", f"{why} It is outside.")
        if not self._view:
            return self._look(why)
        animals = sorted(animals_in(self._view), key=span)
        if not animals:
            return None
        found = animals[-1] if wanted == "shortest" else animals[0]
        end = "last" if wanted == "shortest" else "first"
        thought = f"From long to short lives: {', '.join(animals)}. The {wanted} is the {end}: {found}."
        return Decision(f"focus on {found}", f"focus: the {wanted} life", thought)

    def _find(self) -> Decision | None:
        what = self._kind.removeprefix("find-").replace("-", " ").replace("non living", "non-living")
        what = f"an {what}" if what[0] in "aeiou" else f"a {what}"
        if self._focused:
            return self._bring(self._focused[0])
        place, where = {
            "find-plant": ("greenhouse", "Plants are in the greenhouse."),
            "find-non-living-thing": (self._end, f"The box is in the {self._end}."),
        }.get(self._kind, ("outside", "Animals live out of doors."))
        why = f"I need {what}. {where}"
        if self._here != place:
            return self._go(place, why)
        if not self._view:
            return self._look(why)
        found = self._seen()
        if found is None:
            return None
        return Decision(
            f"focus on {found}", f"focus: {what}", f"I need {what}. Here is {found}. I focus on it."
        )

    def _seen(self) -> str | None:
        """The first thing here that will do."""
        if self._kind == "find-plant":
            for name in things_in(self._view):
                if match := _PLANT.match(name):
                    return f"{match[2]} in {match[1]}"
            return None
        if self._kind == "find-non-living-thing":
            for name in things_in(self._view):
                bare = re.split(r" \(|\.|,", name)[0]
                if bare not in ("agent", self._box) and "substance" not in bare and "." not in name:
                    return bare
            laid = _LAID.search(self._view)
            return laid[1] if laid else None
        animals = animals_in(self._view)
        return animals[0] if animals else None

    def _bring(self, found: str) -> Decision | None:
        thing = found.partition(" in ")[2] or found
        why = f"I have focused on {found}. It goes to the {self._box} in the {self._end}."
        if self._kind != "find-non-living-thing" and not self._carried:
            return Decision(f"pick up {thing}", "pick it up", f"{why} I pick up {thing}.")
        if self._here != self._end:
            return self._go(self._end, why)
        return Decision(
            f"move {thing} to {self._box}", "put it into the box", f"{why} I am there. I move it."
        )
