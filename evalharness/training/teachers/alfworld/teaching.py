"""Write thoughts for ALFWorld: where a thing may be, what must be done with this thing, and where it belongs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from evalharness.envs.alfworld.open.oracle import kind_in
from evalharness.envs.base import Task
from evalharness.training.teachers.alfworld.searching import Searcher, find_places
from evalharness.training.teachers.scene import Scene, mentions
from evalharness.training.teachers.teaching import Detour, Teaching

_MOVES = frozenset({"go", "open"})
_DOES = {"clean": "cleans", "heat": "heats", "cool": "cools"}
_DONE = {"clean": "cleaned", "heat": "heated", "cool": "cooled"}


def _find_held(scene: Scene) -> str | None:
    held = None
    for step in scene.done:
        action = scene.parse(step.action)
        if action is not None and action.name == "take":
            held = action.arguments["object"]
        elif action is not None and action.name == "put":
            held = None
    return held


def _find_last_place(scene: Scene, name: str) -> str | None:
    """Return the receptacle of the last action with this name: `go` gives the agent's place, `take` the place of the
    last thing taken."""
    for step in reversed(scene.done):
        action = scene.parse(step.action)
        if action is not None and action.name == name:
            return action.arguments["receptacle"]
    return None


def _was_seen_at(scene: Scene, thing: str, place: str) -> bool:
    return any(mentions(s.observation, thing) and mentions(s.observation, place) for s in scene.done)


_THOUGHTS = {
    "open to take": "I look for {kind}, and {place} is closed. I open it.",
    "open to use": "I hold {held} and look for {target}, and {place} is closed. I open it.",
    "open": "I hold {held}, {state}, and {place} is closed. I open it.",
    "take": "I look for {thing}, and it is here. I take it.",
    "treat": "I hold {thing}, {state}, and am at {place}.",
    "put": "I hold {thing}, {state}, and am at {place}. I put it here.",
    "use": "I hold {held} and look for {thing}, and it is here. I switch it on.",
    "treat there": "I hold {held}, {state}, and {place} {does} things. I go there.",
    "bring": "I hold {held}, {state}. I go to {place}.",
    "go back": "I look for {thing}, which I saw at {place}. I go there.",
    "search": "I look for {kind}, and I have seen none yet. It may be at {place}.",
    "go back to use": "I hold {held} and look for {thing}, which I saw at {place}. I go there.",
    "other": "The next step to the goal is: {action}.",
}
"""Case -> template of the thought. In a search, `{kind}` comes before the statement whether such a thing is here: a
small model then looks up this word in the last observation and answers correctly."""


def _think(scene: Scene) -> str:
    kind, target = str(scene.task.payload["object"]), str(scene.task.payload["target"])
    action, held = scene.next, _find_held(scene)
    purpose = scene.ahead(_MOVES)[1]
    facts = {"kind": kind, "target": target, "held": held, "action": scene.action}
    if action is None or purpose is None:
        return _write_thought("other", facts)
    facts["state"] = _describe_state(scene, held, target)
    facts["place"] = action.arguments.get("receptacle")
    facts["thing"] = purpose.arguments.get("object")
    facts["does"], facts["done"] = _DOES.get(purpose.name), _DONE.get(purpose.name)
    match action.name:
        case "go":
            return _explain_walk(scene, purpose.name, facts)
        case "open" if purpose.name == "take" and held is None:
            return _write_thought("open to take", facts)
        case "open" if purpose.name == "use":
            return _write_thought("open to use", facts)
        case "clean" | "heat" | "cool":
            return _write_thought("treat", facts)
        case "open" | "take" | "put" | "use":
            return _write_thought(action.name, facts)
    return _write_thought("other", facts)


def _write_thought(what: str, facts: Mapping[str, str | None]) -> str:
    return _THOUGHTS[what].format(**facts)


def _describe_state(scene: Scene, held: str | None, target: str) -> str:
    """Return a clause about the held thing: `which must be heated`, or `which is heated and belongs in a fridge`."""
    kind = scene.task.kind
    if kind not in _DONE:
        return f"which belongs in a {target}"
    if any(step.action.startswith(f"{kind} {held} ") for step in scene.done):
        return f"which is {_DONE[kind]} and belongs in a {target}"
    return f"which must be {_DONE[kind]}"


def _explain_walk(scene: Scene, purpose: str, facts: Mapping[str, str | None]) -> str:
    kind, target, place, held = (str(facts[what]) for what in ("kind", "target", "place", "held"))
    here, seen = _find_last_place(scene, "go"), _was_seen_at(scene, str(facts["thing"]), place)
    if purpose == "take" and facts["held"] is None:
        if seen:
            return _write_thought("go back", facts)
        if here is not None and _saw_nothing(scene, kind):
            return f"I look for {kind}, and none is here. {_explain_next_place(scene, here, place, kind)}"
        # The search continues at the place of the last thing taken.
        if last := _find_last_place(scene, "take"):
            onward = _explain_next_place(scene, last, place, kind)
            return f"I look for {kind}, and no other is in sight. I was at {last}. {onward}"
        return _write_thought("search", facts)
    if purpose in _DOES:
        return _write_thought("treat there", facts)
    if purpose != "use":
        return _write_thought("bring", facts)
    if seen:
        return _write_thought("go back to use", facts)
    onward = _explain_next_place(scene, here or place, place, target)
    return f"I hold {held} and look for {target}, and none is here. {onward}"


def _explain_next_place(scene: Scene, here: str, place: str, kind: str) -> str:
    """Return the reason for searching `place` next. If `here` and `place` are neighbours in the first observation,
    quote the observation: models trained without this quote went back and forth between the last two drawers."""
    between = re.search(
        rf"\ban? {re.escape(here)},(?: and)? an? {re.escape(place)}\b", scene.first_observation
    )
    if between:
        return f"The room has {between[0]}, so I look at {place} next."
    places = find_places(scene.first_observation)
    if here in places and place in places and places.index(here) < places.index(place):
        return f"Further on in the room is {place}, where a {kind} may be."
    return f"After {here} no place is left where a {kind} may be. I begin again at {place}."


def _saw_nothing(scene: Scene, kind: str) -> bool:
    """Return whether the last step went to a place, or opened it, and no thing of this kind was there."""
    if not scene.at:
        return False
    action = scene.parse(scene.done[-1].action)
    return action is not None and action.name in _MOVES and not _mentions_kind(scene.last, kind)


def _mentions_kind(text: str, kind: str) -> bool:
    return re.search(rf"\b{re.escape(kind)} \d", text) is not None


def _list_idle_actions(scene: Scene) -> list[str]:
    here = _find_last_place(scene, "go")
    return ["look", "inventory", *([f"examine {here}"] if here else [])]


def _list_detours(scene: Scene, valid: Sequence[str]) -> list[Detour]:
    """Return useless actions that can be undone: go to another place, take a thing, put the held thing down, or close a
    place."""
    detours = []
    action, here, held = scene.next, _find_last_place(scene, "go"), _find_held(scene)
    if action is not None and action.name == "go":
        places = sorted(set(find_places(scene.first_observation)))
        wanted, kind = action.arguments["receptacle"], str(scene.task.payload["object"])
        if held is not None:  # a place of the target's kind would be no error
            places = [place for place in places if kind_in(place) != kind_in(wanted)]
        unless = kind if held is None else ""
        detours += [Detour(f"go to {place}", None, unless) for place in places if place not in (wanted, here)]
    for text in valid:
        parsed = scene.parse(text)
        if parsed is None or here is None:
            continue
        if parsed.name == "put" and parsed.arguments["object"] == held:
            detours.append(Detour(text, f"take {held} from {parsed.arguments['receptacle']}"))
        if parsed.name == "take" and held is None and text != scene.action:
            detours.append(
                Detour(text, f"put {parsed.arguments['object']} in/on {parsed.arguments['receptacle']}")
            )
        if parsed.name == "close":
            detours.append(Detour(text, f"open {parsed.arguments['receptacle']}"))
    return detours


def _make_seeker(task: Task) -> Searcher:
    return Searcher(task.kind, str(task.payload["object"]), str(task.payload["target"]))


TEACHING = Teaching(
    thought=_think,
    moves=_MOVES,
    idle=_list_idle_actions,
    detours=_list_detours,
    seeker=_make_seeker,
    lists_valid=True,
    per_task=2,
)
