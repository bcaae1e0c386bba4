"""Rooms and things that a quest does not need: dead ends, and treasures that do not belong on the altar."""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import lru_cache
from random import Random

from evalharness.envs.base import Task, distractor_rooms
from evalharness.envs.jericho.open.quests import Item, Quest, add_room, free_sides, quests_of, themes


def distract(task: Task, count: int) -> Task | None:
    """A quest with `count` things more; None for a story that is written already, and where names run out."""
    if "quest" not in task.payload:
        return None
    seed, number = map(int, task.payload["quest"])
    quest = quests_of(seed)[number]
    if len(_other_names(quest, Random())) < count:
        return None
    return replace(task, payload={**task.payload, "distractors": count})


@lru_cache(maxsize=64)
def quest_with(seed: int, number: int, count: int) -> Quest:
    """A quest of a suite seed with `count` things more, each named by other words than the treasure, and with as many
    of `distractor_rooms` as the theme has rooms left. Way, goal and plan stay."""
    quest = quests_of(seed)[number]
    if not count:
        return quest
    random = Random(f"quest/{seed}/{number}/distractors/{count}")
    rooms = copy.deepcopy(list(quest.rooms))
    named = {room.name for room in rooms}
    unused = [entry for entry in quest.words["rooms"] if entry["name"] not in named]
    for entry in random.sample(unused, min(distractor_rooms(count), len(unused))):
        near, direction = random.choice(free_sides(rooms, range(len(rooms))))
        add_room(rooms, near, direction, entry, rooms[near].region)
    text = themes()[quest.theme]["treasure"]["others"]["text"]
    words, items = dict(quest.words), dict(quest.items)
    for which, name in enumerate(_other_names(quest, random)[:count], start=1):
        words[f"other{which}"] = {"name": name, "text": text}
        items[f"other{which}"] = Item(f"other{which}", random.randrange(len(rooms)), "floor")
    return replace(quest, words=words, rooms=tuple(rooms), items=items)


def _other_names(quest: Quest, random: Random) -> list[str]:
    """Names that share no word with the treasure's; the first ones share none with each other."""
    others = themes()[quest.theme]["treasure"]["others"]
    taken = quest.words["treasure"]["name"].split()
    made_of = [word for word in others["made_of"] if word not in taken]
    things = [word for word in others["things"] if word not in taken]
    random.shuffle(made_of)
    random.shuffle(things)
    return [
        f"{made_of[(turn + which) % len(made_of)]} {thing}"
        for turn in range(len(made_of))
        for which, thing in enumerate(things)
    ]
