"""Write the thoughts of trajectories from templates, the goal, the plan and the last observation."""

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
    text: str
    clean: str = ""
    """On the first right turn after errors: the thought without the sentence about the error. Otherwise empty."""


def list_later_names(scene: Scene, own: str) -> list[str]:
    """Return names that the player cannot know yet: names in later actions, and numbered things in later
    observations."""
    names: dict[str, None] = {}
    for step in scene.steps[scene.at + 1 :]:
        parsed = scene.parse(step.action)
        names.update(dict.fromkeys(parsed.arguments.values() if parsed else [step.action]))
    for step in scene.steps[scene.at :]:
        names.update(dict.fromkeys(NUMBERED.findall(step.observation.lower())))
    known = f"{scene.seen}\n{own.lower()}"
    return [name for name in names if len(name) > 1 and not mentions(known, name)]


def names_unseen(text: str, scene: Scene, own: str) -> bool:
    """Return whether a thought uses a name that the player cannot know yet. Names in `own`, the action after the
    thought, are allowed."""
    return any(mentions(text, name) for name in list_later_names(scene, own))


def _select_sayable(texts: Sequence[str], scene: Scene, own: str) -> list[str]:
    """Return the texts that use only known names, and with which the reply can still be parsed."""
    return [
        text
        for text in texts
        if "\n" not in text
        and not names_unseen(text, scene, own)
        and react.parse(f"Thought: {text}\nAction: {own}").action is not None
    ]


def write_base_thought(scene: Scene, world: Teaching) -> str:
    """Return the thought for the scene's next action. If it uses a name that is not known yet, return a plain
    thought."""
    text = scene.steps[scene.at].thought or world.thought(scene)
    return text if _select_sayable([text], scene, scene.action) else plain_thought(scene)


def _choose_reason(injected: InjectedError, scene: Scene, rng: Random) -> str:
    return rng.choice(_select_sayable(injected.why, scene, scene.action) or ["That did not help."])


def write_thoughts(turns: Sequence[DraftedTurn], world: Teaching, rng: Random) -> Iterator[Thought]:
    """Yield a thought for each turn, in the environment's original (unperturbed) wording."""
    errors_before = 0
    for turn in turns:
        scene, injected = turn.scene, turn.injected
        if injected is not None:
            own = _select_sayable(injected.thoughts, scene, injected.action) if injected.thoughts else []
            text = rng.choice(own) if own else write_base_thought(scene, world)
            yield Thought((rng.choice(_AGAIN) if errors_before else "") + text)
            errors_before += 1
            continue
        errors_before = 0
        if turn.takes_back:
            yield Thought(_choose_reason(turn.after[-1], scene, rng))
            continue
        base = write_base_thought(scene, world)
        if turn.after:
            yield Thought(f"{_choose_reason(turn.after[-1], scene, rng)} {base}", clean=base)
        else:
            yield Thought(base)
