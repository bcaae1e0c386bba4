"""A BabyAI player without privileged information: what a small model can be asked to imitate.

It goes to what the goal names as soon as that can be reached, else through a door in sight, else to the farthest thing
it was not at, where it turns right, else straight ahead until a wall is near or a thing is in the way, where it turns
right. What it carries while it is to pick up something else, it puts down beside that. It solves fewer tasks than a
planner who sees the whole level; its decisions follow from the goal, the last view, where it has been, and what had no
effect. (A player that turned three times to look around and then went on taught a model of 135 million
parameters to turn for ever: it cannot count, and repeats what it said. One that walked against things, which the
simulator lists as valid, taught that.)
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

from evalharness.training.teachers.teaching import Decision

_THING = re.compile(
    r"There is an? (?P<name>(?:\w+ )+?\d+) (?:right in front of you (?P<straight>\d+) steps away"
    r"|(?P<ahead>\d+) steps in front of you and (?P<aside>\d+) steps to your (?:left|right))"
)
_ON_THE_RIGHT = re.compile(r"\d+ 0 steps in front of you and 1 steps to your right")
_FACING = re.compile(r"You are facing a wall (\d+) steps away")
_STATE = re.compile(r"\b(?:closed|open|locked) ")
_CARRIED = re.compile(r"You are carrying an? ([\w ]+?)\.")
_CLAUSE = re.compile(r"(see|face|go to|pick up|open) (.+)")
_KEY = re.compile(r"hold the key of the (\w+) locked door")
_UNLOCK = re.compile(r"unlock the (\w+) locked door")
_PLACE = re.compile(r" (on your left|on your right|in front of you|behind you)$")
_TURNS_TO = {"in front of you": 0, "on your right": 1, "behind you": 2, "on your left": 3}
_SAID = {"go to": "go to", "pick up": "pickup", "open": "toggle and go through"}

_SIDES = 4
"""After so many turns in vain there is no free cell around it."""

NEAR, NEAR_DOOR = 4, 3
"""Steps to a wall at which one turns: what lies before it is in sight; doors are in it."""


class Wanted(NamedTuple):
    """What is sought next, in words that have been read, and what is to be done with it."""

    what: str
    """`the red ball`, `a door on your left`."""
    verb: str
    """`go to`, `pick up` or `open`."""


class Thing(NamedTuple):
    """Something in sight: its name with its number, and the steps to it."""

    name: str
    steps: int


def sought_next(subgoals: Sequence[str], reached: Collection[int], seen: str) -> Wanted:
    """The first open subgoal that a player can know of: of a key only when its locked door has been read of."""
    for index, text in enumerate(subgoals):
        if index in reached:
            continue
        if match := _KEY.fullmatch(text):
            if f"{match[1]} locked door" in seen:
                return Wanted(f"the {match[1]} key", "pick up")
        elif match := _UNLOCK.fullmatch(text):
            if f"{match[1]} locked door" in seen:
                return Wanted(f"the {match[1]} door", "open")
        elif match := _CLAUSE.fullmatch(text):
            return Wanted(match[2], _deed(subgoals[index:], match[2]))
    return Wanted("what the goal names", "go to")


def _deed(following: Sequence[str], what: str) -> str:
    for text in following:
        for verb in _SAID:
            if text == f"{verb} {what}":
                return verb
    return "go to"


def in_sight(observation: str) -> list[Thing]:
    return [
        Thing(match["name"], int(match["straight"] or int(match["ahead"]) + int(match["aside"])))
        for match in _THING.finditer(observation)
    ]


def wall_ahead(observation: str) -> int | None:
    """Steps to the wall that is faced; None where none is in sight, or a box stands before it."""
    match = _FACING.search(observation)
    return int(match[1]) if match else None


def right_before(observation: str) -> str | None:
    """The thing in the cell before the agent: `red ball 1`."""
    names = (match["name"] for match in _THING.finditer(observation) if match["straight"] == "1")
    return next(names, None)


def in_the_way(observation: str) -> str | None:
    """The thing right before the agent, which it cannot walk through: `red ball 1`. None where the way is free."""
    name = right_before(observation)
    return None if name is None or " open door " in f" {name} " else name


def carried(observation: str) -> str | None:
    """`purple key`"""
    match = _CARRIED.search(observation)
    return match[1] if match else None


def limit_of(what: str) -> int:
    """Steps to a wall at which one turns who looks for `what`."""
    return NEAR_DOOR if "door" in bare(what) else NEAR


def bare(what: str) -> str:
    """`the red ball on your left` -> `red ball`"""
    return " ".join(_PLACE.sub("", what).split()[1:])


def fits(name: str, what: str) -> bool:
    """Whether a numbered thing is one that the goal's words mean, its place left aside."""
    words = bare(what).split()
    if not words:
        return False
    color, *_, kind = _STATE.sub("", name.rpartition(" ")[0]).split()
    return words[-1] in (kind, "object") and (len(words) == 1 or words[0] == color)


def unnumbered(name: str) -> str:
    """`grey box 2` -> `grey box`; the numbers change as one moves."""
    return name.rpartition(" ")[0]


def to_its_side(what: str, actions: Sequence[str]) -> tuple[str, str] | None:
    """(the side to which one turns next, the thought) while the goal's thing is at a side to which the actions so far,
    turns alone, have not led; None otherwise."""
    match = _PLACE.search(what)
    if match is None or not {"turn left", "turn right"}.issuperset(actions):
        return None
    quarters = (_TURNS_TO[match[1]] - sum(1 if action == "turn right" else -1 for action in actions)) % 4
    if quarters == 0:
        return None
    side = "left" if quarters == 3 else "right"
    turns = len(actions) + min(quarters, 4 - quarters)
    return side, f"I look for {what}. Turned {len(actions)} of {turns}: I turn {side}."


