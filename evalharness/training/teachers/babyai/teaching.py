"""BabyAI: thoughts about what is in sight, where, and which of the goal's things is still to be found."""

from __future__ import annotations

import re
from collections.abc import Sequence

from evalharness.training.teachers.babyai.seeking import (
    Seeker,
    Wanted,
    bare,
    carried,
    fits,
    in_sight,
    in_the_way,
    limit_of,
    sought_next,
    to_its_side,
    unnumbered,
    wall_ahead,
)
from evalharness.training.teachers.scene import Scene, mentions
from evalharness.training.teachers.teaching import Detour, Teaching

_MOVES = frozenset({"turn_left", "turn_right", "move_forward"})


def _spot(scene: Scene, thing: str) -> str:
    """Where the last view says that a thing is: `2 steps in front of you and 1 steps to your left`."""
    match = re.search(rf"There is a {re.escape(thing)} (.+?)\.", scene.last)
    return match[1].replace("in front of you and", "ahead and").strip() if match else ""


def _sought(scene: Scene) -> Wanted:
    """What is sought next: `the red ball`. Only in words that have been read."""
    reached = {index for step in scene.done for index in step.completed}
    return sought_next(scene.task.subgoals, reached, scene.seen)


def _full(scene: Scene) -> str:
    """What is carried while something else is to be picked up; empty where there is no such thing."""
    burden = carried(scene.last)
    return burden if burden is not None and _sought(scene).verb == "pick up" else ""


def _key_due(scene: Scene, thing: str) -> str | None:
    """The locked door that has been seen and that this key opens."""
    colour = thing.split()[0]
    return f"{colour} locked door" if "key" in thing and scene.knows(f"{colour} locked door") else None


def _think(scene: Scene) -> str:
    action = scene.next
    if action is None:
        return f"The next step to the goal is: {scene.action}."
    wanted = _sought(scene).what
    thing = action.arguments.get("object") or action.arguments.get("door")
    if thing is None:
        return _without_thing(scene, action.name, wanted)
    spot = _spot(scene, thing)
    at = f", {spot}" if spot else ""
    looked = _looked(scene, wanted)
    about_goal = fits(thing, wanted)
    verb = {
        "go_to": "go to it",
        "pickup": "pick it up",
        "toggle_and_go_through": "go through it",
        "go_through": "go through it",
    }.get(action.name, "act on it")
    if about_goal and action.name == "go_to" and (burden := _full(scene)):
        return f"{looked} I carry the {burden}, so I go there first."
    if about_goal:
        return f"{looked} I {verb}."
    if action.name == "pickup" and (door := _key_due(scene, thing)):
        return f"The {door} needs this key. I see {thing}{at}, so I pick it up."
    if "door" in thing:
        if mentions(scene.last, "carrying") and "locked" in thing:
            return f"I carry the key for {thing}. I unlock it and {verb}."
        return f"{looked} {_cap(thing)} leads on, so I {verb}."
    if action.name == "pickup":
        return f"{_cap(thing)} is in my way. I pick it up to get past."
    return f"{looked} The farthest is {thing}. I go there."


def _without_thing(scene: Scene, name: str, wanted: str) -> str:
    burden = carried(scene.last)
    following = scene.left[1] if len(scene.left) > 1 else ""
    if name == "drop":
        thing = burden or "what I carry"
        return f"I carry the {thing} and need my hands free. I put it down here."
    if name == "toggle":
        return "I face the door. I open it."
    if (full := _full(scene)) and any(fits(thing.name, wanted) for thing in in_sight(scene.last)):
        return f"{_looked(scene, wanted)} I carry the {full}, and this is no place for it: I {_said(name)}."
    if following == "drop" and burden:
        return f"I want to put the {burden} down, but not here. I {_said(name)} first."
    if name == "move_forward":
        return _walking(scene, wanted)
    return _turning(scene, name.removeprefix("turn_"), wanted)


def _looked(scene: Scene, wanted: str) -> str:
    """What is in sight, thing by thing, until one is what is sought: a verdict is learned where both that it compares
    stand before it. `I look for the red ball. grey ball 1, red ball: no. red ball 1, red ball: yes.`"""
    sought = f", {bare(wanted)}" if wanted.split()[0] in ("the", "a", "an") else ""
    actions = [scene.parse(step.action) for step in scene.done]
    been = [unnumbered(a.arguments["object"]) for a in actions if a is not None and a.name == "go_to"]
    said = [f"I look for {wanted}."]
    if been:
        said.append(f"Been at {', '.join(dict.fromkeys(been))}.")
    for thing in in_sight(scene.last):
        if fits(thing.name, wanted):
            return " ".join([*said, f"{thing.name}{sought}: yes."])
        been_there = unnumbered(thing.name) in been
        said.append(f"{thing.name}: been." if been_there else f"{thing.name}{sought}: no.")
    return " ".join(said)


def _walking(scene: Scene, wanted: str) -> str:
    wall, looked = wall_ahead(scene.last), _looked(scene, wanted)
    if wall is None:
        return f"{looked} No wall is near, so I move forward."
    return f"{looked} Wall {wall}, limit {limit_of(wanted)}: I move forward."


def _turning(scene: Scene, side: str, wanted: str) -> str:
    wall, looked = wall_ahead(scene.last), _looked(scene, wanted)
    if (found := to_its_side(wanted, [step.action for step in scene.done])) is not None:
        return found[1] if found[0] == side else f"I look for {wanted}. I turn {side}."
    last = scene.parse(scene.done[-1].action) if scene.done else None
    if last is not None and last.name == "go_to":
        return f"{looked} I am where I went, so I turn {side}."
    if wall is not None and wall <= limit_of(wanted):
        return f"{looked} Wall {wall}, limit {limit_of(wanted)}: I turn {side}."
    if (thing := in_the_way(scene.last)) is not None:
        return f"{looked} {_cap(thing)} is right in front: I turn {side}."
    return f"{looked} I turn {side} to look there."


def _said(name: str) -> str:
    return name.replace("_", " ")


def _cap(text: str) -> str:
    return text[:1].upper() + text[1:]


def _detours(scene: Scene, valid: Sequence[str]) -> list[Detour]:
    """A turn and back; never the plan's own."""
    pairs = (("turn left", "turn right"), ("turn right", "turn left"))
    return [Detour(action, back) for action, back in pairs if action != scene.action]


TEACHING = Teaching(
    thought=_think,
    moves=_MOVES,
    detours=_detours,
    seeker=lambda task: Seeker(task.subgoals),
)
