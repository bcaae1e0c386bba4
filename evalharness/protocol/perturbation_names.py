"""Find perturbations by name: those of an environment, those from a user's file, and several joined by `+`.

In records, the perturbation in the file `polite.yaml` is called `polite@` with 12 hexadecimal digits, a hash of its
definition. So two definitions never have the same name. The manifest of a run contains the definition.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from string import Formatter
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from evalharness.base.errors import UserError, nearest
from evalharness.base.yaml_lines import load_model
from evalharness.envs import specs
from evalharness.envs.base import EnvSpec, Perturbation

FROM_FILE = "the user's file"
"""Value of `Perturbation.source` if the perturbation comes from a user's file."""
RANDOM = "random"
"""Name for a new random wording in each episode of training (`evalharness.protocol.drawn`)."""
_ENDINGS = (".yaml", ".yml", ".json")
_Text = Annotated[str, StringConstraints(min_length=1, max_length=2000)]
_Template = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class _FileModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True)


class FamilyChanges(_FileModel):
    """The fields of `Perturbation` that a file can set."""

    actions: dict[str, _Template] = Field(default={}, max_length=200)
    """Action name -> new template, with the slots of the original template."""
    prose: dict[_Text, Annotated[str, StringConstraints(max_length=2000)]] = Field(default={}, max_length=200)
    """Text of the prompt -> its replacement."""
    join_numbers: bool = False
    """Remove the space between a name and its number."""
    upper_case: bool = False
    """Write the words of actions in capitals."""
    reverse_actions: bool = False
    """List the actions in the opposite order."""
    reorder_instruction: bool = False
    """Put the format rules first, and bulleted rules in the opposite order."""
    drop_format_rules: bool = False
    """Leave out the format rules."""


class OwnPerturbation(_FileModel):
    """A perturbation of one or more families, from a user's file."""

    description: Annotated[str, StringConstraints(max_length=200)]
    """Description of the changes in one line."""
    families: dict[str, FamilyChanges] = Field(min_length=1, max_length=100)
    """Family -> changes."""

    @property
    def digest(self) -> str:
        content = json.dumps(self.model_dump(exclude_defaults=True), sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:12]


_DEFINITIONS: dict[str, OwnPerturbation] = {}


def is_file(part: str) -> bool:
    return part.endswith(_ENDINGS)


def read_files(name: str) -> tuple[str, dict[str, OwnPerturbation]]:
    """Read the files in a name such as `P1+polite.yaml`. Return the name for records, and name -> definition.

    Raise UserError for a file that is not a valid perturbation."""
    definitions = {}
    parts = []
    for part in map(str.strip, name.split("+")):
        recorded_name = part
        if is_file(part):
            path = Path(part).expanduser()
            definition, _ = load_model(path, OwnPerturbation, f"--perturb {part}")
            for family in sorted(definition.families.keys() - specs().keys()):
                raise UserError(
                    f"--perturb {part}: unknown family {family!r}{nearest(family, sorted(specs()))}"
                )
            stem = re.sub(r"[^A-Za-z0-9_-]+", "-", path.stem)[:40]
            recorded_name = f"{stem}@{definition.digest}"
            definitions[recorded_name] = definition
        parts.append(recorded_name)
    remember(definitions)
    return "+".join(parts), definitions


def remember(definitions: Mapping[str, OwnPerturbation]) -> None:
    """Store definitions, so that `compose` finds them. Raise ValueError if a name lacks the hash of its definition."""
    for name, definition in definitions.items():
        if name.rpartition("@")[2] != definition.digest:
            raise ValueError(f"the perturbation {name} has the hash {definition.digest}")
    _DEFINITIONS.update(definitions)


def _find_from_file(spec: EnvSpec, name: str) -> Perturbation | None:
    """Return a perturbation from a user's file for this environment; None if no stored definition has this name.

    Raise UserError if the definition does not fit the environment."""
    if (definition := _DEFINITIONS.get(name)) is None:
        return None
    if (changes := definition.families.get(spec.family)) is None:
        raise UserError(f"--perturb {name}: it has no changes for {spec.family}")
    templates = spec.actions.templates
    for action, template in changes.actions.items():
        if action not in templates:
            raise UserError(
                f"--perturb {name}: {spec.title} has no action {action}{nearest(action, list(templates))}"
            )
        if _slots(template) != _slots(templates[action]):
            raise UserError(
                f"--perturb {name}: {action}: {template!r} needs the slots of {templates[action]!r}, once each, with "
                "words between them"
            )
    return Perturbation(definition.description, source=FROM_FILE, **dict(changes))


def _slots(template: str) -> list[str] | None:
    """Return the sorted names of a template's slots; None if a slot is repeated, has a format, or touches another."""
    try:
        parts = list(Formatter().parse(template))
    except ValueError:
        return None
    slots = sorted(slot for _, slot, _, _ in parts if slot is not None)
    touching = any(
        slot is not None and at and not before.strip() for at, (before, slot, _, _) in enumerate(parts)
    )
    if touching or len(set(slots)) < len(slots) or any(form or way for _, _, form, way in parts):
        return None
    return slots


def normal_name(name: str) -> str:
    """Sort joined names: `P4+P1` becomes `P1+P4`. Raise UserError for a repeated or empty name, and for `random`."""
    parts = [part.strip() for part in name.split("+")]
    if "" in parts or len(set(parts)) < len(parts):
        raise UserError(f"--perturb {name!r}: join different names with +, as in P1+P4")
    if any(part.partition(":")[0] == RANDOM for part in parts):
        raise UserError(
            f"--perturb {name}: random wordings are only for training (env serve, refine grounded); an evaluation "
            "plays all episodes in the same wording"
        )
    return "+".join(sorted(parts))


def compose(spec: EnvSpec, name: str) -> Perturbation:
    """Return the environment's perturbation with this name, which may be joined from several names (`P1+P4`).

    Raise UserError for an unknown name, and for two perturbations that reword the same action.
    """
    known = spec.actions.wording.perturbations
    whole = Perturbation(description="", source="")
    for part in normal_name(name).split("+"):
        how = known.get(part) or _find_from_file(spec, part)
        if how is None:
            raise UserError(
                f"--perturb {part}: {spec.title} has no such perturbation{nearest(part, list(known))} "
                f"(see: evalharness data perturbations list {spec.family}; your own: --perturb FILE.yaml)"
            )
        whole = _combine(whole, how, name)
    return whole


def _combine(first: Perturbation, second: Perturbation, name: str) -> Perturbation:
    if clash := sorted(first.actions.keys() & second.actions.keys()):
        raise UserError(f"--perturb {name}: two perturbations reword the same action ({', '.join(clash)})")
    return Perturbation(
        description="; ".join(filter(None, (first.description, second.description))),
        actions={**first.actions, **second.actions},
        prose={**first.prose, **second.prose},
        join_numbers=first.join_numbers or second.join_numbers,
        upper_case=first.upper_case or second.upper_case,
        reverse_actions=first.reverse_actions or second.reverse_actions,
        reorder_instruction=first.reorder_instruction or second.reorder_instruction,
        drop_format_rules=first.drop_format_rules or second.drop_format_rules,
        source=" + ".join(dict.fromkeys(filter(None, (first.source, second.source)))),
        recalled=first.recalled or second.recalled,
    )
