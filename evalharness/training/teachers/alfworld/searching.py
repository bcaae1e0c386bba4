"""A rule-based ALFWorld agent without privileged information, which a small model can imitate.

The agent searches places in the order of the first observation, likely places first, and takes the goal's thing on
sight. The oracle's plans make worse training data: they go straight to things that the agent has not seen. A model
trained on these plans went to random places, and did not learn to search place after place.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from evalharness.envs.alfworld.actions import repair
from evalharness.envs.alfworld.open.oracle import TREATED_AT, kind_in
from evalharness.envs.alfworld.open.rooms import OPENABLE, ROOMS
from evalharness.training.teachers.teaching import Decision

_NAMED = re.compile(r"\ban? ([a-z]+ \d+)")


def find_places(first_observation: str) -> list[str]:
    """Return the places of a home, in the order of the first observation."""
    return _NAMED.findall(first_observation)


def list_likely_places(kind: str) -> frozenset[str]:
    """Return the kinds of place that can hold a kind of thing at the start of a game; empty for an unknown kind."""
    places: set[str] = set()
    for room in ROOMS.values():
        places.update(room.places.get(kind, ()), room.fixtures.get(kind, ()))
    return frozenset(places)


def choose_next_place(
    places: Sequence[str], last: str | None, likely: Collection[str], seen: Collection[str]
) -> str | None:
    """Return the next unseen place after `last` in `places`, starting over at the end. Choose among the places whose
    kind is `likely`; if all of these were seen, choose among all places.

    If `last` is None, return the first likely place that need not be opened, so that the search begins there.
    """
    left = [place for place in places if place not in seen]
    fitting = [place for place in left if kind_in(place) in likely] or left
    if last is None or last not in places:
        return next((p for p in fitting if kind_in(p) not in OPENABLE), fitting[0] if fitting else None)
    at = places.index(last)
    return next((place for place in [*places[at + 1 :], *places[:at]] if place in fitting), None)


class Searcher:
    reads_valid = True

    def __init__(self, kind: str, thing: str, target: str) -> None:
        """`kind` is the task's kind (`put`, `clean`, `heat`, `cool`, `examine`, `puttwo`). `thing` and `target` are
        kinds of thing and place that the goal names."""
        self._kind, self._thing, self._target = kind, thing, target
        self._places: list[str] = []
        self._contents: dict[str, list[str]] = {}
        """Place -> the things seen there."""
        self._here: str | None = None
        self._closed: str | None = None
        """The agent's place, if this place is closed; otherwise None."""
        self._looked_at: str | None = None
        """The place that was searched last. The search continues after this place, even if the agent has moved."""
        self._held: str | None = None
        self._treated: set[str] = set()
        self._placed: set[str] = set()

    def next(self, observation: str, valid: Sequence[str]) -> Decision | None:
        """Return the next action, one of the valid actions; None if no rule applies."""
        if not self._places:
            self._places = find_places(observation)
        decision = self._fetch() if self._held is None else self._bring(self._held)
        return decision if decision is not None and decision.action in valid else None

    def observe(self, action: str, before: str, after: str, completed: Sequence[int]) -> None:
        action = repair(action)
        verb, _, rest = action.partition(" ")
        if action.startswith("go to "):
            self._here = rest.removeprefix("to ")
        if verb in ("go", "open") and self._here is not None:
            self._closed = self._here if f"{self._here} is closed" in after else None
            if self._closed is None:
                self._contents[self._here] = [n for n in _NAMED.findall(after) if n != self._here]
        elif verb == "take":
            self._held = rest.partition(" from ")[0]
            for things in self._contents.values():
                if self._held in things:
                    things.remove(self._held)
        elif verb in TREATED_AT and self._held is not None:
            self._treated.add(self._held)
        elif verb == "put" and self._held is not None:
            self._placed.add(self._held)
            self._held = None

    def _fetch(self) -> Decision | None:
        if (known := self._find_known(self._thing)) is None:
            return self._look_for(self._thing)
        thing, place = known
        if place == self._here:
            return Decision(f"take {thing} from {place}", "take what is here")
        return Decision(f"go to {place}", "go back to what was seen")

    def _bring(self, held: str) -> Decision | None:
        if self._kind == "examine":
            if (known := self._find_known(self._target)) is None:
                return self._look_for(self._target)
            lamp, place = known
            if place == self._here:
                return Decision(f"use {lamp}", "use the lamp")
            return Decision(f"go to {place}", "go back to what was seen")
        if self._kind in TREATED_AT and held not in self._treated:
            place = self._find_first(TREATED_AT[self._kind])
            if place == self._here:
                return Decision(f"{self._kind} {held} with {place}", "treat what is held")
            return Decision(f"go to {place}", "bring it to be treated")
        place = self._find_first((self._target,))
        if place != self._here:
            return Decision(f"go to {place}", "bring it to its target")
        if self._closed == place:
            return Decision(f"open {place}", "open the target")
        return Decision(f"put {held} in/on {place}", "put it down")

    def _find_first(self, kinds: Sequence[str]) -> str:
        return next((place for place in self._places if kind_in(place) in kinds), "")

    def _find_known(self, kind: str) -> tuple[str, str] | None:
        """Return a thing of this kind that was seen, and its place. Prefer a thing at the agent's place."""
        candidates = [
            (place != self._here, self._places.index(place), thing, place)
            for place, things in self._contents.items()
            for thing in things
            if kind_in(thing) == kind and thing not in self._placed
        ]
        return min(candidates)[2:] if candidates else None

    def _look_for(self, kind: str) -> Decision | None:
        last = self._looked_at
        if self._closed is not None and self._closed == last:
            return Decision(f"open {self._closed}", "search: open it")
        place = choose_next_place(self._places, last, list_likely_places(kind), self._contents)
        self._looked_at = place
        if place is None:
            return None
        return Decision(f"go to {place}", f"search: {self._describe_search(last, place)}")

    def _describe_search(self, last: str | None, place: str) -> str:
        if last is None or last not in self._places:
            return "begin"
        after = self._places.index(place) - self._places.index(last)
        if after < 0:
            return "past the end of the list"
        resumed = "again, " if self._here != last else ""
        return f"{resumed}the next in the list" if after == 1 else f"{resumed}further on in the list"
