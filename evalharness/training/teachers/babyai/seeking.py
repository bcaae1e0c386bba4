"""A rule-based BabyAI agent without privileged information, which a small model can imitate.

The agent goes to the goal's thing if it sees this thing. Otherwise it goes through a door in sight, or to the farthest
new thing, where it turns right. Otherwise it walks straight ahead and turns right near a wall or a thing. If it must
pick up a thing but carries another thing, it first puts the other thing down. It solves fewer tasks than a planner that
sees the whole level.

Two simpler agents taught bad habits to a model of 135 million parameters. One turned three times to look around: the
model cannot count, and turned forever. The other walked against things, which the simulator calls valid: so did the
model.
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
_ACTION_VERBS = {"go to": "go to", "pick up": "pickup", "open": "toggle and go through"}

_SIDES = 4
"""Number of turns in a full circle. After a full circle without a free cell, the agent stops looking for one."""

NEAR, NEAR_DOOR = 4, 3
"""The agent turns at this number of steps before a wall: 4 if it searches for a thing, 3 if it searches for a door,
because a door in the wall is only seen from there."""


class Target(NamedTuple):
    """The thing to search for, described in words that the agent has read, and what to do with this thing."""

    what: str
    """Description of the thing: `the red ball`, `a door on your left`."""
    verb: str
    """`go to`, `pick up` or `open`."""


class Thing(NamedTuple):
    """A thing in sight: its name (`red ball 1`), and the number of steps to reach it."""

    name: str
    steps: int


def find_target(subgoals: Sequence[str], reached: Collection[int], seen: str) -> Target:
    """Return the first subgoal that is not reached and that the agent can know. Subgoals with a key or a locked door
    are known after an observation has shown the locked door."""
    for index, text in enumerate(subgoals):
        if index in reached:
            continue
        if match := _KEY.fullmatch(text):
            if f"{match[1]} locked door" in seen:
                return Target(f"the {match[1]} key", "pick up")
        elif match := _UNLOCK.fullmatch(text):
            if f"{match[1]} locked door" in seen:
                return Target(f"the {match[1]} door", "open")
        elif match := _CLAUSE.fullmatch(text):
            return Target(match[2], _find_verb(subgoals[index:], match[2]))
    return Target("what the goal names", "go to")


def _find_verb(following: Sequence[str], what: str) -> str:
    for text in following:
        for verb in _ACTION_VERBS:
            if text == f"{verb} {what}":
                return verb
    return "go to"


def list_things(observation: str) -> list[Thing]:
    return [
        Thing(match["name"], int(match["straight"] or int(match["ahead"]) + int(match["aside"])))
        for match in _THING.finditer(observation)
    ]


def find_wall(observation: str) -> int | None:
    """Return the number of steps to the wall ahead; None if no wall is in sight, or if a box hides it."""
    match = _FACING.search(observation)
    return int(match[1]) if match else None


def find_thing_ahead(observation: str) -> str | None:
    """Return the thing in the cell before the agent: `red ball 1`."""
    names = (match["name"] for match in _THING.finditer(observation) if match["straight"] == "1")
    return next(names, None)


def find_obstacle(observation: str) -> str | None:
    """Return the thing that blocks the cell ahead (`red ball 1`); None if the cell is free or an open door."""
    name = find_thing_ahead(observation)
    return None if name is None or " open door " in f" {name} " else name


def find_burden(observation: str) -> str | None:
    """Return the carried thing: `purple key`."""
    match = _CARRIED.search(observation)
    return match[1] if match else None


def choose_limit(what: str) -> int:
    """Return the number of steps before a wall at which the agent turns, if it searches for `what`."""
    return NEAR_DOOR if "door" in strip_place(what) else NEAR


def strip_place(what: str) -> str:
    """Return `red ball` for `the red ball on your left`."""
    return " ".join(_PLACE.sub("", what).split()[1:])


def fits(name: str, what: str) -> bool:
    """Return whether the numbered thing `name` fits the goal's words `what`. Words about the place are ignored."""
    words = strip_place(what).split()
    if not words:
        return False
    color, *_, kind = _STATE.sub("", name.rpartition(" ")[0]).split()
    return words[-1] in (kind, "object") and (len(words) == 1 or words[0] == color)


def strip_number(name: str) -> str:
    """Return `grey box` for `grey box 2`; the numbers change when the agent moves."""
    return name.rpartition(" ")[0]


