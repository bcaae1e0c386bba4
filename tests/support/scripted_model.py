"""A model that writes scripts and trajectories, and makes each mistake once."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

from evalharness.training.synthesis.synthesis_prompts import load_prompts

PROMPTS = load_prompts()
SCRIPT: dict[str, Any] = PROMPTS.script.examples[0].script
TRAJECTORY: list[dict[str, Any]] = PROMPTS.trajectory.example.trajectory
"""29 turns; the player errs in turns 5 (logic) and 11 (parameter)."""
LAST = len(TRAJECTORY) - 1

SCRIPT_MISTAKES = ("none", "JSON", "KEYS", "EXPRESSION")
"""What the first script of a persona gets wrong, by what its text ends with."""
MISTAKES = ("OK", "JSON", "KEYS", "ACTION", "LAST_ERROR", "UNFINISHED", "TOO_FEW", "ends with the player")


def trajectory(**changes: dict[str, Any]) -> list[dict[str, Any]]:
    """The good trajectory with fields of turns changed, `turn_5={"logic_error": False}`; None removes a field."""
    turns = copy.deepcopy(TRAJECTORY)
    for name, fields in changes.items():
        turn = turns[int(name.removeprefix("turn_"))]
        turn |= fields
        for key in [key for key, value in fields.items() if value is None]:
            del turn[key]
    return turns


def reply(turns: list[Any]) -> str:
    return json.dumps({"trajectory": turns})


NO_FLAG = {"logic_error": False, "place_error": False, "parameter_error": False}
BAD_ACTION = {"Action": "fly to the moon"}


def wrong(mistake: str) -> str:
    """A whole trajectory with one mistake."""
    match mistake:
        case "OK":
            return reply(TRAJECTORY)
        case "JSON":
            text = reply(TRAJECTORY)
            return text[: text.index('"turn": 9') + 30]  # turns 0 to 8 are whole
        case "KEYS":
            return reply(trajectory(turn_4={"Observation": None}))
        case "ACTION":
            return reply(trajectory(turn_7=BAD_ACTION))
        case "LAST_ERROR":
            return reply(trajectory(**{f"turn_{LAST}": {"place_error": True}}))
        case "UNFINISHED":
            return reply(trajectory(**{f"turn_{LAST}": {"Observation": "The clock stands there."}}))
        case "TOO_FEW":
            # The bad action of turn 11 is one of the script's now.
            return reply(trajectory(turn_11={"Action": "open writing desk"}, turn_12=NO_FLAG))
        case "ends with the player":
            return reply(TRAJECTORY[:-1])
    raise ValueError(mistake)


def script_for(label: str) -> dict[str, Any]:
    """A good script whose goal names `label`, so that who plays it can tell it from others."""
    return {**SCRIPT, "Goal": f"{SCRIPT['Goal']} <<{label}>>"}


def wrong_script(mistake: str, label: str) -> str:
    script = copy.deepcopy(script_for(label))
    match mistake:
        case "JSON":
            return "I would rather tell you a story about a lighthouse."
        case "KEYS":
            del script["Goal"]
        case "EXPRESSION":
            script["Available Actions"]["open {container}"]["verification code"] = "open (cupboard"
    return json.dumps(script)


def answer(request: dict[str, Any]) -> str:
    """Depends on the conversation alone: a script's first attempt has the mistake that its persona names, a
    trajectory's the one that its script's goal names; asked again, it does as asked."""
    messages = request["messages"]
    first, last = "".join(m["content"] for m in messages[:2]), messages[-1]["content"]
    labels = re.findall(r"<<(.*?)>>", first)
    if not labels:
        return "ok"  # a probe
    label = labels[-1]
    if "write scripts" in messages[0]["content"]:
        mistake = label.split("/")[0]
        return wrong_script(mistake if len(messages) == 2 else "none", label)
    if go_on := re.search(r"Go on with turn (\d+)", last):
        return reply(TRAJECTORY[int(go_on[1]) :])
    return wrong("OK" if "An earlier attempt" in last else label.split("/")[1])


def persona(script_mistake: str, mistake: str) -> str:
    return f"A clock repairer of the kind <<{script_mistake}/{mistake}>>"
