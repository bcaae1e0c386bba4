"""Write thoughts for PDDL: the next condition to reach, and why the action helps. The state is fully visible."""

from __future__ import annotations

import re
from collections.abc import Sequence

from evalharness.envs.pddl.wording import SENTENCES
from evalharness.training.teachers.pddl.carrying import Carrier
from evalharness.training.teachers.scene import Scene
from evalharness.training.teachers.teaching import Detour, Teaching

_MOVES = frozenset({"move"})


def _state_need(scene: Scene) -> str:
    """Return a sentence with the next condition to reach: `Next I need: ball1 is at roomb.`"""
    return f"Next I need: {scene.due.rstrip('. ')}." if scene.due else "All that is left is one action."


def _find_home(scene: Scene, thing: str, relation: str) -> str | None:
    """Return the place where the goal wants a thing: `roomb` for (`ball1`, `is at`); None if the goal does not say."""
    match = re.search(rf"\b{re.escape(thing)} {relation} ([\w-]+)", scene.goal)
    return match[1] if match else None


def _think(scene: Scene) -> str:
    action = scene.next
    if action is None:
        return f"{_state_need(scene)} So: {scene.action}"
    slots = dict(action.arguments)
    why = {"gripper": _explain_gripper, "blockworld": _explain_blocks}.get(scene.task.kind, _explain_other)(
        scene, action.name, slots
    )
    return f"{_state_need(scene)} {why}"


def _explain_gripper(scene: Scene, name: str, slots: dict[str, str]) -> str:
    if name == "pick":
        ball, room = slots["ball"], slots["room"]
        home = _find_home(scene, ball, "is at")
        to = f" and belongs in {home}" if home else ""
        return f"{ball} is here in {room}{to}, and gripper {slots['gripper']} is free. I pick it up."
    if name == "drop":
        return f"I am in {slots['room']} and carry {slots['ball']}. It belongs here, so I drop it."
    purpose = scene.ahead(_MOVES)[1]
    there = slots["to_room"]
    if purpose is not None and purpose.name == "drop":
        return f"I carry {purpose.arguments['ball']}, which belongs in {there}. I move there."
    if purpose is not None and purpose.name == "pick":
        return (
            f"{purpose.arguments['ball']} is in {there}, and I am in {slots['from_room']}. I go and get it."
        )
    return f"I must end in {there}, so I move there."


def _explain_blocks(scene: Scene, name: str, slots: dict[str, str]) -> str:
    after = scene.parse(scene.left[1]) if len(scene.left) > 1 else None
    goes_on = after.arguments.get("under") if after is not None and after.name == "stack" else None
    block = slots["block"]
    match name:
        case "unstack" if goes_on:
            if f"{block} is on {goes_on}" not in scene.goal:
                return f"{block} on {slots['under']} is in the way. It can lie on {goes_on} for now."
            return f"{block} is on {slots['under']} and must be on {goes_on}, which is clear. I take it off."
        case "unstack":
            return f"{block} on {slots['under']} is in the way. I take it off first."
        case "pickup" if goes_on:
            return f"{block} is on the table and clear. It goes on {goes_on}, so I pick it up."
        case "pickup":
            return f"{block} is clear. I pick it up."
        case "putdown":
            return f"I hold {block}. I put it on the table."
        case "stack" if f"{block} is on {slots['under']}" in scene.goal:
            return f"I hold {block}, and {slots['under']} is clear. {block} must be on {slots['under']}."
        case "stack":
            return f"I hold {block}. I put it on {slots['under']} for now, which is clear."
    return f"I {scene.action}"


_REASONS = {
    "grasp": "My {hand} hand is empty and I need {container}, so I grasp it.",
    "leave": "I need my {hand} hand for something else, so I put {container} down.",
    "fill-shot": "I hold {shot}, it is clean, and {dispenser} gives {ingredient}. I fill it.",
    "refill-shot": "{shot} had {ingredient} before, so I can fill it again.",
    "empty-shot": "{shot} holds {beverage}, which I do not need. I empty it.",
    "clean-shot": "{shot} is used. I clean it before something else goes in.",
    "pour-shot-to-clean-shaker": "{ingredient} in {shot} goes into {shaker}, which is clean.",
    "pour-shot-to-used-shaker": "{shaker} still needs {ingredient}, which is in {shot}.",
    "empty-shaker": "{shaker} holds what I do not need. I empty it.",
    "clean-shaker": "{shaker} is empty but used. I clean it.",
    "shake": "{shaker} holds {ingredient} and {other_ingredient}. I shake them to {cocktail}.",
    "pour-shaker-to-shot": "The drink in {shaker} is ready. I pour it into the shot.",
    "open": "The {container} is closed, and I need what is in it or must put something in. I open it.",
    "close": "Nothing more is needed from the {container}. I close it.",
    "fetch": "{object} is in the {container} and I need it. I fetch it.",
    "put-away": "I have {object}, which belongs in the {container}. I put it away.",
    "loosen": "The nut {nut} is tight and {hub} is on the ground. I loosen it.",
    "tighten": "The nut {nut} on {hub} is loose and the hub is on the ground. I tighten it.",
    "jack-up": "{hub} must be off the ground, and I have the jack.",
    "jack-down": "The work in the air on {hub} is done. I jack it down.",
    "undo": "{hub} is jacked up and its nut {nut} is loose. I undo it.",
    "do-up": "{hub} has its wheel, and I have {nut}. I do it up.",
    "remove-wheel": "{hub} is unfastened, so {wheel} comes off.",
    "put-on-wheel": "{hub} is free, and I have {wheel}. I put it on.",
    "inflate": "{wheel} is intact and not inflated, and I have the pump.",
}


def _explain_other(scene: Scene, name: str, slots: dict[str, str]) -> str:
    reason = _REASONS.get(name)
    return reason.format(**slots) if reason else f"So: {scene.action}"


_UNDOES = (
    ("pick", "drop"), ("pickup", "putdown"), ("stack", "unstack"), ("grasp", "leave"), ("open", "close"),
    ("fetch", "put-away"), ("loosen", "tighten"), ("jack-up", "jack-down"), ("undo", "do-up"),
    ("remove-wheel", "put-on-wheel"),
)  # fmt: skip
_BACK = {
    "move": "Move from {to_room} to {from_room}.",
    **{one: SENTENCES[other].strip() for pair in _UNDOES for one, other in (pair, pair[::-1])},
}


def _list_detours(scene: Scene, valid: Sequence[str]) -> list[Detour]:
    detours = []
    for text in valid:
        action = scene.parse(text)
        if action is not None and action.name in _BACK and text.strip() != scene.action.strip():
            detours.append(Detour(text, _BACK[action.name].format(**action.arguments)))
    return detours


TEACHING = Teaching(
    thought=_think,
    seeker=lambda task: Carrier(task.subgoals) if task.kind == "gripper" else None,
    moves=_MOVES,
    detours=_list_detours,
    lists_valid=True,
)
