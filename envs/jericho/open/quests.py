"""Generate quests: stories in which the player must find a treasure behind obstacles, and bring it to the first room.

`quests_of(seed)` draws the map, the obstacles and the places of things, and computes a plan. Names and texts come from
a theme in `themes.yaml`. The same seed gives the same quests on every machine.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from random import Random
from typing import Any, Final, Literal

import yaml

from evalharness.envs.base import SuiteExhaustedError
from evalharness.envs.frozen import FROZEN_SEED
from evalharness.envs.jericho.open.compiler import STORIES

Theme = Mapping[str, Any]
Gate = Literal["door", "dark", "lever", "guard"]
Place = Literal["floor", "box", "hidden"]

DIRECTIONS: Final = {"north": (0, 1), "east": (1, 0), "south": (0, -1), "west": (-1, 0)}
OPPOSITE: Final = {"north": "south", "south": "north", "east": "west", "west": "east"}
NEEDS: Final[Mapping[Gate, str]] = {"door": "key", "dark": "light", "lever": "lever", "guard": "gift"}
MAX_PLAN: Final = 28
FROZEN_THEMES: Final = 5
"""Number of themes for suite seed 0. Each theme gives two quests, and this suite also has ten hand-written stories."""
MOST_DRAFTS: Final = 1_000
"""Maximum number of random maps that are tried for one quest. About every second map is accepted."""


@dataclass
class Room:
    name: str
    text: str
    spot: tuple[int, int]
    region: int
    exits: dict[str, int] = field(default_factory=dict)
    """Direction -> number of the next room."""


@dataclass(frozen=True)
class Passage:
    """The passage from a room into the next region of the map. A gate closes it until the player opens the gate."""

    gate: Gate
    room: int
    direction: str
    beyond: int


@dataclass(frozen=True)
class Item:
    what: str
    """Kind of item: key, light, gift, lever or treasure. The theme's words for the item have this key."""
    room: int
    place: Place
    hiding: int = 0
    """Index in the theme's hiding places, if the item is hidden."""


@dataclass(frozen=True)
class Quest:
    theme: str
    words: Theme
    """Names and texts of the theme, after a choice among alternatives."""
    rooms: tuple[Room, ...]
    passages: tuple[Passage, ...]
    items: Mapping[str, Item]
    goal: str
    subgoals: tuple[str, ...]
    plan: tuple[str, ...]

    @property
    def shape(self) -> tuple[Any, ...]:
        """Return the map, the gates and the places of things, without names; quests may not differ only in names."""
        return (
            tuple((room.region, tuple(sorted(room.exits.items()))) for room in self.rooms),
            self.passages,
            tuple(sorted((item.what, item.room, item.place) for item in self.items.values())),
        )


@cache
def themes() -> Mapping[str, Theme]:
    loaded: dict[str, Theme] = yaml.safe_load((STORIES / "themes.yaml").read_text(encoding="utf-8"))
    return loaded


