"""ScienceWorld: thoughts about what the task asks for, which room is next, what is to be done with which thing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from evalharness.envs.base import Task
from evalharness.envs.scene import Scene
from evalharness.envs.sciworld import place
from evalharness.envs.sciworld.finding import FIND, LIFESPAN, Finder
from evalharness.envs.sciworld.generator import OpenCase
from evalharness.envs.sciworld.kinds import EXAMPLE, PUBLISHED
from evalharness.envs.teaching import Detour, Teaching, digest

_MOVES = frozenset({"go", "look_around"})
_TASK = re.compile(r"Your task is to (.+?)[.\n]")
_DOOR = re.compile(r"A door to the ([\w ]+?) \(that is open\)")


def _gist(scene: Scene) -> str:
    match = _TASK.search(scene.goal + "\n")
    return match[1] if match else "reach the goal"


def _where(scene: Scene) -> str | None:
    for text in (*(step.observation for step in reversed(scene.done)), scene.first_observation):
        if room := place("", text):
            return room
    return None


def _destination(scene: Scene) -> str:
    """The last of the rooms that the plan goes through from here."""
    room = ""
    for text in scene.left:
        action = scene.parse(text)
        if action is None or action.name not in _MOVES:
            break
        room = action.arguments.get("location", room)
    return room


def _thoughts(scene: Scene) -> list[str]:
    action, gist = scene.next, _gist(scene)
    if action is None:
        return [
            f"My task is to {gist}. The next step is: {scene.action}.",
            f"To {gist}, now: {scene.action}.",
        ]
    slots = dict(action.arguments)
    match action.name:
        case "go":
            room, end = slots["location"], _destination(scene)
            if end and end != room and scene.knows(end):
                return [
                    f"I must get to the {end}. The {room} is on the way.",
                    f"To {gist} I need the {end}. I go through the {room}.",
                ]
            return [
                f"To {gist} I need to be in the {room}. I go there.",
                f"What I need for the task should be in the {room}.",
                f"The next place for my task is the {room}.",
            ]
        case "look_around":
            here = _where(scene)
            return [
                f"I am in the {here}. I look what is here.",
                "I have just come here. I look around for what I need.",
            ]
        case "open":
            return [
                f"I need what is in the {slots['object']}. It is closed, so I open it.",
                f"The {slots['object']} must be open first.",
            ]
        case "focus":
            return [
                f"The task says to focus on it, and this is it: {slots['object']}.",
                f"This is what the task asks for. I focus on the {slots['object']}.",
            ]
        case "pick_up":
            return [
                f"I need the {slots['object']} to {gist}. I pick it up.",
                f"Here is the {slots['object']}. I take it along.",
            ]
        case "put_down":
            return [
                f"The {slots['object']} should stay here. I put it down.",
            ]
        case "move":
            return [
                f"The {slots['object']} must go to the {slots['container']}. I move it there.",
                f"To {gist}, the {slots['object']} belongs in the {slots['container']}.",
            ]
        case "pour":
            return [
                f"I need {slots['substance']} in the {slots['container']}. I pour it.",
                f"To {gist}, {slots['substance']} goes into the {slots['container']}.",
            ]
        case "mix":
            return [
                f"All that is needed is in the {slots['container']}. I mix it.",
                f"To {gist} I mix what is in the {slots['container']}.",
            ]
        case "activate":
            return [
                f"The {slots['device']} is off, and I need it. I activate it.",
                f"I switch the {slots['device']} on.",
            ]
        case "deactivate":
            return [
                f"The {slots['device']} is no longer needed. I switch it off.",
            ]
        case "use":
            return [
                f"The {slots['tool']} tells me about the {slots['object']}. I use it.",
                f"To {gist} I use the {slots['tool']} on the {slots['object']}.",
            ]
        case "connect":
            ends = f"{slots['terminal']} to {slots['terminal_of_another']}"
            return [f"The circuit needs a connection: {ends}.", f"To {gist} I connect {ends}."]
        case "wait" | "wait1":
            return [
                "This takes time. I wait.",
                f"The change is not done yet. To {gist} I wait.",
            ]
        case "look_at" | "look_in" | "read":
            return [
                f"I have to know more before I go on, so I {scene.action}.",
            ]
    return [
        f"To {gist}, now: {scene.action}.",
    ]


def _idle(scene: Scene) -> list[str]:
    return ["inventory", "task", *(["look around"] if scene.at else [])]


def _detours(scene: Scene, valid: Sequence[str]) -> list[Detour]:
    """Through another door of this room, and back."""
    here, action = _where(scene), scene.next
    doors = _DOOR.findall(scene.last) or (_DOOR.findall(scene.first_observation) if not scene.at else [])
    planned = action.arguments.get("location") if action is not None else None
    return [Detour(f"go to {room}", f"go to {here}") for room in doors if here and room != planned]


def _forms(task: Task) -> list[str]:
    payload = task.payload
    case = OpenCase(
        str(payload["task"]), int(payload["variation"]), "", task.goal, tuple(payload.get("plan", ())), ()
    )
    return [digest(case.shape()), _variation(case.task, case.variation)]


def _variation(task: str, variation: int) -> str:
    return digest(f"{task}/{variation}")


def _published() -> Iterator[str]:
    for task, variations in PUBLISHED.items():
        yield from (_variation(task, variation) for variation in variations)
    yield from (_variation(task, variation) for task, variation in EXAMPLE)


TEACHING = Teaching(
    thoughts=_thoughts,
    moves=_MOVES,
    seeker=lambda task: Finder(task.kind, task.goal) if task.kind in (*FIND, *LIFESPAN) else None,
    idle=_idle,
    detours=_detours,
    look="look around",
    clock=True,
    forms=_forms,
    published_forms=_published,
    per_task=8,
)
