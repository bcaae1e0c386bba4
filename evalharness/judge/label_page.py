"""The page on which a person labels turns: the report's own viewer parts, served on loopback."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from evalharness.judge.draw import DrawnTurn
from evalharness.judge.turn_prompt import EARLIER_TURNS
from evalharness.judge.verdict import Verdict
from evalharness.results.html.document import asset, document

_BODY = """\
<div id="app"><header id="bar"></header><main id="main" tabindex="-1"><p class="loading">Loading …</p></main></div>
<noscript><p>Labelling needs JavaScript, which this page brings along: it loads nothing from elsewhere.</p></noscript>
"""


def _own(name: str) -> str:
    return (files("evalharness.judge") / "assets" / name).read_text(encoding="utf-8")


def label_page(run: str, rater: str) -> str:
    """The whole document; its data comes from the server it came from."""
    script = f"(() => {{\n'use strict';\n{asset('viewer/assets/1-text.js')}\n{_own('label.js')}\n}})();\n"
    style = asset("html/theme.css") + asset("viewer/assets/viewer.css") + _own("label.css")
    title = f"labels of {rater} · {run} · evalharness"
    return "".join(document(title, style, script, _BODY, connect="'self'"))


def turn_data(drawn: DrawnTurn) -> dict[str, Any]:
    """What a person sees of a turn: the same as a judge, whole."""
    episode = drawn.episode
    first = max(0, drawn.number - 1 - EARLIER_TURNS)
    before = episode.turns[first - 1].observation if first else episode.first_observation
    shown = episode.turns[first : drawn.number]
    return {
        "task_id": episode.task_id,
        "sample": episode.sample,
        "family": episode.family,
        "turn": drawn.number,
        "goal": episode.goal,
        "left_out": first,
        "before": before,
        "turns": [
            {
                "turn": turn.turn,
                "thought": turn.thought,
                "action": turn.action,
                "reply": turn.reply if turn.action is None else None,
                "observation": turn.observation,
            }
            for turn in shown
        ],
    }


def label_data(verdict: Verdict | None) -> dict[str, Any] | None:
    if verdict is None:
        return None
    return {"wrong": verdict.wrong, "kind": verdict.kind, "note": verdict.note}
