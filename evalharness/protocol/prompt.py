"""The conversation's fixed part: system text, instruction, worked example, goal and first observation."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from string import Formatter
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, PrivateAttr, ValidationError

from envs.base import MAX_TURNS, EnvSpec
from evalharness.errors import UserError
from evalharness.paths import prompts_folder
from evalharness.protocol.surface import ActionSurface
from evalharness.yaml_lines import syntax_problem, value_problems

Message = dict[str, Any]
"""`{"role": "system" | "user" | "assistant" | "tool", "content": ...}`, as the chat completions API takes it."""


_PLACEHOLDER = re.compile(r"\{(\w+)\}")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Step(_Strict):
    thought: str
    action: str
    """In the file in canonical words."""
    observation: str


class Example(_Strict):
    goal: str
    observation: str
    steps: tuple[Step, ...]


class Variant(_Strict):
    """What differs for one kind of task of the family (a PDDL domain, say); what is absent is the file's."""

    system: str | None = None
    instruction: str | None = None
    format_rules: str | None = None
    example: Example | None = None
    actions: tuple[str, ...] | None = None
    """Names of the actions that this kind has, of those the environment registers."""


class PromptFile(_Strict):
    """A file of `prompts/`. Keys are described in `prompts/README.md`."""

    _sha256: str = PrivateAttr("")
    _acts_by_tools: bool = PrivateAttr(False)

    environment: str
    system: str
    instruction: str
    format_rules: str
    example: Example | None = None
    actions: tuple[str, ...] | None = None
    variants: Mapping[str, Variant] = {}

    @classmethod
    def from_bytes(cls, raw: bytes) -> PromptFile:
        """Raises YAMLError, UnicodeDecodeError, ValidationError."""
        prompt = cls.model_validate(yaml.safe_load(raw))
        prompt._sha256 = hashlib.sha256(raw).hexdigest()
        return prompt

    @property
    def sha256(self) -> str:
        """Of the file, whichever of its kinds and in whatever words; '' where it comes from no file."""
        return self._sha256

    def for_tools(self, format_rules: str) -> PromptFile:
        """With other rules, where it has any, and an example that acts by tool calls."""
        prompt = self.model_copy(update={"format_rules": format_rules if self.format_rules.strip() else ""})
        prompt._acts_by_tools = True
        return prompt

    def action_names(self) -> set[str]:
        """Every action name that the file mentions by its key."""
        listed = [self.actions, *(variant.actions for variant in self.variants.values())]
        return {name for names in listed for name in names or ()}

    def for_kind(self, kind: str) -> PromptFile:
        """The prompt of one kind of task, variants applied."""
        variant = self.variants.get(kind)
        if variant is None:
            return self
        return self.model_copy(update=variant.model_dump(exclude_none=True) | _example_of(variant))

    def instruction_text(self, surface: ActionSurface, max_turns: int = MAX_TURNS) -> str:
        """The instruction with its placeholders filled in."""
        text = self.instruction.replace("{max_turns}", str(max_turns))
        return text.replace("{actions}", surface.listing(list(self.actions or ()))).strip()

    def messages(
        self, surface: ActionSurface, goal: str, observation: str, *, max_turns: int = MAX_TURNS
    ) -> list[Message]:
        """System and first user message; `surface` words the list of actions."""
        parts = [self.instruction_text(surface, max_turns), self.format_rules.strip()]
        if self.example is not None:
            lines = [f"Goal: {self.example.goal}", f"Observation: {self.example.observation}"]
            for step in self.example.steps:
                lines += [
                    f"Thought: {step.thought}",
                    f'act(command="{step.action}")' if self._acts_by_tools else f"Action: {step.action}",
                    f"Observation: {step.observation}",
                ]
            parts.append("Here is an example.\n" + "\n".join(lines))
        parts.append(f"Now it is your turn.\nGoal: {goal}\nObservation: {observation}")
        return [
            {"role": "system", "content": self.system.strip()},
            {"role": "user", "content": "\n\n".join(part for part in parts if part)},
        ]

    def wrong_placeholders(self, slots: Collection[str]) -> list[str]:
        """What is wrong about the placeholders in braces, a phrase each. `slots` are those of the action templates,
        which prose may mention."""
        found = []
        for place, text in self._texts():
            known = {"actions", "max_turns"} if place.endswith("instruction") else set()
            names = set(_PLACEHOLDER.findall(text))
            found += [
                f"{{{name}}} in {place} stands for nothing" for name in sorted(names - known - set(slots))
            ]
            if known and "actions" not in names:
                found.append(f"{place} lacks {{actions}}, which stands for the list of actions")
        return found

    def _texts(self) -> Iterator[tuple[str, str]]:
        """(where it stands, text) for all prose, that of the variants included."""
        parts: list[tuple[str, PromptFile | Variant]] = [("", self)]
        parts += [(f"variants.{kind}.", variant) for kind, variant in self.variants.items()]
        for where, part in parts:
            for name in ("system", "instruction", "format_rules"):
                if (text := getattr(part, name)) is not None:
                    yield where + name, text


