"""A player of generated quests without privileged information: what a small model can be asked to imitate.

It does what a room lists (takes things, searches what is noticed, opens, pulls), then tries the exits in the order in
which they are named, goes back the way it came when nothing is left, and goes to a closed way once it holds what opens
it. Its thoughts carry all that it must not forget from turn to turn: what it has, what is closed, what is left to do
here, and the way back as a reversed path. A thought begins with the room's name, where it came from and all that the
room lists, so that nothing is passed over and what was said of a room is found again by its name. A step back says what
is left of the way back. They name nothing that was not read.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from evalharness.envs.jericho.actions import published_cut
from evalharness.envs.jericho.quests import DIRECTIONS, OPPOSITE
from evalharness.envs.teaching import Decision

Spot = tuple[int, int]
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
"""A room's name, after which its description begins with another capital."""
_ARTICLE = re.compile(r"^(?:an?|some|the) ")
_LIGHT = re.compile(r"\b(?:lamp|lantern|torch|taper|candle|candlestick|light|flare|lucifer)\b")
_KEY = re.compile(r"\b(?:key|card)\b")
_REFUSED = re.compile(r"can't|isn't|don't|already|nothing suitable", re.IGNORECASE)


@dataclass(frozen=True)
class Gate:
    """A way that is closed until something is had or done."""

    kind: str
    """`door`, `dark`, `barrier` or `guard`."""
    name: str = ""
    gift: str = ""
    """What a guard wants."""

    @property
    def what(self) -> str:
        """Its name, and what it wants."""
        return f"{self.name} for {self.gift}" if self.gift else self.name


def named(text: str) -> list[str]:
    """The things of a list such as `a rusty key and an alms box (which is closed)`."""
    parts = [part.strip() for part in re.split(r", | and ", text)]
    return [_ARTICLE.sub("", part) for part in parts if part]


@dataclass
class Room:
    """What a room's description says."""

    title: str = ""
    exits: list[str] = field(default_factory=list)
    gates: dict[str, Gate] = field(default_factory=dict)
    """Direction -> what closes it."""
    jobs: list[str] = field(default_factory=list)
    """Commands for what is listed, in the order of the text."""

    @property
    def ways(self) -> list[str]:
        """The exits, then the closed ways."""
        return list(dict.fromkeys([*self.exits, *self.gates]))


def read_room(text: str) -> Room | None:
    """None where the text describes no room."""
    room = Room()
    for match in _EXITS.finditer(text):
        room.exits += [match[1]] if match[1] else re.findall(_WAY, match[2])
    if (first := _EXITS.search(text)) and (titles := _TITLE.findall(text[: first.start()])):
        room.title = titles[-1]
    guard = _GUARD.search(text)
    closed: list[tuple[int, str, Gate]] = [
        (m.start(), m[2], Gate("door", m[1])) for m in _DOOR.finditer(text)
    ]
    closed += [(m.start(), m[1], Gate("dark")) for m in _DARK.finditer(text)]
    closed += [(m.start(), m[1], Gate("barrier", m[2])) for m in _BARRIER.finditer(text)]
    for match in _GUARDED.finditer(text):
        if guard is not None:
            closed.append((match.start(), match[1], Gate("guard", guard[1], guard[2])))
        else:
            room.exits.append(match[1])
    for _, way, gate in sorted(closed, key=lambda found: found[0]):
        room.gates[way] = gate
    if not room.exits and not room.gates:
        return None
    jobs: list[tuple[int, str]] = []
    for match in _THINGS.finditer(text):
        for thing in named(match[1]):
            bare = thing.partition(" (")[0]
            if "(which is closed" in thing:
                jobs.append((match.start(), f"open {bare}"))
            elif "(" not in thing:
                jobs.append((match.start(), f"take {bare}"))
    jobs += [(match.start(), f"search {match[1]}") for match in _NOTICED.finditer(text)]
    jobs += [(match.start(), f"pull {match[1]}") for match in _LEVER.finditer(text)]
    room.jobs = [job for _, job in sorted(jobs, key=lambda found: found[0])]
    return room


_RULES: Final = {
    "take": "take what is listed", "search": "search what is noticed", "open": "open what is closed",
    "pull": "pull what may be pulled", "turn": "make light", "give": "give what is wanted", "unlock": "unlock the door",
}  # fmt: skip


