"""Write thoughts for Jericho: what is here, what it may be useful for, and where the object of the goal may be."""

from __future__ import annotations

import re
from collections.abc import Sequence

from evalharness.envs.jericho.observation import is_understood
from evalharness.training.teachers.jericho.exploring import Explorer
from evalharness.training.teachers.scene import Scene, mentions
from evalharness.training.teachers.teaching import Detour, Teaching

_BACK = {
    "north": "south", "south": "north", "east": "west", "west": "east", "up": "down", "down": "up",
    "northeast": "southwest", "southwest": "northeast", "northwest": "southeast", "southeast": "northwest",
}  # fmt: skip
_GOAL = re.compile(r"(?:the|a|an) ([\w' -]+?)(?: back)? (?:to|on|in|from)\b")
_NOTHING = re.compile(r"(?:You can (?:also )?see|There is|You notice) an? ([\w' -]+?)(?: \(| here|\.)")


def _find_treasure(scene: Scene) -> str:
    match = _GOAL.search(scene.goal)
    return f"the {match[1]}" if match else "what the goal asks for"


def _read_direction(text: str) -> str | None:
    word = text.strip().removeprefix("go ")
    return word if word in _BACK else None


def _list_nouns(text: str) -> list[str]:
    """Return the things that a command names: `rusty key` and `door` for `unlock door with rusty key`."""
    words = re.sub(r"^(?:look under|look behind|look in|turn on|turn off|[\w-]+) ", "", text.strip())
    return [
        part.strip() for part in re.split(r" (?:with|to|on|in|under|behind|at|from) ", words) if part.strip()
    ]


def _think(scene: Scene) -> str:
    text = scene.action.strip()
    direction = _read_direction(text)
    treasure = _find_treasure(scene)
    if direction is not None:
        return _explain_walk(scene, direction, treasure)
    things = _list_nouns(text)
    verb = text.split()[0]
    thing = f"the {things[0]}" if things else "it"
    other = f"the {things[1]}" if len(things) > 1 else "that"
    in_goal = bool(things) and mentions(scene.goal, things[0])
    match verb:
        case "take" | "get" if in_goal:
            return f"Here is {thing} that the goal asks for. I take it."
        case "take" | "get":
            return f"I see {thing}. It may be of use, so I take it."
        case "open":
            return f"{_capitalize(thing)} is closed. I open it to see what it holds."
        case "unlock":
            return f"{_capitalize(thing)} is locked, and I have {other}. I unlock it."
        case "give" | "show":
            return f"{_capitalize(other)} stands in the way and may want {thing}, which I have."
        case "put" if in_goal:
            return f"I have {thing}, and here is {other}. That is what the goal asks for."
        case "look" | "search":
            spot = f"the {things[-1]}" if things else "here"
            return f"Something may be hidden at {spot}. I look."
        case "pull" | "push" | "turn" if "turn on" not in text:
            return f"There is {thing}. I {verb} it to see what it does."
        case "turn" | "light":
            return f"I will need light. I have {thing}, so I turn it on."
    return f"I need {treasure}. Here I can {text}."


def _explain_walk(scene: Scene, direction: str, treasure: str) -> str:
    carried = re.search(
        rf"\btake {re.escape(treasure.removeprefix('the '))}\b", "\n".join(s.action for s in scene.done)
    )
    if carried:
        return f"I have {treasure}. Now I bring it back; the way is {direction}."
    return f"I have not found {treasure} yet. I look to the {direction}."


def _capitalize(text: str) -> str:
    return text[:1].upper() + text[1:]


def _list_idle_actions(scene: Scene) -> list[str]:
    return ["inventory", "look", *(f"examine {thing}" for thing in _NOTHING.findall(scene.last))]


def _list_detours(scene: Scene, valid: Sequence[str]) -> list[Detour]:
    """Return a step through each exit that the last observation names, except the planned exit, and the step back."""
    planned = _read_direction(scene.action)
    return [Detour(way, back) for way, back in _BACK.items() if way != planned and mentions(scene.last, way)]


TEACHING = Teaching(
    thought=_think,
    seeker=lambda task: Explorer(),
    idle=_list_idle_actions,
    detours=_list_detours,
    refused=lambda valid, observation: not valid or not is_understood(observation),
    synonyms=False,
)