def turn_to_side(what: str, actions: Sequence[str]) -> tuple[str, str] | None:
    """Return the side of the next turn and its thought, if the goal names a side (`on your left`) and the agent has not
    yet turned to this side; otherwise None."""
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
    reads_valid = True

    def __init__(self, subgoals: Sequence[str]) -> None:
        self._subgoals = subgoals
        self._reached: set[int] = set()
        self._seen = ""
        self._done: list[str] = []
        self._aside: str | None = None
        """While the agent puts down the carried thing: the side to which it turns. None if it is not doing so."""
        self._turns_aside = 0
        self._useless: set[str] = set()

    def next(self, observation: str, valid: Sequence[str]) -> Decision | None:
        """Return the next action, one of the valid actions; None if no rule applies."""
        self._seen += f"{observation}\n"
        can = set(valid) - self._useless
        want = find_target(self._subgoals, self._reached, self._seen)
        things = list_things(observation)
        decision = (
            self._turn_to_goal_side(want)
            or self._put_down(want, observation, can)
            or self._act_on_target(want, things, can, observation)
            or self._take_door(things, can)
            or self._explore(want, observation, things, can)
        )
        return decision if decision.action in can else None

    def observe(self, action: str, before: str, after: str, completed: Sequence[int]) -> None:
        self._reached.update(completed)
        self._seen += f"{after}\n"
        self._done.append(action)
        if after != before:
            self._useless.discard("drop")
        if action.startswith("turn"):
            self._turns_aside += 1
        elif after == before and action != "move forward":
            self._useless.add(action)

    def _turn_to_goal_side(self, want: Target) -> Decision | None:
        """Turn to the side that the goal names, such as `on your left`."""
        turn = turn_to_side(want.what, self._done)
        return None if turn is None else Decision(f"turn {turn[0]}", "turn to the goal's side", turn[1])

    def _put_down(self, want: Target, observation: str, can: set[str]) -> Decision | None:
        """Turn until the carried thing can be put down, and then turn on until the thing to pick up is in view."""
        if self._aside is None:
            return None
        burden = find_burden(observation)
        in_view = any(fits(thing.name, want.what) for thing in list_things(observation))
        if want.verb != "pick up" or (burden is None and (in_view or self._turns_aside >= 2 * _SIDES)):
            self._aside = None
            return None
        if burden is None:
            return Decision(f"turn {self._aside}", "turn to what it puts down beside")
        if ("drop" in can and find_thing_ahead(observation) is None) or self._turns_aside >= _SIDES:
            return Decision("drop", "put down what is carried")
        thought = f"I carry the {burden}, and this is no place for it: I turn {self._aside}."
        return Decision(f"turn {self._aside}", "turn to put down", "" if in_view else thought)

    def _act_on_target(
        self, want: Target, things: Sequence[Thing], can: set[str], observation: str
    ) -> Decision | None:
        """Return the goal's action on the thing, if this action is valid here."""
        verb = _ACTION_VERBS[want.verb]
        for thing in things:
            if not fits(thing.name, want.what):
                continue
            if (action := f"{verb} {thing.name}") in can:
                return Decision(action, f"{want.verb} what the goal names")
            if want.verb == "pick up" and find_burden(observation) is not None:
                return self._free_hands(thing, can, observation)
        prefix = f"{verb} "
        action_name = min(
            (text for text in can if text.startswith(prefix) and fits(text.removeprefix(prefix), want.what)),
            default=None,
        )
        return None if action_name is None else Decision(action_name, f"{want.verb} what the goal names")

    def _free_hands(self, thing: Thing, can: set[str], observation: str) -> Decision:
        """Go to the thing to pick up, and begin to put down the carried thing beside it, where it blocks no way."""
        if thing.steps > 1 and f"go to {thing.name}" in can:
            return Decision(f"go to {thing.name}", "go there before putting down")
        if "drop" in can and find_thing_ahead(observation) is None:
            return Decision("drop", "put down what is carried")
        self._aside, self._turns_aside = "left" if _ON_THE_RIGHT.search(observation) else "right", 0
        return Decision(f"turn {self._aside}", "turn to put down")

    def _take_door(self, things: Sequence[Thing], can: set[str]) -> Decision | None:
        """Choose a door: closed doors first, because the room behind a closed door is new. Leave out doors that a later
        subgoal opens."""
        later = [
            text.removeprefix("open ") for text in self._list_open_subgoals() if text.startswith("open ")
        ]
        for thing in things:
            action = f"toggle and go through {thing.name}"
            if "door" in thing.name and action in can and not any(fits(thing.name, what) for what in later):
                return Decision(action, "through a shut door")
        for thing in things:
            action = f"go through {thing.name}"
            if thing.steps > 1 and action in can and action != self._last_action():
                return Decision(action, "through an open door")
        return None

    def _explore(self, want: Target, observation: str, things: Sequence[Thing], can: set[str]) -> Decision:
        if self._last_action().startswith("go to "):
            return Decision("turn right", "turn where it went to")
        # Do not go to a thing twice. Compare names without numbers, because a thing's number changes with each move.
        been = {strip_number(action) for action in self._done}
        new = [
            thing
            for thing in things
            if "door" not in thing.name
            and f"go to {thing.name}" in can
            and f"go to {strip_number(thing.name)}" not in been
        ]
        if new:  # the observation lists the nearest thing first, so the last one is the farthest
            return Decision(f"go to {new[-1].name}", "go to the farthest thing")
        wall = find_wall(observation)
        if wall is not None and wall <= choose_limit(want.what):
            return Decision("turn right", "turn before a wall")
        if find_obstacle(observation) is not None:
            return Decision("turn right", "turn where a thing is in the way")
        return Decision("move forward", "move forward")

    def _last_action(self) -> str:
        return self._done[-1] if self._done else ""

    def _list_open_subgoals(self) -> list[str]:
        return [text for index, text in enumerate(self._subgoals) if index not in self._reached]