_LETTERS: Final = {way[0]: way for way in OPPOSITE}


class Explorer:
    """One episode's player. Ask `next`, play it, and say with `saw` what came of it."""

    reads_valid = False

    def __init__(self) -> None:
        self._here: Spot = (0, 0)
        self._back: list[str] = []
        """The way to where the story begins."""
        self._rooms: dict[Spot, Room] = {}
        self._tried: set[tuple[Spot, str]] = set()
        self._done: set[tuple[Spot, str]] = set()
        self._jobs: list[str] = []
        self._has: list[str] = []
        self._lit = self._pulled = False
        self._opened: set[str] = set()
        """Doors that stand open, and guards that let one by."""
        self._altar = self._treasure = ""
        self._route: list[str] = []
        self._came = ""
        """The way to the room it came from."""
        self._again = False
        """Whether it has been in this room before."""

    def next(self, observation: str, valid: Sequence[str]) -> Decision | None:
        """What it does next; None when it is at a loss."""
        if not self._rooms:
            self._arrive(observation)
            if match := _ALTAR.search(observation):
                self._altar, self._treasure = match[1], match[2]
        if self._treasure and self._treasure in self._has:
            return self._home()
        if self._jobs:
            job = self._jobs[0]
            return self._said(job, _RULES.get(job.split()[0], "do what is left here"))
        if (way := self._open_way()) is not None:
            return self._said(way, _RULES.get(way.split()[0], "try the next exit"))
        if not self._route:
            self._route = self._way_to_something()
        if not self._route:
            return None
        gate = len(self._route) > 1 and self._route != self._back[: len(self._route)]
        return self._said(self._route[0], "go to what can be opened now" if gate else "go back")

    def saw(self, action: str, before: str, after: str, completed: Sequence[int]) -> None:
        action = published_cut(action).strip().lower()
        verb, _, rest = action.partition(" ")
        way = action.removeprefix("go ").removeprefix("walk ")
        way = _LETTERS.get(way, way)
        if action in self._jobs:
            self._jobs.remove(action)
        self._done.add((self._here, action))
        if way in OPPOSITE:
            self._moved(way, after)
            return
        if verb in ("take", "search", "look", "get") and not _REFUSED.search(after):
            found = [rest] if verb in ("take", "get") else _FOUND.findall(after)
            for thing in found:
                self._get(thing)
        elif verb == "open" and (match := _REVEALED.search(after)):
            self._jobs[:0] = [f"take {thing}" for thing in named(match[1])]
        elif verb in ("pull", "push"):
            self._pulled = True
        elif verb == "turn" and "something you can switch" not in after:
            self._lit = True
        elif verb == "give" and not _REFUSED.search(after):
            thing, _, guard = rest.partition(" to ")
            self._has = [held for held in self._has if held != thing]
            self._opened.add(guard)
        if verb == "open" and "You open" in after:
            self._opened.add(rest)

    def _moved(self, way: str, after: str) -> None:
        self._tried.add((self._here, way))
        if read_room(after) is None:  # something is in the way
            self._route = []
            return
        dx, dy = DIRECTIONS[way]
        self._here = (self._here[0] + dx, self._here[1] + dy)
        self._tried.add((self._here, OPPOSITE[way]))
        self._came = OPPOSITE[way]
        if self._back[:1] == [way]:
            self._back.pop(0)
        else:
            self._back.insert(0, OPPOSITE[way])
        self._route = self._route[1:] if self._route[:1] == [way] else []
        self._arrive(after)

    def _arrive(self, text: str) -> None:
        room = read_room(text) or Room()
        known = self._rooms.get(self._here)
        self._again = known is not None
        if known is not None:
            room.gates = {**known.gates, **room.gates}
        self._rooms[self._here] = room
        self._jobs = [job for job in room.jobs if (self._here, job) not in self._done]

    def _get(self, thing: str) -> None:
        if thing not in self._has:
            self._has.append(thing)
            if _LIGHT.search(thing) and not self._lit:
                self._jobs.insert(0, f"turn on {thing}")

    def _opener(self, gate: Gate) -> str | None:
        """The command that opens a gate now, `` where nothing is left to do; None where it stays closed."""
        if gate.name in self._opened:
            return ""
        if gate.kind == "door":
            key = next((thing for thing in self._has if _KEY.search(thing)), None)
            if key is None:
                return None
            unlock = f"unlock {gate.name} with {key}"
            done = any(said == unlock for _, said in self._done)
            return f"open {gate.name}" if done else unlock
        if gate.kind == "guard":
            return f"give {gate.gift} to {gate.name}" if gate.gift in self._has else None
        return "" if (self._lit if gate.kind == "dark" else self._pulled) else None

    def _open_way(self) -> str | None:
        """The next exit here that was not tried, or the command that opens it."""
        room = self._rooms[self._here]
        for way in room.exits:
            if (self._here, way) not in self._tried:
                return way
        for way, gate in room.gates.items():
            if (self._here, way) not in self._tried and (opener := self._opener(gate)) is not None:
                return opener or way
        return None

    def _way_to_something(self) -> list[str]:
        """The shortest known way to a room with an exit that was not tried and is not closed."""
        queue = deque([(self._here, list[str]())])
        seen = {self._here}
        while queue:
            spot, walk = queue.popleft()
            room = self._rooms[spot]
            ways = [*room.exits, *(way for way, gate in room.gates.items() if self._opener(gate) is not None)]
            if any((spot, way) not in self._tried for way in ways):
                return walk
            for way in ways:
                there = (spot[0] + DIRECTIONS[way][0], spot[1] + DIRECTIONS[way][1])
                if there in self._rooms and there not in seen:
                    seen.add(there)
                    queue.append((there, [*walk, way]))
        return []

    def _home(self) -> Decision:
        if not self._back:
            return self._said(f"put {self._treasure} on {self._altar}", "put it where it belongs")
        return self._said(self._back[0], "bring it back")

    def _said(self, action: str, rule: str) -> Decision:
        return Decision(action, rule, (self._thought(action, rule),))

    def _thought(self, action: str, rule: str) -> str:
        """What is said of each way, what can be done here, all that is carried, then the decision: the first of what is
        left here, then the first new way."""
        back = ", ".join(self._back) or "none, I am where I began"
        then = ""
        if self._back[:1] == [action]:
            rest = ", ".join(self._back[1:])
            then = f"; then the way back is {rest}" if rest else "; then I am where I began"
        if rule == "bring it back":
            return (
                f"The goal asks for {self._treasure}, and I have it. Way back: {back}. I go {action}{then}."
            )
        if rule == "put it where it belongs":
            return f"The goal asks for {self._treasure}, and I have it. Here is {self._altar}."
        room = self._rooms[self._here]
        again = "again" if self._again else "new"
        came = f", from {self._came}" if self._came else ""
        known = {way: self._known(way) for way in room.ways}
        ways = ", ".join(f"{way} {said}" for way, said in known.items()) or "none"
        moves = action in OPPOSITE
        jobs = self._jobs if moves or action in self._jobs else [action, *self._jobs]
        said = f"{room.title or 'Here'}, {again}{came}: {ways}. Here: {', '.join(jobs) or 'nothing'}. "
        said += f"I have {', '.join(self._has) or 'nothing'}. {self._gates()}Way back: {back}."
        if not moves:
            return f"{said} First: {action}."
        new = ", ".join(way for way, what in known.items() if what == "new") or "none"
        route = f" Way: {', '.join(self._route)}." if rule == "go to what can be opened now" else ""
        return f"{said} New: {new}.{route} I go {action}{then}."

    def _known(self, way: str) -> str:
        """What there is to say of a way: it is the way back, has been gone, is new, or what closes it."""
        if self._back[:1] == [way]:
            return "back"
        if (self._here, way) in self._tried:
            return "been"
        gate = self._rooms[self._here].gates.get(way)
        if gate is None or self._opener(gate) == "":
            return "new"
        return f"behind {gate.what}" if gate.name else "dark"

    def _gates(self) -> str:
        """What closes ways that were not gone, and where; then elsewhere what would not close them now."""
        closed, passed = [], []
        for spot, room in self._rooms.items():
            for way, gate in room.gates.items():
                if (spot, way) in self._tried:
                    continue
                what = f"{gate.what or f'dark {way}'} ({room.title or 'here'})"
                if self._opener(gate) is None:
                    closed.append(what)
                elif spot != self._here:
                    passed.append(what)
        found = {"Closed": closed, "To try": passed}
        return "".join(
            f"{name}: {', '.join(dict.fromkeys(listed))}. " for name, listed in found.items() if listed
        )
