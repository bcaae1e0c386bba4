"""A player of generated quests without privileged information: what a small model can be asked to imitate.

It does what a room lists (takes things, searches what is noticed, opens, pulls), opens what it can, then takes the way
that is named after the one it came by, as one walks a maze with a hand on the wall: in maps without circles, as these
are, that leads everywhere and asks for no memory of what was visited. Its thoughts carry what it must not forget: what
it has, what it has done, and the way back as a reversed path, before and after each step. They quote what a room lists
in its words and say of each closed way whether what opens it is had, so that a decision stands beside its reasons. They
name nothing that was not read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from evalharness.envs.jericho.actions import published_cut
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
        """What it is called among the things that are done."""
        return self.name or self.kind


def named(text: str) -> list[str]:
    """The things of a list such as `a rusty key and an alms box (which is closed)`."""
    parts = [part.strip() for part in re.split(r", | and ", text)]
    return [_ARTICLE.sub("", part) for part in parts if part]


@dataclass
class Room:
    """What a room's description says."""

    title: str = ""
    ways: list[str] = field(default_factory=list)
    """The exits, closed ones too, in the order of the text."""
    gates: dict[str, Gate] = field(default_factory=dict)
    """Direction -> what closes it, or closed it."""
    jobs: dict[str, str] = field(default_factory=dict)
    """Command for what is listed -> the room's words for it (`see rusty key`), in the order of the text."""


