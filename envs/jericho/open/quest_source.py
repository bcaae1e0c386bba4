"""Write a generated quest as Inform 6 source."""

from __future__ import annotations

import re
from typing import Final

from evalharness.envs.jericho.open.quests import OPPOSITE, Item, Passage, Quest, Theme

_PROPERTY: Final = {"north": "n_to", "east": "e_to", "south": "s_to", "west": "w_to"}


def _names(name: str) -> str:
    """Write every word of an object's name as an Inform dictionary word. Inform writes an apostrophe as ^."""
    return " ".join("'" + word.replace("'", "^") + "'" for word in re.findall(r"[a-z']+", name.lower()))


def _text(text: str) -> str:
    return '"' + text.replace('"', "~") + '"'


def _ways(directions: list[str]) -> str:
    if len(directions) == 1:
        return f"The way out is {directions[0]}."
    return f"Ways lead {', '.join(directions[:-1])} and {directions[-1]}."


def quest_source(quest: Quest) -> str:
    words = quest.words
    parts = [
        "! Written by envs/jericho/quests.py.",
        f'Constant Story "{quest.theme.title()}";',
        'Constant Headline "^A quest.^";',
        "Constant MAX_SCORE 0;",
        'Include "common.h";',
        'Object nowhere "nowhere";',
    ]
    for number in range(len(quest.rooms)):
        parts.append(_room(quest, words, number))
        parts += [_item(quest, words, item) for item in quest.items.values() if item.room == number]
        parts += [_obstacle(words, passage) for passage in quest.passages if passage.room == number]
    parts += [_door(words, passage) for passage in quest.passages if passage.gate == "door"]
    parts.append(f"[ Initialise; print {_text('^^' + words['intro'] + '^')}; return Begin(Room0); ];")
    parts.append('Include "words.h";')
    return "\n\n".join(parts) + "\n"


def _room(quest: Quest, words: Theme, number: int) -> str:
    room = quest.rooms[number]
    dark = any(p.gate == "dark" and quest.rooms[p.beyond].region == room.region for p in quest.passages)
    gates = {p.direction: p for p in quest.passages if p.room == number}
    gates |= {OPPOSITE[p.direction]: p for p in quest.passages if p.beyond == number}
    exits, notes = [], []
    for direction, there in sorted(room.exits.items()):
        passage = gates.get(direction)
        if passage is None or (passage.beyond == number and passage.gate != "door"):
            exits.append(f"{_PROPERTY[direction]} Room{there}")
        elif passage.gate == "door":
            exits.append(f"{_PROPERTY[direction]} the_door")
            notes.append(f"The {words['door']['name']} is to the {direction}.")
        elif passage.gate == "dark":
            exits.append(
                f"{_PROPERTY[direction]} [; if (the_light has light && IndirectlyContains(player, the_light))"
                f' return Room{there}; "It is too dark that way to take another step."; ]'
            )
            notes.append(f"It is dark to the {direction}.")
        elif passage.gate == "lever":
            barrier = words["barrier"]["name"]
            exits.append(
                f"{_PROPERTY[direction]} [; if (the_lever has general) return Room{there};"
                f' "The {barrier} is in the way."; ]'
            )
            notes.append(f"The way {direction} is where the {barrier} is.")
        else:
            name, refuses = words["guard"]["name"], words["guard"]["refuses"]
            exits.append(
                f"{_PROPERTY[direction]} [; if (the_guard has general) return Room{there};"
                f" {_text(f'The {name} {refuses}.')}; ]"
            )
            notes.append(f"A way leads {direction}.")
    plain = [d for d in sorted(room.exits) if d not in gates or gates[d].beyond == number]
    described = " ".join([room.text, *([_ways(plain)] if plain else []), *notes])
    lines = [f'Object Room{number} "{room.name}"', f"  with description {_text(described)},"]
    lines.append("       " + ",\n       ".join(exits) + ("," if not dark else ";"))
    if not dark:
        lines.append("  has  light;")
    if number == 0:
        altar, treasure = words["altar"], words["treasure"]
        lines.append(
            f'Object -> the_altar "{altar["name"]}"\n'
            f"  with name {_names(altar['name'])}, description {_text(altar['text'])},\n"
            f'       before [; Receive: if (noun ~= the_treasure) "That is not what belongs there.";\n'
            f"         deadflag = 2; {_text(words['won'])}; ],\n"
            f"       initial {_text('Here is the ' + altar['name'] + ', for the ' + treasure['name'] + '.')},\n"
            f"  has  static supporter;"
        )
    return "\n".join(lines)


