"""Write thoughts for BabyAI: what is in sight, where it is, and which thing of the goal is still missing."""

from __future__ import annotations

import re
from collections.abc import Sequence

from evalharness.training.teachers.babyai.seeking import (
    Seeker,
    Target,
    choose_limit,
    find_burden,
    find_obstacle,
    find_target,
    find_wall,
    fits,
    list_things,
    strip_number,
    strip_place,
    turn_to_side,
)
from evalharness.training.teachers.scene import Scene, mentions
from evalharness.training.teachers.teaching import Detour, Teaching

_MOVES = frozenset({"turn_left", "turn_right", "move_forward"})


def _find_spot(scene: Scene, thing: str) -> str:
    """Return the thing's position in the last observation: `2 steps in front of you and 1 steps to your left`."""
    match = re.search(rf"There is a {re.escape(thing)} (.+?)\.", scene.last)
    return match[1].replace("in front of you and", "ahead and").strip() if match else ""


def _find_scene_target(scene: Scene) -> Target:
    """Return the thing to search for next, such as `the red ball`, described in words that the agent has read."""
    reached = {index for step in scene.done for index in step.completed}
    return find_target(scene.task.subgoals, reached, scene.seen)


def _find_burden(scene: Scene) -> str:
    """Return the carried thing if the agent must pick up another thing; otherwise an empty text."""
    burden = find_burden(scene.last)
    return burden if burden is not None and _find_scene_target(scene).verb == "pick up" else ""


def _find_locked_door(scene: Scene, thing: str) -> str | None:
    """Return the locked door that the key `thing` opens, if the door was seen."""
    colour = thing.split()[0]
    return f"{colour} locked door" if "key" in thing and scene.knows(f"{colour} locked door") else None


def _think(scene: Scene) -> str:
    action = scene.next
    if action is None:
        return f"The next step to the goal is: {scene.action}."
    target = _find_scene_target(scene).what
    thing = action.arguments.get("object") or action.arguments.get("door")
    if thing is None:
        return _explain_plain_action(scene, action.name, target)
    spot = _find_spot(scene, thing)
    at = f", {spot}" if spot else ""
    looked = _list_sight(scene, target)
    about_goal = fits(thing, target)
    verb = {
        "go_to": "go to it",
        "pickup": "pick it up",
        "toggle_and_go_through": "go through it",
        "go_through": "go through it",
    }.get(action.name, "act on it")
    if about_goal and action.name == "go_to" and (burden := _find_burden(scene)):
        return f"{looked} I carry the {burden}, so I go there first."
    if about_goal:
        return f"{looked} I {verb}."
    if action.name == "pickup" and (door := _find_locked_door(scene, thing)):
        return f"The {door} needs this key. I see {thing}{at}, so I pick it up."
    if "door" in thing:
        if mentions(scene.last, "carrying") and "locked" in thing:
            return f"I carry the key for {thing}. I unlock it and {verb}."
        return f"{looked} {_capitalize(thing)} leads on, so I {verb}."
    if action.name == "pickup":
        return f"{_capitalize(thing)} is in my way. I pick it up to get past."
    return f"{looked} The farthest is {thing}. I go there."


def _explain_plain_action(scene: Scene, name: str, wanted: str) -> str:
    burden = find_burden(scene.last)
    following = scene.left[1] if len(scene.left) > 1 else ""
    if name == "drop":
        thing = burden or "what I carry"
        return f"I carry the {thing} and need my hands free. I put it down here."
    if name == "toggle":
        return "I face the door. I open it."
    if (full := _find_burden(scene)) and any(fits(thing.name, wanted) for thing in list_things(scene.last)):
        return f"{_list_sight(scene, wanted)} I carry the {full}, and this is no place for it: I {_spell_action(name)}."
    if following == "drop" and burden:
        return f"I want to put the {burden} down, but not here. I {_spell_action(name)} first."
    if name == "move_forward":
        return _explain_step(scene, wanted)
    return _explain_turn(scene, name.removeprefix("turn_"), wanted)


def _list_sight(scene: Scene, wanted: str) -> str:
    """Compare the things in sight with the searched thing, up to the first match: `I look for the red ball. grey ball
    1, red ball: no. red ball 1, red ball: yes.` Each verdict follows both names, because a small model only learns it
    so."""
    sought = f", {strip_place(wanted)}" if wanted.split()[0] in ("the", "a", "an") else ""
    actions = [scene.parse(step.action) for step in scene.done]
    been = [strip_number(a.arguments["object"]) for a in actions if a is not None and a.name == "go_to"]
    sentences = [f"I look for {wanted}."]
    if been:
        sentences.append(f"Been at {', '.join(dict.fromkeys(been))}.")
    for thing in list_things(scene.last):
        if fits(thing.name, wanted):
            return " ".join([*sentences, f"{thing.name}{sought}: yes."])
        been_there = strip_number(thing.name) in been
        sentences.append(f"{thing.name}: been." if been_there else f"{thing.name}{sought}: no.")
    return " ".join(sentences)


def _explain_step(scene: Scene, wanted: str) -> str:
    wall, looked = find_wall(scene.last), _list_sight(scene, wanted)
    if wall is None:
        return f"{looked} No wall is near, so I move forward."
    return f"{looked} Wall {wall}, limit {choose_limit(wanted)}: I move forward."


def _explain_turn(scene: Scene, side: str, wanted: str) -> str:
    wall, looked = find_wall(scene.last), _list_sight(scene, wanted)
    if (turn := turn_to_side(wanted, [step.action for step in scene.done])) is not None:
        return turn[1] if turn[0] == side else f"I look for {wanted}. I turn {side}."
    last = scene.parse(scene.done[-1].action) if scene.done else None
    if last is not None and last.name == "go_to":
        return f"{looked} I am where I went, so I turn {side}."
    if wall is not None and wall <= choose_limit(wanted):
        return f"{looked} Wall {wall}, limit {choose_limit(wanted)}: I turn {side}."
    if (thing := find_obstacle(scene.last)) is not None:
        return f"{looked} {_capitalize(thing)} is right in front: I turn {side}."
    return f"{looked} I turn {side} to look there."


def _spell_action(name: str) -> str:
    return name.replace("_", " ")


def _capitalize(text: str) -> str:
    return text[:1].upper() + text[1:]


def _list_detours(scene: Scene, valid: Sequence[str]) -> list[Detour]:
    """Return both turns, each with the turn that undoes it, except the turn that the plan makes next."""
    pairs = (("turn left", "turn right"), ("turn right", "turn left"))
    return [Detour(action, back) for action, back in pairs if action != scene.action]


TEACHING = Teaching(
    thought=_think,
    moves=_MOVES,
    detours=_list_detours,
    seeker=lambda task: Seeker(task.subgoals),
)
