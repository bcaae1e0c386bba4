"""Draw a random wording of an environment for each episode of training (`--perturb random`).

A random wording has one of the environment's perturbations or none, a wording of some perturbation for every action
that this one does not change, and a random order of the actions. Its name is `random:` with 16 hexadecimal digits,
which seed the random choices. An evaluation refuses such names (`perturbation_names.normal_name`).
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
"""Maximum number of random wordings that are tried until no two actions have the same wording."""


def training_name(name: str | None) -> str | None:
    """Check the value of `--perturb` for training, and return its normal form. Training also allows `random`."""
    return name if name in (None, RANDOM) else normal_name(name)


def drop_random_name(name: str | None) -> str | None:
    """Return the perturbation of all episodes; None: the original wording, or a random wording for each episode."""
    return None if name == RANDOM else name


def draw_name(seed: int, episode: str) -> str:
    """Return the name of the random wording for this seed and episode."""
    return f"{RANDOM}:{hashlib.sha256(f'{seed}/{episode}'.encode()).hexdigest()[:16]}"


def find_surface(spec: EnvSpec, name: str | None) -> PlayedSurface:
    """Return the wording with this name in an episode's record (None: the original). Raise UserError if unknown."""
    if name is None or not _NAME.fullmatch(name):
        return make_surface(spec, name)
    random = Random(f"words/{spec.family}/{name}")
    for _ in range(_ATTEMPTS):
        surface = PlayedSurface(spec, name, _draw(spec, random))
        if surface.find_confused_action() is None:
            return surface
    raise UserError(f"--perturb random: the wordings of {spec.title} cannot be distinguished")


def words_of(surface: PlayedSurface) -> dict[str, Any] | None:
    """Return the fields of a random wording for the episode's record; None for any other wording."""
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