class Seeker:
    """One episode's player. Ask `next`, play it, and say with `saw` what came of it."""

    reads_valid = True

    def __init__(self, subgoals: Sequence[str]) -> None:
        self._subgoals = subgoals
        self._reached: set[int] = set()
        self._seen = ""
        self._done: list[str] = []
        self._aside: str | None = None
        """The side to which it turns until what it carries is put down and what it is to pick up is in sight again."""
        self._turns_aside = 0
        self._useless: set[str] = set()

    def next(self, observation: str, valid: Sequence[str]) -> Decision | None:
        """What it says next, out of the valid actions; None when it is at a loss."""
        self._seen += f"{observation}\n"
        can = set(valid) - self._useless
        want = sought_next(self._subgoals, self._reached, self._seen)
        things = in_sight(observation)
        found = (
            self._towards_its_side(want)
            or self._putting_down(want, observation, can)
            or self._at(want, things, can, observation)
            or self._through_a_door(things, can)
            or self._onward(want, observation, things, can)
        )
        return found if found.action in can else None

    def saw(self, action: str, before: str, after: str, completed: Sequence[int]) -> None:
        self._reached.update(completed)
        self._seen += f"{after}\n"
        self._done.append(action)
        if after != before:
            self._useless.discard("drop")
        if action.startswith("turn"):
            self._turns_aside += 1
        elif after == before and action != "move forward":
            self._useless.add(action)

    def _towards_its_side(self, want: Wanted) -> Decision | None:
        """Turn to the side on which the goal says that the thing is."""
        found = to_its_side(want.what, self._done)
        return None if found is None else Decision(f"turn {found[0]}", "turn to the goal's side", found[1])

    def _putting_down(self, want: Wanted, observation: str, can: set[str]) -> Decision | None:
        """Turn on to where what is carried can be put down, and then to what it is to pick up."""
        if self._aside is None:
            return None
        burden = carried(observation)
        in_view = any(fits(thing.name, want.what) for thing in in_sight(observation))
        if want.verb != "pick up" or (burden is None and (in_view or self._turns_aside >= 2 * _SIDES)):
            self._aside = None
            return None
        if burden is None:
            return Decision(f"turn {self._aside}", "turn to what it puts down beside")
        if ("drop" in can and right_before(observation) is None) or self._turns_aside >= _SIDES:
            return Decision("drop", "put down what is carried")
        thought = f"I carry the {burden}, and this is no place for it: I turn {self._aside}."
        return Decision(f"turn {self._aside}", "turn to put down", "" if in_view else thought)

    def _at(self, want: Wanted, things: Sequence[Thing], can: set[str], observation: str) -> Decision | None:
        """What the goal asks, where the thing can be reached from here."""
        said = _SAID[want.verb]
        for thing in things:
            if not fits(thing.name, want.what):
                continue
            if (action := f"{said} {thing.name}") in can:
                return Decision(action, f"{want.verb} what the goal names")
            if want.verb == "pick up" and carried(observation) is not None:
                return self._with_full_hands(thing, can, observation)
        prefix = f"{said} "
        found = min(
            (text for text in can if text.startswith(prefix) and fits(text.removeprefix(prefix), want.what)),
            default=None,
        )
        return None if found is None else Decision(found, f"{want.verb} what the goal names")

    def _with_full_hands(self, thing: Thing, can: set[str], observation: str) -> Decision:
        """What is carried goes down beside the thing, where it bars no way back to it."""
        if thing.steps > 1 and f"go to {thing.name}" in can:
            return Decision(f"go to {thing.name}", "go there before putting down")
        if "drop" in can and right_before(observation) is None:
            return Decision("drop", "put down what is carried")
        self._aside, self._turns_aside = "left" if _ON_THE_RIGHT.search(observation) else "right", 0
        return Decision(f"turn {self._aside}", "turn to put down")

    def _through_a_door(self, things: Sequence[Thing], can: set[str]) -> Decision | None:
        """Shut doors first, as what is behind them is new; none that the goal opens later."""
        later = [text.removeprefix("open ") for text in self._left() if text.startswith("open ")]
        for thing in things:
            action = f"toggle and go through {thing.name}"
            if "door" in thing.name and action in can and not any(fits(thing.name, what) for what in later):
                return Decision(action, "through a shut door")
        for thing in things:
            action = f"go through {thing.name}"
            if thing.steps > 1 and action in can and action != self._last():
                return Decision(action, "through an open door")
        return None

    def _onward(self, want: Wanted, observation: str, things: Sequence[Thing], can: set[str]) -> Decision:
        if self._last().startswith("go to "):
            return Decision("turn right", "turn where it went to")
        # It goes to none again to look around; the numbers change as it moves.
        been = {unnumbered(action) for action in self._done}
        new = [
            thing
            for thing in things
            if "door" not in thing.name
            and f"go to {thing.name}" in can
            and f"go to {unnumbered(thing.name)}" not in been
        ]
        if new:  # the nearest is listed first
            return Decision(f"go to {new[-1].name}", "go to the farthest thing")
        wall = wall_ahead(observation)
        if wall is not None and wall <= limit_of(want.what):
            return Decision("turn right", "turn before a wall")
        if in_the_way(observation) is not None:
            return Decision("turn right", "turn where a thing is in the way")
        return Decision("move forward", "move forward")

    def _last(self) -> str:
        return self._done[-1] if self._done else ""

    def _left(self) -> list[str]:
        return [text for index, text in enumerate(self._subgoals) if index not in self._reached]