def read_room(text: str) -> Room | None:
    """None where the text describes no room."""
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
        for thing in named(match[1]):
            bare = thing.partition(" (")[0]
            if "(which is closed" in thing:
                jobs.append((match.start(), f"open {bare}", f"see closed {bare}"))
            elif "(" not in thing:
                jobs.append((match.start(), f"take {bare}", f"see {bare}"))
    jobs += [(m.start(), f"search {m[1]}", f"notice {m[1]}") for m in _NOTICED.finditer(text)]
    jobs += [(m.start(), f"pull {m[1]}", f"there is {m[1]}") for m in _LEVER.finditer(text)]
    room.jobs = {job: words for _, job, words in sorted(jobs, key=lambda found: found[0])}
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
        self._room = Room()
        self._back: list[tuple[str, str]] = []
        """The way to where the story begins: each step and the room it leads to."""
        self._came = ""
        """The way to the room it came from."""
        self._has: list[str] = []
        self._done: list[str] = []
        """What was searched, pulled, lit, opened, passed or persuaded."""
        self._found: list[str] = []
        """Commands for what it has found here, beside what the room lists."""
        self._taken: set[str] = set()
        """All that it has said but steps."""
        self._unlocked = ""
        self._altar = self._treasure = ""

    def next(self, observation: str, valid: Sequence[str]) -> Decision | None:
        """What it does next; None when it is at a loss."""
        if not self._room.ways:
            self._room = read_room(observation) or Room()
            if match := _ALTAR.search(observation):
                self._altar, self._treasure = match[1], match[2]
        if self._treasure and self._treasure in self._has:
            return self._home()
        if (job := self._job()) is not None:
            return self._said(job, _RULES.get(job.split()[0], "go through what is open now"))
        if (way := self._next_way()) is None:
            return None
        rule = "go back" if way == self._came else "take the next way"
        return self._said(way, rule)

    def saw(self, action: str, before: str, after: str, completed: Sequence[int]) -> None:
        action = published_cut(action).strip().lower()
        verb, _, rest = action.partition(" ")
        way = action.removeprefix("go ").removeprefix("walk ")
        way = _LETTERS.get(way, way)
        if way in OPPOSITE:
            self._moved(way, after)
            return
        self._taken.add(action)
        self._found = [command for command in self._found if command != action]
        refused = _REFUSED.search(after) is not None
        if verb in ("take", "search", "look", "get"):
            for thing in [rest] if verb in ("take", "get") and not refused else _FOUND.findall(after):
                self._get(thing)
        spot = rest.removeprefix("under ").removeprefix("behind ").removeprefix("in ")
        if verb in ("search", "look") and f"search {spot}" in self._room.jobs:
            self._finished(spot)
        elif verb in ("pull", "push") and f"pull {rest}" in self._room.jobs:
            self._finished(f"{rest} pulled")
        elif verb == "turn" and "something you can switch" not in after:
            self._finished("light on")
        elif verb == "unlock" and not refused:
            self._unlocked = rest.partition(" with ")[0]
        elif verb == "give" and not refused:
            thing, _, guard = rest.partition(" to ")
            self._has = [held for held in self._has if held != thing]
            self._opened(guard)
        elif verb == "open" and (match := _REVEALED.search(after)):
            self._found[:0] = [f"take {thing}" for thing in named(match[1])]
        elif verb == "open" and "You open" in after:
            self._opened(rest)

    def _opened(self, name: str) -> None:
        """A gate stands open: it is gone through next."""
        for way, gate in self._room.gates.items():
            if gate.name == name:
                self._finished(gate.what)
                self._found.insert(0, way)

    def _moved(self, way: str, after: str) -> None:
        room = read_room(after)
        self._found = [command for command in self._found if command != way]
        if room is None:  # something is in the way
            return
        if (gate := self._room.gates.get(way)) is not None:
            self._finished(gate.what)
        self._back = self._after(way)
        self._came = OPPOSITE[way]
        self._room, self._found = room, []

    def _after(self, way: str) -> list[tuple[str, str]]:
        """The way back as it is after a step."""
        if self._back and self._back[0][0] == way:
            return self._back[1:]
        return [(OPPOSITE[way], self._room.title or "where I was"), *self._back]

    def _finished(self, what: str) -> None:
        if what not in self._done:
            self._done.append(what)

    def _get(self, thing: str) -> None:
        if thing not in self._has:
            self._has.append(thing)
            if _LIGHT.search(thing) and "light on" not in self._done:
                self._found.insert(0, f"turn on {thing}")

    def _job(self) -> str | None:
        """The command for the first thing to do here; None where nothing is left but to go."""
        if self._found:
            return self._found[0]
        openers = (self._opener(way, gate) for way, gate in self._room.gates.items())
        left = [*(job for job in self._room.jobs if not self._tried(job)), *filter(None, openers)]
        return left[0] if left else None

    def _tried(self, job: str) -> bool:
        verb, _, thing = job.partition(" ")
        return job in self._taken or (thing if verb == "search" else f"{thing} pulled") in self._done

    @property
    def _key(self) -> str | None:
        return next((thing for thing in self._has if _KEY.search(thing)), None)

    def _opener(self, way: str, gate: Gate) -> str | None:
        """The command for a gate that was not passed and can be; None for others."""
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

    def _next_way(self) -> str | None:
        """The way named after the one it came by, of those that are open; after the last comes the first."""
        room = self._room
        start = room.ways.index(self._came) + 1 if self._came in room.ways else 0
        for way in [*room.ways[start:], *room.ways[:start]]:
            gate = room.gates.get(way)
            if gate is None or gate.what in self._done or way == self._came:
                return way
        return None

    def _home(self) -> Decision:
        have = f"The goal asks for {self._treasure}, and I have it. Back: {_path(self._back)}."
        if self._back:
            return self._step(self._back[0][0], "bring it back", have)
        put = f"put {self._treasure} on {self._altar}"
        return Decision(put, "put it where it belongs", f"{have} Here is {self._altar}.")

    def _said(self, action: str, rule: str) -> Decision:
        """A thought: what is carried along, the ways, what is here, then the decision."""
        room = self._room
        came = f", from {self._came}" if self._came else ""
        ways = ", ".join(self._shown(way) for way in room.ways) or "none"
        found = [command for command in self._found if command not in room.ways]
        listed = found + [words + " (done)" * self._tried(job) for job, words in room.jobs.items()]
        said = (
            f"{room.title or 'Here'}{came}. Have: {', '.join(self._has) or 'nothing'}. "
            f"Done: {', '.join(self._done) or 'nothing'}. Ways: {ways}. Here: {', '.join(listed) or 'nothing'}. "
            f"Back: {_path(self._back)}."
        )
        if rule in ("take the next way", "go back") and self._came:
            last = ", the last" if room.ways[-1:] == [self._came] else ""
            said += f" After {self._came}{last}: {action if rule != 'go back' else 'no other'}."
        if action in OPPOSITE:
            return self._step(action, rule, said)
        return Decision(action, rule, f"{said} First: {action}.")

    def _step(self, way: str, rule: str, said: str) -> Decision:
        return Decision(way, rule, f"{said} I go {way}; then back: {_path(self._after(way))}.")

    def _shown(self, way: str) -> str:
        """Describe an exit: what blocks it, and whether the agent has the thing that opens it."""
        gate = self._room.gates.get(way)
        if gate is None or (gate.what in self._done and way not in self._found):
            return way
        if gate.what in self._done:
            return f"{way}, open now"
        if gate.kind == "dark":
            return f"{way} dark, {'light on' if 'light on' in self._done else 'no light'}"
        if gate.kind == "guard":
            return f"{way} behind {gate.name}, {'' if gate.gift in self._has else 'no '}{gate.gift}"
        if gate.kind == "barrier":
            return f"{way} behind {gate.name}, {'' if self._opener(way, gate) else 'nothing '}pulled"
        return f"{way} behind {gate.name}, {'unlocked' if self._unlocked == gate.name else self._key or 'no key'}"


def _path(back: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{way} to {room}" for way, room in back) or "none, I am where I began"
