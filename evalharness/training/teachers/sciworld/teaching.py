"""Write thoughts for ScienceWorld: what the task asks for, which room is next, and what to do with a thing."""

from __future__ import annotations

import re
from collections.abc import Sequence

from evalharness.envs.sciworld import place
from evalharness.training.teachers.scene import Scene
from evalharness.training.teachers.sciworld.finding import FIND, LIFESPAN, Finder
from evalharness.training.teachers.teaching import Detour, Teaching

_MOVES = frozenset({"go", "look_around"})
_TASK = re.compile(r"Your task is to (.+?)[.\n]")
_DOOR = re.compile(r"A door to the ([\w ]+?) \(that is open\)")


def _find_gist(scene: Scene) -> str:
    match = _TASK.search(scene.goal + "\n")
    return match[1] if match else "reach the goal"


def _find_room(scene: Scene) -> str | None:
    for text in (*(step.observation for step in reversed(scene.done)), scene.first_observation):
        if room := place("", text):
            return room
    return None


def _find_destination(scene: Scene) -> str:
    """Return the room where the next sequence of moves ends; empty if the next action is no move."""
    room = ""
    for text in scene.left:
        action = scene.parse(text)
        if action is None or action.name not in _MOVES:
            break
        room = action.arguments.get("location", room)
    return room


_THOUGHTS = {
    "on the way": "I must get to the {end}. The {location} is on the way.",
    "go": "To {gist} I need to be in the {location}. I go there.",
    "look_around": "I am in the {here}. I look what is here.",
    "open": "I need what is in the {object}. It is closed, so I open it.",
    "focus": "The task says to focus on it, and this is it: {object}.",
    "pick_up": "I need the {object} to {gist}. I pick it up.",
    "put_down": "The {object} should stay here. I put it down.",
    "move": "The {object} must go to the {container}. I move it there.",
    "pour": "I need {substance} in the {container}. I pour it.",
    "mix": "All that is needed is in the {container}. I mix it.",
    "activate": "The {device} is off, and I need it. I activate it.",
    "deactivate": "The {device} is no longer needed. I switch it off.",
    "use": "The {tool} tells me about the {object}. I use it.",
    "connect": "The circuit needs a connection: {terminal} to {terminal_of_another}.",
    **dict.fromkeys(("wait", "wait1"), "This takes time. I wait."),
    **dict.fromkeys(("look_at", "look_in", "read"), "I have to know more before I go on, so I {action}."),
    "unknown": "My task is to {gist}. The next step is: {action}.",
}


def _think(scene: Scene) -> str:
    action, end = scene.next, _find_destination(scene)
    facts = {"gist": _find_gist(scene), "action": scene.action, "here": _find_room(scene), "end": end}
    if action is None:
        return _THOUGHTS["unknown"].format(**facts)
    slots, name = action.arguments, action.name
    if name == "go" and end and end != slots["location"] and scene.knows(end):
        name = "on the way"
    return _THOUGHTS.get(name, "To {gist}, now: {action}.").format(**slots, **facts)


def _list_idle_actions(scene: Scene) -> list[str]:
    return ["inventory", "task", *(["look around"] if scene.at else [])]


def _list_detours(scene: Scene, valid: Sequence[str]) -> list[Detour]:
    """Return a step through each open door of this room, except the planned door, and the step back."""
    here, action = _find_room(scene), scene.next
    doors = _DOOR.findall(scene.last) or (_DOOR.findall(scene.first_observation) if not scene.at else [])
    planned = action.arguments.get("location") if action is not None else None
    return [Detour(f"go to {room}", f"go to {here}") for room in doors if here and room != planned]


TEACHING = Teaching(
    thought=_think,
    moves=_MOVES,
    seeker=lambda task: Finder(task.kind, task.goal) if task.kind in (*FIND, *LIFESPAN) else None,
    idle=_list_idle_actions,
    detours=_list_detours,
    look="look around",
    clock=True,
    per_task=8,
)
