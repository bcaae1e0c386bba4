"""A rule-based agent for generated quests without privileged information, which a small model can imitate.

In a room, the agent first takes, searches, opens or pulls everything that the description lists. Then it opens the
exits that it can open, and takes the next exit after the one it came by, like somebody who keeps a hand on the wall of
a maze. The maps have no circles, so it reaches every room without remembering visited rooms.

Each thought repeats what the agent must remember: its things, what it has done, and the way back to the start. It
quotes the room's list, and says for each closed exit whether the agent can open it. So a model finds the reasons for a
decision in the thought.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from evalharness.envs.jericho.actions import cut_action
from evalharness.envs.jericho.open.quests import OPPOSITE
from evalharness.training.teachers.teaching import Decision

_WAY = r"(north|south|east|west)"
_EXITS = re.compile(rf"The way out is {_WAY}\.|Ways lead ((?:{_WAY}|, | and )+)\.")
_DOOR = re.compile(rf"The ([\w' -]+?) is to the {_WAY}\.")
_DARK = re.compile(rf"It is dark to the {_WAY}\.")
_BARRIER = re.compile(rf"The way {_WAY} is where the ([\w' -]+?) is\.")
_GUARDED = re.compile(rf"A way leads {_WAY}\.")
_GUARD = re.compile(r"The ([\w']+ [\w']+)[^.]*\. Something like the ([\w' -]+?) might help\.")
_THINGS = re.compile(r"You can (?:also )?see ([^.]+?) here\.")
_NOTICED = re.compile(r"You notice an? ([\w' -]+?)\.")
_LEVER = re.compile(r"There is an? ([\w' -]+?) here\.")
_REVEALED = re.compile(r"revealing ([^.]+?)\.")
_FOUND = re.compile(r"find (?:the|some|an?) ([\w' -]+?), and take it")
_ALTAR = re.compile(r"Here is the ([\w' -]+?), for the ([\w' -]+?)\.")
_TITLE = re.compile(r"(?:^|[.!?]) *((?:[A-Z][\w']*|of)(?: (?:[A-Z][\w']*|of))*) (?=[A-Z])")
"""Matches a room's name, which is followed by a description with a capital letter."""
_ARTICLE = re.compile(r"^(?:an?|some|the) ")
_LIGHT = re.compile(r"\b(?:lamp|lantern|torch|taper|candle|candlestick|light|flare|lucifer)\b")
_KEY = re.compile(r"\b(?:key|card)\b")
_REFUSED = re.compile(r"can't|isn't|don't|already|nothing suitable", re.IGNORECASE)


@dataclass(frozen=True)
class Gate:
    """An exit that is closed until the agent has a certain thing or has done a certain action."""

    kind: str
    """`door`, `dark`, `barrier` or `guard`."""
    name: str = ""
    gift: str = ""
    """The thing that a guard wants."""

    @property
    def what(self) -> str:
        """The text that is added to `Explorer._done` when the gate is open."""
        return self.name or self.kind


def split_list(text: str) -> list[str]:
    """Return the things of a list such as `a rusty key and an alms box (which is closed)`."""
    parts = [part.strip() for part in re.split(r", | and ", text)]
    return [_ARTICLE.sub("", part) for part in parts if part]


@dataclass
class Room:
    """The contents of a room's description."""

    title: str = ""
    ways: list[str] = field(default_factory=list)
    """The directions of all exits, open or closed, in the order of the description."""
    gates: dict[str, Gate] = field(default_factory=dict)
    """Direction -> the gate at this exit, which may already be open."""
    jobs: dict[str, str] = field(default_factory=dict)
    """Command for a listed thing (`take rusty key`) -> words for the thought (`see rusty key`), in the description's
    order."""


def read_room(text: str) -> Room | None:
    """Read a room's description; return None if the text describes no room."""
    room = Room()
    ways: list[tuple[int, str]] = []
    for match in _EXITS.finditer(text):
        ways += [(match.start() + n, way) for n, way in enumerate(re.findall(rf"\b{_WAY}\b", match[0]))]
    if ways and (titles := _TITLE.findall(text[: min(ways)[0]])):
        room.title = titles[-1]
    gates = [(m.start(), m[2], Gate("door", m[1])) for m in _DOOR.finditer(text)]
    gates += [(m.start(), m[1], Gate("dark")) for m in _DARK.finditer(text)]
    gates += [(m.start(), m[1], Gate("barrier", m[2])) for m in _BARRIER.finditer(text)]
    guard = _GUARD.search(text)
    for match in _GUARDED.finditer(text):
        ways.append((match.start(), match[1]))
        if guard is not None:
            room.gates[match[1]] = Gate("guard", guard[1], guard[2])
    ways += [(start, way) for start, way, _ in gates]
    room.gates |= {way: gate for _, way, gate in gates}
    room.ways = list(dict.fromkeys(way for _, way in sorted(ways)))
    if not room.ways:
        return None
    jobs: list[tuple[int, str, str]] = []
    for match in _THINGS.finditer(text):
        for thing in split_list(match[1]):
            bare = thing.partition(" (")[0]
            if "(which is closed" in thing:
                jobs.append((match.start(), f"open {bare}", f"see closed {bare}"))
            elif "(" not in thing:
                jobs.append((match.start(), f"take {bare}", f"see {bare}"))
    jobs += [(m.start(), f"search {m[1]}", f"notice {m[1]}") for m in _NOTICED.finditer(text)]
    jobs += [(m.start(), f"pull {m[1]}", f"there is {m[1]}") for m in _LEVER.finditer(text)]
    room.jobs = {job: words for _, job, words in sorted(jobs, key=lambda row: row[0])}
    return room


