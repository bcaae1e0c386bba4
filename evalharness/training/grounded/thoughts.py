"""Thoughts by rule: from plan, goal and what was seen last. A correction's thought says what was wrong. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from evalharness.protocol import react
from evalharness.training.grounded.draft import DraftedTurn
from evalharness.training.grounded.injected_errors import InjectedError
from evalharness.training.teachers.scene import Scene, mentions
from evalharness.training.teachers.teaching import Teaching, plain_thought

NUMBERED = re.compile(r"\b[a-z]+ \d+\b")
_AGAIN = ("That did not work either. ", "Still not right. ", "")


@dataclass(frozen=True)
class Thought:
    """What is said before an action."""

    text: str
    clean: str = ""
    """The same without what was wrong before; for the first right turn after errors."""


def later_names(scene: Scene, own: str) -> list[str]:
    """Names that only later turns bring: in actions still to come, numbered things in answers still to come."""
    found: dict[str, None] = {}
    for step in scene.steps[scene.at + 1 :]:
        parsed = scene.parse(step.action)
        found.update(dict.fromkeys(parsed.arguments.values() if parsed else [step.action]))
    for step in scene.steps[scene.at :]:
        found.update(dict.fromkeys(NUMBERED.findall(step.observation.lower())))
    known = f"{scene.seen}\n{own.lower()}"
    return [name for name in found if len(name) > 1 and not mentions(known, name)]


def foretells(text: str, scene: Scene, own: str) -> bool:
    """Whether a thought names what nobody can know yet: an object or action of a later turn that was not seen.

    `own` is the action that the thought leads to; what it names may be named.
    """
    return any(mentions(text, name) for name in later_names(scene, own))


def _sayable(texts: Sequence[str], scene: Scene, own: str) -> list[str]:
    """Those of `texts` that name no future and leave the form of a reply whole."""
    return [
        text
        for text in texts
        if "\n" not in text
        and not foretells(text, scene, own)
        and react.parse(f"Thought: {text}\nAction: {own}").action is not None
    ]


def base_thought(scene: Scene, world: Teaching) -> str:
    """The thought that leads to the scene's next action; a plain one where it would give something away."""
    text = scene.steps[scene.at].thought or world.thought(scene)
    return text if _sayable([text], scene, scene.action) else plain_thought(scene)


def _why(injected: InjectedError, scene: Scene, rng: Random) -> str:
    return rng.choice(_sayable(injected.why, scene, scene.action) or ["That did not help."])


def thoughts(turns: Sequence[DraftedTurn], world: Teaching, rng: Random) -> Iterator[Thought]:
    """A thought for each turn, in the world's own words."""
    errors_before = 0
    for turn in turns:
        scene, injected = turn.scene, turn.injected
        if injected is not None:
            own = _sayable(injected.thoughts, scene, injected.action) if injected.thoughts else []
            text = rng.choice(own) if own else base_thought(scene, world)
            yield Thought((rng.choice(_AGAIN) if errors_before else "") + text)
            errors_before += 1
            continue
        errors_before = 0
        if turn.takes_back:
            yield Thought(_why(turn.after[-1], scene, rng))
            continue
        base = base_thought(scene, world)
        if turn.after:
            yield Thought(f"{_why(turn.after[-1], scene, rng)} {base}", clean=base)
        else:
            yield Thought(base)
