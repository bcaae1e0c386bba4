"""A rule-based agent for ScienceWorld's find and lifespan tasks, which a small model can imitate.

The agent has no privileged information about a task. It only knows facts that hold in every task: which rooms are
connected, that animals are outside and plants in the greenhouse, and how long animals live.
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
"""Room of the house -> rooms behind its doors; the same in every task."""
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
"""The animals of these tasks, the longest life first."""
_LIFELESS: Final = frozenset(["agent", "air", "axe", "ground", "shovel", "wood", "water", "fountain"]) | {
    "fire pit"
}
_BOX = re.compile(r"move it to the (\w+ box) in the ([\w ]+?)\.")
_PLANT = re.compile(r"^(flower pot \d+) \(containing a ([\w ]+?) in the (?:adult|reproducing) stage")
_LAID = re.compile(r"On the [\w ]+ is: an? ([\w ]+)")
_ARTICLE = re.compile(r"^(?:an?|the|some) ")


def find_next_door(here: str, room: str) -> str | None:
    """Return the first room on the shortest way from `here` to `room`; None if no way is known."""
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


def list_things(observation: str) -> list[str]:
    """Return the things that the observation after `look around` lists, without articles, in the same order."""
    listed = observation.partition("You also see")[0].split("\n\t")[1:]
    return [_ARTICLE.sub("", line.strip()) for line in listed]


def list_animals(observation: str) -> list[str]:
    names = [name for name in list_things(observation) if "substance" not in name]
    bare = [re.split(r" \(|\.|,", name)[0] for name in names]
    return [name for name in bare if name not in _LIFELESS]


def rank_lifespan(animal: str) -> int:
    """Return the animal's index in `LIFE_SPANS`; an unknown animal comes last."""
    return next((place for place, name in enumerate(LIFE_SPANS) if name in animal), len(LIFE_SPANS))


class Finder:
    reads_valid = False

    def __init__(self, kind: str, goal: str) -> None:
        """`kind` is the task's kind, one of `FIND` or `LIFESPAN`."""
        self._kind = kind
        box = _BOX.search(goal)
        self._box, self._end = (box[1], box[2]) if box else ("", "")
        self._here = ""
        self._view = ""
        """The observation of `look around` in this room; empty if the agent has not looked around here."""
        self._focused: list[str] = []
        self._carried = ""

    def next(self, observation: str, valid: Sequence[str]) -> Decision | None:
        """Return the next action; None if no rule applies."""
        if not self._here:
            self._enter_room(observation)
        return self._compare() if self._kind in LIFESPAN else self._find()

    def observe(self, action: str, before: str, after: str, completed: Sequence[int]) -> None:
        if not self._here:
            self._enter_room(before)
        verb, _, rest = action.partition(" ")
        if verb in ("go", "look"):
            self._enter_room(after)
        elif verb == "focus" and "You focus" in after:
            self._focused.append(rest.removeprefix("on "))
        elif verb == "pick" and "inventory" in after:
            self._carried = rest.removeprefix("up ")

    def _enter_room(self, text: str) -> None:
        room = place("", text)
        if room is not None and room != self._here:
            self._here, self._view = room, ""
        if "see:" in text:
            self._view = text

    def _go(self, room: str, why: str) -> Decision | None:
        """Go to the next room on the way to `room`. The thought names the agent's room beside `room`, because a small
        model confuses a room on the way with its destination."""
        door = find_next_door(self._here, room)
        if door is None:
            return None
        thought = f"{why} I am in the {self._here}, not in the {room}. I go to the {door}."
        return Decision(f"go to {door}", "go: next door", thought)

    def _look(self, why: str) -> Decision:
        return Decision("look around", "look around", f"{why} I am in the {self._here}. I look around.")

    def _compare(self) -> Decision | None:
        shortest = "shortest" in self._kind
        both = "then" in self._kind
        extreme = "shortest" if shortest and (not both or self._focused) else "longest"
        why = f"I need the animal with the {extreme} life."
        if self._here != "outside":
            return self._go("outside", f"{why} It is outside.")
        if not self._view:
            return self._look(why)
        animals = sorted(list_animals(self._view), key=rank_lifespan)
        if not animals:
            return None
        animal = animals[-1] if extreme == "shortest" else animals[0]
        end = "last" if extreme == "shortest" else "first"
        thought = f"From long to short lives: {', '.join(animals)}. The {extreme} is the {end}: {animal}."
        return Decision(f"focus on {animal}", f"focus: the {extreme} life", thought)

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
        thing = self._choose_thing()
        if thing is None:
            return None
        return Decision(
            f"focus on {thing}", f"focus: {what}", f"I need {what}. Here is {thing}. I focus on it."
        )

    def _choose_thing(self) -> str | None:
        """Return the first thing in this room that fits the task's kind."""
        if self._kind == "find-plant":
            for name in list_things(self._view):
                if match := _PLANT.match(name):
                    return f"{match[2]} in {match[1]}"
            return None
        if self._kind == "find-non-living-thing":
            for name in list_things(self._view):
                bare = re.split(r" \(|\.|,", name)[0]
                if bare not in ("agent", self._box) and "substance" not in bare and "." not in name:
                    return bare
            laid = _LAID.search(self._view)
            return laid[1] if laid else None
        animals = list_animals(self._view)
        return animals[0] if animals else None

    def _bring(self, focused: str) -> Decision | None:
        thing = focused.partition(" in ")[2] or focused
        why = f"I have focused on {focused}. It goes to the {self._box} in the {self._end}."
        if self._kind != "find-non-living-thing" and not self._carried:
            return Decision(f"pick up {thing}", "pick it up", f"{why} I pick up {thing}.")
        if self._here != self._end:
            return self._go(self._end, why)
        return Decision(
            f"move {thing} to {self._box}", "put it into the box", f"{why} I am there. I move it."
        )