@lru_cache(maxsize=8)
def quests_of(seed: int) -> tuple[Quest, ...]:
    """Return the quests of a suite seed: for each theme, one quest with two gates and one with three gates.

    All quests have different goals and shapes, and a seed other than 0 has no goal or shape of seed 0. One exception:
    the two quests of a theme in suite seed 0 have the same goal. Raise SuiteExhaustedError if no new quest is found.
    """
    names = list(themes())
    before: tuple[Quest, ...] = ()
    if seed == FROZEN_SEED:
        names = names[:FROZEN_THEMES]
    else:
        before = quests_of(FROZEN_SEED)
    shapes = {quest.shape for quest in before}
    goals = {quest.goal for quest in before}
    quests: list[Quest] = []
    for index in range(2 * len(names)):
        theme = names[index % len(names)]
        random = Random(f"quest/{seed}/{index}")
        for _ in range(MOST_DRAFTS):
            words = words_of(theme, None if seed == FROZEN_SEED else random)
            quest = _draw(random, theme, words, gates=2 + index // len(names))
            if quest is None or len(quest.plan) > MAX_PLAN or quest.shape in shapes:
                continue
            if seed != FROZEN_SEED and quest.goal in goals:
                continue
            break
        else:
            raise SuiteExhaustedError("Jericho", seed, f"no quest {index} was found in {MOST_DRAFTS} drafts")
        shapes.add(quest.shape)
        goals.add(quest.goal)
        quests.append(quest)
    return tuple(quests)


def words_of(theme: str, random: Random | None) -> Theme:
    """Return the theme's names and texts. Choose among alternatives with `random`; None: take the first of each."""
    words = dict(themes()[theme])
    for key in ("intro", "altar"):
        words[key] = random.choice(words[key]) if random else words[key][0]
    treasure = words["treasure"]
    name, text = treasure["name"], treasure["text"]
    if random:
        others = treasure["others"]
        text = others["text"]
        name = random.choice(
            [
                f"{made_of} {thing}"
                for made_of in others["made_of"]
                for thing in others["things"]
                if f"{made_of} {thing}" != treasure["name"]
            ]
        )
    names = {"treasure": name, "altar": words["altar"]["name"]}
    names |= {f"{what}_noun": called.split()[-1] for what, called in names.items()}
    words["treasure"] = {"name": name, "text": text, "taken": treasure["taken"].format(**names)}
    words["goal"] = words["goal"].format(**names)
    words["won"] = words["won"].format(**names)
    return words


def _draw(random: Random, theme: str, words: Theme, gates: int) -> Quest | None:
    kinds: list[Gate] = random.sample(["door", "dark", "lever", "guard"], gates)
    rooms = [Room(words["start"]["name"], words["start"]["text"], (0, 0), 0)]
    names = random.sample(words["rooms"], 3 + gates + random.randrange(2))
    passages: list[Passage] = []
    for number, entry in enumerate(names):
        # Put at least one room behind each gate, and the other rooms at random.
        region = min(number, gates) if number <= gates else random.randrange(gates + 1)
        first = region > len(passages)
        # The next region begins beyond the previous one, so that the player must pass every gate.
        among = [i for i, room in enumerate(rooms) if room.region == (region - 1 if first else region)]
        free = free_sides(rooms, among)
        if not free:
            return None
        near, direction = random.choice(free)
        if first:
            passages.append(Passage(kinds[region - 1], near, direction, len(rooms)))
        add_room(rooms, near, direction, entry, region)
    items = _place_items(random, rooms, passages)
    solved = _solve(words, rooms, passages, items)
    return Quest(theme, words, tuple(rooms), tuple(passages), items, words["goal"], *solved)


def free_sides(rooms: Sequence[Room], among: Iterable[int]) -> list[tuple[int, str]]:
    """Return pairs (room, direction) such that a new room fits in this direction of the room."""
    spots = {room.spot for room in rooms}
    return [(i, d) for i in among for d in DIRECTIONS if _neighbour(rooms[i], d) not in spots]


def add_room(rooms: list[Room], near: int, direction: str, entry: Mapping[str, str], region: int) -> None:
    rooms[near].exits[direction] = len(rooms)
    spot = _neighbour(rooms[near], direction)
    rooms.append(Room(entry["name"], entry["text"], spot, region, {OPPOSITE[direction]: near}))


def _neighbour(room: Room, direction: str) -> tuple[int, int]:
    east, north = DIRECTIONS[direction]
    return room.spot[0] + east, room.spot[1] + north


def _place_items(random: Random, rooms: list[Room], passages: list[Passage]) -> dict[str, Item]:
    """Place the item that opens each gate before this gate, and the treasure behind the last gate."""
    places: list[Place] = ["floor", "box", "hidden", "hidden"]
    hidings = random.sample(range(3), 3)
    items = {}
    for number, what in enumerate([*(NEEDS[passage.gate] for passage in passages), "treasure"]):
        # These are the rooms that the player can reach before gate `number`. The room behind a dark gate is among
        # them only if the player already has the light.
        region = [i for i, room in enumerate(rooms) if room.region <= number]
        if what == "treasure":
            region = [i for i, room in enumerate(rooms) if room.region == len(passages)]
        elsewhere = [i for i in region if i != 0] or region
        place: Place = "floor"
        if what not in ("lever", "treasure"):
            place = random.choice(places)
            places.remove(place)
        items[what] = Item(what, random.choice(elsewhere), place, hidings.pop() if place == "hidden" else 0)
    return items


def _path(rooms: list[Room], closed: set[tuple[int, int]], start: int, goal: int) -> list[str]:
    """Return the directions of the shortest path. `closed`: pairs of rooms between which a gate is closed."""
    queue = deque([(start, list[str]())])
    seen = {start}
    while queue:
        here, walk = queue.popleft()
        if here == goal:
            return walk
        for direction, there in sorted(rooms[here].exits.items()):
            if there not in seen and (here, there) not in closed:
                seen.add(there)
                queue.append((there, [*walk, direction]))
    raise AssertionError("a quest with an unreachable room")


def _solve(
    words: Theme, rooms: list[Room], passages: list[Passage], items: Mapping[str, Item]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return (subgoals, plan). The plan opens gate by gate, each with its item, and then fetches the treasure."""
    plan: list[str] = []
    subgoals: list[str] = []
    closed = {(p.room, p.beyond) for p in passages} | {(p.beyond, p.room) for p in passages}
    here = 0

    def go(room: int) -> None:
        nonlocal here
        plan.extend(_path(rooms, closed, here, room))
        here = room

    def fetch(what: str) -> None:
        item = items[what]
        go(item.room)
        if item.place == "hidden":
            spot = words["hiding"][item.hiding]
            plan.append(f"look {spot['way']} {spot['name']}")
            subgoals.append(f"{spot['find']} the {words[what]['name']}")
        else:
            if item.place == "box":
                plan.append(f"open {words['box']['name']}")
            plan.append(f"take {words[what]['name']}")

    for passage in passages:
        gate = words[passage.gate] if passage.gate != "dark" else words["light"]
        if passage.gate == "lever":
            go(items["lever"].room)
            plan.append(f"pull {gate['name']}")
            subgoals.append(gate["opens"])
        else:
            fetch(NEEDS[passage.gate])
        if passage.gate == "dark":
            plan.append(f"turn on {gate['name']}")
            subgoals.append(gate["lit"])
        elif passage.gate == "door":
            go(passage.room)
            plan.extend([f"unlock {gate['name']} with {words['key']['name']}", f"open {gate['name']}"])
            subgoals.append(gate["opens"])
        elif passage.gate == "guard":
            go(passage.room)
            plan.append(f"give {words['gift']['name']} to {gate['name']}")
            subgoals.append(gate["accepts"])
        closed -= {(passage.room, passage.beyond), (passage.beyond, passage.room)}
    fetch("treasure")
    subgoals.append(words["treasure"]["taken"])
    go(0)
    plan.append(f"put {words['treasure']['name']} on {words['altar']['name']}")
    subgoals.append(re.split("[.,]", words["won"])[0])
    return tuple(subgoals), tuple(plan)