_RULES: Final = {
    "take": "take what is listed", "search": "search what is noticed", "open": "open what is closed",
    "pull": "pull what may be pulled", "turn": "make light", "give": "give what is wanted", "unlock": "unlock the door",
}  # fmt: skip
_LETTERS: Final = {way[0]: way for way in OPPOSITE}


class Explorer:
    reads_valid = False

    def __init__(self) -> None:
        self._room = Room()
        self._back: list[tuple[str, str]] = []
        """The way back to the start: (direction, room in this direction), the next step first."""
        self._came = ""
        """The direction of the previous room."""
        self._has: list[str] = []
        self._done: list[str] = []
        """Things searched, pulled, lit or opened, and gates passed."""
        self._queue: list[str] = []
        """Commands to run next that the room's description does not suggest, such as taking a revealed thing."""
        self._taken: set[str] = set()
        """All commands so far, except moves."""
        self._unlocked = ""
        self._altar = self._treasure = ""

    def next(self, observation: str, valid: Sequence[str]) -> Decision | None:
        """Return the next action; None if no rule applies."""
        if not self._room.ways:
            self._room = read_room(observation) or Room()
            if match := _ALTAR.search(observation):
                self._altar, self._treasure = match[1], match[2]
        if self._treasure and self._treasure in self._has:
            return self._go_home()
        if (job := self._choose_job()) is not None:
            return self._explain(job, _RULES.get(job.split()[0], "go through what is open now"))
        if (way := self._choose_way()) is None:
            return None
        rule = "go back" if way == self._came else "take the next way"
        return self._explain(way, rule)

    def observe(self, action: str, before: str, after: str, completed: Sequence[int]) -> None:
        action = cut_action(action).strip().lower()
        verb, _, rest = action.partition(" ")
        way = action.removeprefix("go ").removeprefix("walk ")
        way = _LETTERS.get(way, way)
        if way in OPPOSITE:
            self._enter_room(way, after)
            return
        self._taken.add(action)
        self._queue = [command for command in self._queue if command != action]
        refused = _REFUSED.search(after) is not None
        if verb in ("take", "search", "look", "get"):
            for thing in [rest] if verb in ("take", "get") and not refused else _FOUND.findall(after):
                self._note_thing(thing)
        spot = rest.removeprefix("under ").removeprefix("behind ").removeprefix("in ")
        if verb in ("search", "look") and f"search {spot}" in self._room.jobs:
            self._note_deed(spot)
        elif verb in ("pull", "push") and f"pull {rest}" in self._room.jobs:
            self._note_deed(f"{rest} pulled")
        elif verb == "turn" and "something you can switch" not in after:
            self._note_deed("light on")
        elif verb == "unlock" and not refused:
            self._unlocked = rest.partition(" with ")[0]
        elif verb == "give" and not refused:
            thing, _, guard = rest.partition(" to ")
            self._has = [held for held in self._has if held != thing]
            self._note_opened(guard)
        elif verb == "open" and (match := _REVEALED.search(after)):
            self._queue[:0] = [f"take {thing}" for thing in split_list(match[1])]
        elif verb == "open" and "You open" in after:
            self._note_opened(rest)

    def _note_opened(self, name: str) -> None:
        """Note that a gate is open, and go through this gate next."""
        for way, gate in self._room.gates.items():
            if gate.name == name:
                self._note_deed(gate.what)
                self._queue.insert(0, way)

    def _enter_room(self, way: str, after: str) -> None:
        room = read_room(after)
        self._queue = [command for command in self._queue if command != way]
        if room is None:  # something blocks the way
            return
        if (gate := self._room.gates.get(way)) is not None:
            self._note_deed(gate.what)
        self._back = self._extend_path(way)
        self._came = OPPOSITE[way]
        self._room, self._queue = room, []

    def _extend_path(self, way: str) -> list[tuple[str, str]]:
        """Return the way back to the start as it will be after a step in the direction `way`."""
        if self._back and self._back[0][0] == way:
            return self._back[1:]
        return [(OPPOSITE[way], self._room.title or "where I was"), *self._back]

    def _note_deed(self, what: str) -> None:
        if what not in self._done:
            self._done.append(what)

    def _note_thing(self, thing: str) -> None:
        if thing not in self._has:
            self._has.append(thing)
            if _LIGHT.search(thing) and "light on" not in self._done:
                self._queue.insert(0, f"turn on {thing}")

    def _choose_job(self) -> str | None:
        """Return the next command in this room; None if only exits are left."""
        if self._queue:
            return self._queue[0]
        openers = (self._choose_opener(way, gate) for way, gate in self._room.gates.items())
        left = [*(job for job in self._room.jobs if not self._was_tried(job)), *filter(None, openers)]
        return left[0] if left else None

    def _was_tried(self, job: str) -> bool:
        verb, _, thing = job.partition(" ")
        return job in self._taken or (thing if verb == "search" else f"{thing} pulled") in self._done

    @property
    def _key(self) -> str | None:
        return next((thing for thing in self._has if _KEY.search(thing)), None)

    def _choose_opener(self, way: str, gate: Gate) -> str | None:
        """Return the command that opens or passes the gate; None if it is already open or cannot be opened yet."""
        if gate.what in self._done:
            return None
        if gate.kind == "door":
            if self._key is None:
                return None
            return (
                f"open {gate.name}" if self._unlocked == gate.name else f"unlock {gate.name} with {self._key}"
            )
        if gate.kind == "guard":
            return f"give {gate.gift} to {gate.name}" if gate.gift in self._has else None
        if gate.kind == "dark":
            return way if "light on" in self._done else None
        return way if any(done.endswith(" pulled") for done in self._done) else None

    def _choose_way(self) -> str | None:
        """Return the next open exit in the description's order, after the exit the agent came by, starting over at the
        end."""
        room = self._room
        start = room.ways.index(self._came) + 1 if self._came in room.ways else 0
        for way in [*room.ways[start:], *room.ways[:start]]:
            gate = room.gates.get(way)
            if gate is None or gate.what in self._done or way == self._came:
                return way
        return None

    def _go_home(self) -> Decision:
        have = f"The goal asks for {self._treasure}, and I have it. Back: {_write_path(self._back)}."
        if self._back:
            return self._take_step(self._back[0][0], "bring it back", have)
        put = f"put {self._treasure} on {self._altar}"
        return Decision(put, "put it where it belongs", f"{have} Here is {self._altar}.")

    def _explain(self, action: str, rule: str) -> Decision:
        """Return the decision with a thought: the agent's things, what it has done, the exits, the room's list, the
        action."""
        room = self._room
        came = f", from {self._came}" if self._came else ""
        ways = ", ".join(self._describe_way(way) for way in room.ways) or "none"
        commands = [command for command in self._queue if command not in room.ways]
        listed = commands + [words + " (done)" * self._was_tried(job) for job, words in room.jobs.items()]
        thought = (
            f"{room.title or 'Here'}{came}. Have: {', '.join(self._has) or 'nothing'}. "
            f"Done: {', '.join(self._done) or 'nothing'}. Ways: {ways}. Here: {', '.join(listed) or 'nothing'}. "
            f"Back: {_write_path(self._back)}."
        )
        if rule in ("take the next way", "go back") and self._came:
            last = ", the last" if room.ways[-1:] == [self._came] else ""
            thought += f" After {self._came}{last}: {action if rule != 'go back' else 'no other'}."
        if action in OPPOSITE:
            return self._take_step(action, rule, thought)
        return Decision(action, rule, f"{thought} First: {action}.")

    def _take_step(self, way: str, rule: str, thought: str) -> Decision:
        return Decision(way, rule, f"{thought} I go {way}; then back: {_write_path(self._extend_path(way))}.")

    def _describe_way(self, way: str) -> str:
        """Describe an exit for the thought: its direction, its gate, and whether the agent can open this gate."""
        gate = self._room.gates.get(way)
        if gate is None or (gate.what in self._done and way not in self._queue):
            return way
        if gate.what in self._done:
            return f"{way}, open now"
        if gate.kind == "dark":
            return f"{way} dark, {'light on' if 'light on' in self._done else 'no light'}"
        if gate.kind == "guard":
            return f"{way} behind {gate.name}, {'' if gate.gift in self._has else 'no '}{gate.gift}"
        if gate.kind == "barrier":
            return f"{way} behind {gate.name}, {'' if self._choose_opener(way, gate) else 'nothing '}pulled"
        return f"{way} behind {gate.name}, {'unlocked' if self._unlocked == gate.name else self._key or 'no key'}"


def _write_path(back: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{way} to {room}" for way, room in back) or "none, I am where I began"
