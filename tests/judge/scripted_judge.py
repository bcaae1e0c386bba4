"""A judge of known error rate: it reads the turn from the prompt as any judge does, and errs where a rule says so."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from typing import Any

TURN = re.compile(r"^turn (\d+) (\w+)(?: \(.*\))?: (\".*\")$")


def sections(request: dict[str, Any]) -> dict[str, str]:
    """The texts of the turn to judge, and the goal, unquoted; fails where the prompt is not of that form."""
    lines = request["messages"][-1]["content"].splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("The turn to judge is turn "))
    found = {"goal": json.loads(next(line for line in lines if line.startswith("goal: "))[6:])}
    for line in lines[start + 1 :]:
        match = TURN.match(line)
        assert match, line
        found[match[2]] = json.loads(match[3])
    return found


def verdict(wrong: bool, reason: str = "because", kind: str = "plan") -> str:
    return json.dumps(
        {"reason": reason, "verdict": "wrong" if wrong else "right", "kind": kind if wrong else "none"}
    )


def errs(text: str, rate: float) -> bool:
    """The same for the same text; of many texts a share of `rate`."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") / 2**32 < rate


def judge(is_wrong: Callable[[dict[str, str]], bool], rate: float = 0.0) -> Callable[[dict[str, Any]], str]:
    """Says what `is_wrong` says of the turn, and in a share of `rate` the opposite."""

    def answer(request: dict[str, Any]) -> str:
        if "The turn to judge" not in request["messages"][-1]["content"]:
            return "ok"  # the probes of a client
        turn = sections(request)
        return verdict(is_wrong(turn) != errs(json.dumps(turn), rate))

    return answer
