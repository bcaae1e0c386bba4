"""Draw a random wording for each episode of training.

A draw consists of one perturbation of the environment (or none), a known wording for every other action, and an order
of the listed actions. Its name is `random:` and 16 hexadecimal digits, which are the seed of the draw. Evaluations
refuse these names (`perturbation_names.normal_name`).
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from random import Random
from typing import Any

from evalharness.base.errors import UserError
from evalharness.envs.base import EnvSpec, Perturbation
from evalharness.protocol.perturb import PlayedSurface, make_surface
from evalharness.protocol.perturbation_names import RANDOM, normal_name

_NAME = re.compile(rf"{RANDOM}:[0-9a-f]{{16}}")
_ATTEMPTS = 200
"""Maximum number of draws to find a wording in which no two actions can be confused."""


def training_name(name: str | None) -> str | None:
    """Return the perturbation of `--perturb` for training, which may be `random`. Raise UserError for a wrong name."""
    return name if name in (None, RANDOM) else normal_name(name)


def fixed_name(name: str | None) -> str | None:
    """Return the perturbation of all episodes; None if each episode draws its own."""
    return None if name == RANDOM else name


def draw_name(seed: int, episode: str) -> str:
    """Return the name of the draw for this seed and episode."""
    return f"{RANDOM}:{hashlib.sha256(f'{seed}/{episode}'.encode()).hexdigest()[:16]}"


def surface_named(spec: EnvSpec, name: str | None) -> PlayedSurface:
    """Return the surface with the recorded name: plain, perturbed or drawn. Raise UserError for an unknown name."""
    if name is None or not _NAME.fullmatch(name):
        return make_surface(spec, name)
    random = Random(f"words/{spec.family}/{name}")
    for _ in range(_ATTEMPTS):
        surface = PlayedSurface(spec, name, _draw(spec, random))
        if surface.find_confused_action() is None:
            return surface
    raise UserError(f"--perturb random: the wordings of {spec.title} cannot be distinguished")


def words_of(surface: PlayedSurface) -> dict[str, Any] | None:
    """Return the drawn wording for the record; None if no wording was drawn."""
    how = surface.perturbation
    if surface.name is None or not _NAME.fullmatch(surface.name):
        return None
    return {"drawn": how.description, "actions": dict(how.actions), "listed": list(how.listed)}


def _draw(spec: EnvSpec, random: Random) -> Perturbation:
    wording, templates = spec.actions.wording, spec.actions.templates
    known = wording.perturbations
    wholes = [name for name, how in known.items() if how.published] or [
        name for name, how in known.items() if not how.actions and not how.reverse_actions
    ]
    whole = random.choice([None, *wholes])
    how = Perturbation("plain") if whole is None else known[whole]
    actions, prose = dict(how.actions), dict(how.prose)
    for action, template in templates.items():
        if action not in how.actions:
            others = [other for other in known.values() if action in other.actions]
            chosen = random.choice([None, *others])
            if chosen is not None and chosen.actions[action] != template:
                actions[action] = chosen.actions[action]
                prose |= {
                    old: new for old, new in chosen.prose.items() if wording.mentions.get(old) == action
                }
    listed = [name for name in templates if name != spec.actions.help_action]
    random.shuffle(listed)
    listed += [spec.actions.help_action] if spec.actions.help_action else []
    return replace(
        how, description=whole or how.description, actions=actions, prose=prose, reverse_actions=False, listed=listed
    )  # fmt: skip