def _example_of(variant: Variant) -> dict[str, Example]:
    return {} if variant.example is None else {"example": variant.example}


def load_prompts(specs: Sequence[EnvSpec], folder: Path | None = None) -> dict[str, PromptFile]:
    """Family -> prompt file, of all families that are played. In `folder` each must have its own: a file
    that is missing or misnamed would put our prompt in its place, and the scores would not say so."""
    if folder is not None:
        _require_files(folder, [f"{spec.family}.yaml" for spec in specs])
    return {spec.family: load_prompt(spec, folder) for spec in specs}


def _require_files(folder: Path, names: Sequence[str]) -> None:
    try:
        # Listed, not asked for one by one: some file systems would take BabyAI.yaml for babyai.yaml.
        found = sorted(entry.name for entry in folder.iterdir())
    except FileNotFoundError:
        raise UserError(f"--prompts {folder}: no such folder") from None
    except OSError as error:
        raise UserError(f"--prompts {folder}: cannot be read: {error.strerror}") from None
    if missing := [name for name in names if name not in found]:
        shown = ", ".join(map(repr, found[:5])) + (f" and {len(found) - 5} more" if len(found) > 5 else "")
        raise UserError(
            f"--prompts {folder}: no {', '.join(missing)} there; found: {shown or 'nothing'}. Every family that is "
            f"played needs its file: write it, copy ours from {prompts_folder()}, or leave the family out with --tasks"
        )


def load_prompt(spec: EnvSpec, folder: Path | None = None) -> PromptFile:
    """The prompt file of a family.

    `<family>.yaml` in `folder` where that holds one, else the one that the environment brings along, else ours.
    Raises UserError naming the file and what is wrong in it.
    """
    name = f"{spec.family}.yaml"
    path = spec.prompt_file or prompts_folder() / name
    if folder is not None and not folder.is_dir():
        raise UserError(f"--prompts {folder}: no such folder")
    if folder is not None and (folder / name).exists():
        path = folder / name
    raw = b""
    try:
        raw = path.read_bytes()
        prompt = PromptFile.from_bytes(raw)
    except FileNotFoundError:
        raise UserError(f"no prompt file {path}: add one (see prompts/README.md)") from None
    except ValidationError as error:
        raise UserError(f"prompt file {path} is not usable: {value_problems(error, raw)}") from None
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"prompt file {path} is not usable: {syntax_problem(error)}") from None
    if prompt.environment != spec.family:
        raise UserError(f"prompt file {path} is for {prompt.environment!r}, not {spec.family!r}")
    unknown = sorted(prompt.action_names() - set(spec.actions))
    if unknown:
        raise UserError(
            f"prompt file {path} names actions that {spec.title} does not have: {', '.join(unknown)}"
        )
    slots = {
        slot for template in spec.actions.values() for _, slot, _, _ in Formatter().parse(template) if slot
    }
    if wrong := prompt.wrong_placeholders(slots):
        raise UserError(f"prompt file {path} is not usable: {'; '.join(wrong)} (see prompts/README.md)")
    return prompt