def _obstacle(words: Theme, passage: Passage) -> str:
    """Write the Inform object that closes a gate: a barrier or a guard. Doors and darkness need no such object."""
    if passage.gate == "lever":
        barrier = words["barrier"]
        return (
            f'Object -> the_barrier "{barrier["name"]}"\n'
            f"  with name {_names(barrier['name'])},\n"
            f'       description [; if (the_lever has general) "It is out of the way."; {_text(barrier["text"])}; ],\n'
            f"  has  scenery;"
        )
    if passage.gate == "guard":
        guard, gift = words["guard"], words["gift"]
        idle = f"^The {guard['name']} takes no notice of you."
        watching = f"^The {guard['name']} {guard['refuses']}. Something like the {gift['name']} might help."
        return (
            f'Object -> the_guard "{guard["name"]}"\n'
            f"  with name {_names(guard['name'])}, description {_text(guard['text'])},\n"
            f"       life [; Give, Show, ThrowAt:\n"
            f'         if (noun ~= the_gift && second ~= the_gift) "That is of no interest.";\n'
            f"         remove the_gift; give self general; {_text(guard['accepts'] + '.')};\n"
            f'         Ask, Tell, Answer: "There is no answer.";\n'
            f'         Attack, Kiss: "Better not."; ],\n'
            f"       describe [; if (self has general) {_text(idle)}; {_text(watching)}; ],\n"
            f"  has  animate;"
        )
    return "! the way on is open to whoever can see"


def _door(words: Theme, passage: Passage) -> str:
    door = words["door"]
    near, far = f"Room{passage.room}", f"Room{passage.beyond}"
    there, back = _PROPERTY[passage.direction], _PROPERTY[OPPOSITE[passage.direction]]
    return (
        f'Object the_door "{door["name"]}"\n'
        f"  with name {_names(door['name'])}, description {_text(door['text'])},\n"
        f"       found_in {near} {far},\n"
        f"       door_to [; if (location == {near}) return {far}; return {near}; ],\n"
        f"       door_dir [; if (location == {near}) return {there}; return {back}; ],\n"
        f"       with_key the_key,\n"
        f"       after [; Unlock: {_text(door['opens'] + '.')}; ],\n"
        f"  has  scenery door openable lockable locked;"
    )


def _item(quest: Quest, words: Theme, item: Item) -> str:
    entry = words[item.what]
    head = f'"{entry["name"]}"'
    body = f"  with name {_names(entry['name'])}, description {_text(entry['text'])}"
    article = ', article "some"' if entry["name"].endswith("s") and item.what == "gift" else ""
    if item.what == "lever":
        return (
            f"Object -> the_lever {head}\n{body},\n"
            f"       initial {_text('There is ' + _a(entry['name']) + ' here.')},\n"
            f'       before [; Pull, Push, Turn, SwitchOn: if (self has general) "It has done its work.";\n'
            f"         give self general; {_text(entry['opens'] + '.')}; ],\n"
            f"  has  static;"
        )
    if item.what == "light":
        body += (
            f",\n       before [; Burn: <<SwitchOn self>>; ],\n"
            f"       after [; SwitchOn: give self light; {_text(entry['lit'] + '.')};"
            f' SwitchOff: give self ~light; "It is out."; ]'
        )
    if item.what == "treasure":
        taken = _text(entry["taken"] + ".")
        body += f",\n       after [; Take: if (self hasnt general) {{ give self general; {taken}; }} ]"
    has = "\n  has  switchable;" if item.what == "light" else ";"
    if item.place == "hidden":
        spot = words["hiding"][item.hiding]
        seek = "LookUnder, Search, Push, Pull, Turn, Take"
        return (
            f'Object -> spot{item.hiding} "{spot["name"]}"\n'
            f"  with name {_names(spot['name'])}, description {_text(spot['text'])},\n"
            f"       initial {_text('You notice ' + _a(spot['name']) + '.')},\n"
            f"       before [; {seek}:\n"
            f"         if (the_{item.what} in nowhere) {{ move the_{item.what} to player;\n"
            f"           {_text(spot['find'] + ' the ' + entry['name'] + ', and take it.')}; }}\n"
            f'         "Nothing more is there."; ],\n'
            f"  has  static;\n"
            f"Object the_{item.what} {head} nowhere\n{body}{article}{has}"
        )
    if item.place == "box":
        box = words["box"]
        return (
            f'Object -> the_box "{box["name"]}"\n'
            f"  with name {_names(box['name'])}, description {_text(box['text'])},\n"
            f"  has  static container openable;\n"
            f"Object -> -> the_{item.what} {head}\n{body}{article}{has}"
        )
    return f"Object -> the_{item.what} {head}\n{body}{article}{has}"


def _a(name: str) -> str:
    return ("an " if name[0] in "aeiou" else "a ") + name
