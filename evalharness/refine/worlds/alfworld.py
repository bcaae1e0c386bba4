"""ALFWorld: thoughts about where a thing may be, what must be done to it, where it belongs."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from envs.alfworld.households import Household
from envs.alfworld.oracle import kind_in
from envs.base import Task
from evalharness.refine.scene import Scene, mentions
from evalharness.refine.worlds import Detour, Search, World, content_form, digest

_MOVES = frozenset({"go", "open"})
_DOES = {"clean": "cleans", "heat": "heats", "cool": "cools"}
_DONE = {"clean": "cleaned", "heat": "heated", "cool": "cooled"}
_PLACE = re.compile(r"\ban? ([a-z]+ \d+)")


def _held(scene: Scene) -> str | None:
    held = None
    for step in scene.done:
        action = scene.parse(step.action)
        if action is not None and action.name == "take":
            held = action.arguments["object"]
        elif action is not None and action.name == "put":
            held = None
    return held


def _where(scene: Scene) -> str | None:
    """The receptacle that was last gone to."""
    for step in reversed(scene.done):
        action = scene.parse(step.action)
        if action is not None and action.name == "go":
            return action.arguments["receptacle"]
    return None


def _seen_at(scene: Scene, thing: str, place: str) -> bool:
    return any(mentions(s.observation, thing) and mentions(s.observation, place) for s in scene.done)


def _thoughts(scene: Scene) -> list[str]:
    kind, target = str(scene.task.payload["object"]), str(scene.task.payload["target"])
    action, held = scene.next, _held(scene)
    purpose = scene.ahead(_MOVES)[1]
    if action is None or purpose is None:
        return [
            f"The next step to the goal is: {scene.action}.",
        ]
    slots = action.arguments
    match action.name:
        case "go":
            return _going(
                scene, slots["receptacle"], purpose.name, dict(purpose.arguments), kind, target, held
            )
        case "open" if purpose.name == "take" and held is None:
            place = slots["receptacle"]
            return [
                f"The {place} is closed. I open it to look for a {kind}.",
                f"I cannot see into the {place}. A {kind} may be in it, so I open it.",
            ]
        case "open":
            place = slots["receptacle"]
            return [
                f"The {place} is closed. I open it before I put the {held} in.",
                f"I have to open the {place} to put the {held} in.",
            ]
        case "take":
            thing = slots["object"]
            return [
                f"Here is {thing}, and the goal asks for a {kind}. I take it.",
                f"I see {thing}. It is the {kind} that I need, so I take it.",
                f"The {thing} is here. I need a {kind}, so I take it.",
            ]
        case "clean" | "heat" | "cool":
            thing, place = slots["object"], slots["receptacle"]
            return [
                f"I hold {thing} and am at {place}, which {_DOES[action.name]} it.",
                f"The {thing} must be {_DONE[action.name]} first. I am at {place}, so I do it now.",
            ]
        case "put":
            thing, place = slots["object"], slots["receptacle"]
            return [
                f"I am at {place} with {thing}. The goal wants it in a {target}, so I put it here.",
                f"This is a {target}, where {thing} belongs. I put it down.",
            ]
        case "use":
            lamp = slots["object"]
            return [
                f"I hold {held}, and {lamp} is here. I switch it on to look at the {kind}.",
                f"Here is {lamp}. I use it to examine {held}.",
            ]
    return [
        f"The next step to the goal is: {scene.action}.",
    ]


def _going(
    scene: Scene, place: str, purpose: str, slots: dict[str, str], kind: str, target: str, held: str | None
) -> list[str]:
    here = _where(scene)
    if purpose == "take" and held is None:
        thing = slots["object"]
        if _seen_at(scene, thing, place):
            return [
                f"I saw {thing} at {place}. I go back for it.",
                f"I need a {kind}, and {thing} is at {place}.",
            ]
        if here is not None and _looked_in_vain(scene, kind):
            if listed := _as_listed(scene, here, place):
                return [
                    f"There is no {kind} at {here}. The room has {listed}, so I look at {place} next.",
                    f"I see no {kind} here. The room has {listed}, so {place} is the next place to look.",
                ]
            return [
                f"There is no {kind} at {here}. I look at {place} next.",
                f"I see no {kind} here. The next place to look is {place}.",
            ]
        first = "I need a" if not _placed(scene) else "I need another"
        return [
            f"{first} {kind}. I have not seen one yet; {place} is a place where it may be.",
            f"{first} {kind}, and none is in sight. I look at {place}.",
            f"I have no {kind} yet. A {kind} could be at {place}, so I go there.",
        ]
    if purpose in _DOES:
        return [
            f"I have {held}. It must be {_DONE[purpose]}, and {place} {_DOES[purpose]} things. I go there.",
            f"Before I bring {held} away it must be {_DONE[purpose]}. I go to {place}.",
        ]
    if purpose == "use":
        if here is not None and _looked_in_vain(scene, target):
            if listed := _as_listed(scene, here, place):
                return [
                    f"There is no {target} at {here}. The room has {listed}, so I look at {place} next.",
                    f"I hold {held}, but {here} has no {target}. The room has {listed}, so I try {place}.",
                ]
            return [
                f"There is no {target} at {here}. I look at {place} next.",
                f"I hold {held}, but {here} has no {target}. I try {place}.",
            ]
        return [
            f"I have {held}. Now I need a {target} to look at it by. I go to {place}.",
            f"I hold {held}. A {target} may be at {place}.",
        ]
    return [
        f"I have {held}. It belongs in a {target}, so I go to {place}.",
        f"Now {held} goes into a {target}. I go to {place}.",
    ]


def _as_listed(scene: Scene, here: str, place: str) -> str | None:
    """`a drawer 1, a fridge 1`, as the first observation has it, where the one follows the other there. A model that
    was not shown where the next place comes from went to and fro between the last two drawers."""
    match = re.search(rf"\ban? {re.escape(here)},(?: and)? an? {re.escape(place)}\b", scene.first_observation)
    return match[0] if match else None


def _looked_in_vain(scene: Scene, kind: str) -> bool:
    """Whether the last step was to look somewhere, and no such thing was there."""
    if not scene.at:
        return False
    action = scene.parse(scene.done[-1].action)
    return action is not None and action.name in _MOVES and not _names_a(scene.last, kind)


def _names_a(text: str, kind: str) -> bool:
    return re.search(rf"\b{re.escape(kind)} \d", text) is not None


def _wanted(scene: Scene) -> str | None:
    """The kind of thing that the coming walk is for; None for a walk to a place in plain sight."""
    purpose = scene.ahead(_MOVES)[1]
    if purpose is None or purpose.name not in ("take", "use"):
        return None
    return str(scene.task.payload["object" if purpose.name == "take" else "target"])


def _places_to_look(scene: Scene) -> list[str]:
    """In the order in which the first observation names them, from the one after the plan's round to the one before
    it; places seen are left out. A small model that was trained on kinds of places in a random order, each by number,
    went on counting past the last one there is."""
    action, wanted = scene.next, _wanted(scene)
    if action is None or action.name != "go" or wanted is None:
        return []
    if any(_names_a(step.observation, wanted) for step in scene.done):
        return []  # it was seen on the way: the plan knows no more than the player
    right = action.arguments["receptacle"]
    gone = {step.action for step in scene.done}
    named = _PLACE.findall(scene.first_observation)
    at = named.index(right) if right in named else 0
    return [text for place in named[at + 1 :] + named[:at] if (text := f"go to {place}") not in gone]


def _opens(action: str, answer: str) -> str | None:
    place = action.removeprefix("go to ")
    return f"open {place}" if f"{place} is closed" in answer else None


def _shows(scene: Scene, answer: str) -> bool:
    wanted = _wanted(scene)
    return wanted is not None and _names_a(answer, wanted)


def _placed(scene: Scene) -> bool:
    return any(step.action.startswith("put ") for step in scene.done)


def _idle(scene: Scene) -> list[str]:
    here = _where(scene)
    return ["look", "inventory", *([f"examine {here}"] if here else [])]


def _detours(scene: Scene, valid: Sequence[str]) -> list[Detour]:
    """Elsewhere, when the plan goes on from anywhere; into and out of the hand; shut again."""
    found = []
    action, here, held = scene.next, _where(scene), _held(scene)
    if action is not None and action.name == "go":
        places = sorted(set(_PLACE.findall(scene.first_observation)))
        wanted, kind = action.arguments["receptacle"], str(scene.task.payload["object"])
        if held is not None:  # another place of the same kind would do as well
            places = [place for place in places if kind_in(place) != kind_in(wanted)]
        unless = kind if held is None else ""
        found += [Detour(f"go to {place}", None, unless) for place in places if place not in (wanted, here)]
    for text in valid:
        parsed = scene.parse(text)
        if parsed is None or here is None:
            continue
        if parsed.name == "put" and parsed.arguments["object"] == held:
            found.append(Detour(text, f"take {held} from {parsed.arguments['receptacle']}"))
        if parsed.name == "take" and held is None and text != scene.action:
            found.append(
                Detour(text, f"put {parsed.arguments['object']} in/on {parsed.arguments['receptacle']}")
            )
        if parsed.name == "close":
            found.append(Detour(text, f"open {parsed.arguments['receptacle']}"))
    return found


def _forms(task: Task) -> list[str]:
    if "household" not in task.payload:
        return content_form(task)
    thing, target = str(task.payload["object"]), str(task.payload["target"])
    home = Household.from_json(
        task.payload["household"], kind=task.kind, object_type=thing, target_type=target
    )
    return [digest(json.dumps(home.shape()))]


WORLD = World(
    thoughts=_thoughts,
    moves=_MOVES,
    idle=_idle,
    detours=_detours,
    search=Search(_places_to_look, _opens, _shows),
    lists_valid=True,
    forms=_forms,
    per_task=2,
)
