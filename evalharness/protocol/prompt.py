"""Write the first messages of a conversation: system message, instruction, worked example, goal, first observation."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Formatter
from typing import Any

from pydantic import BaseModel, ConfigDict, PrivateAttr

from evalharness.base.errors import UserError
from evalharness.base.paths import prompts_folder
from evalharness.base.yaml_lines import M, load_model
from evalharness.envs.base import MAX_TURNS, EnvSpec
from evalharness.envs.surface import ActionSurface
from evalharness.protocol.published import module_of

Message = dict[str, Any]
"""`{"role": "system" | "user" | "assistant" | "tool", "content": ...}`, as in the chat completions API."""

SLOT = re.compile(r"\{(\w+)\}")


def fill_template(template: str, **values: object) -> str:
    """Replace each `{name}` in `template` by its value. Do not replace placeholders inside a value."""
    return SLOT.sub(lambda slot: str(values[slot[1]]) if slot[1] in values else slot[0], template)


@dataclass(frozen=True)
class ImportedTexts:
    """Prompt texts that another group published for one family, imported from its code."""

    texts: Mapping[str, Any]
    sha256: str


class _FileModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ExampleTurn(_FileModel):
    thought: str
    action: str
    """The action in the environment's own words."""
    observation: str


class Example(_FileModel):
    goal: str
    observation: str
    steps: tuple[ExampleTurn, ...]


@dataclass(frozen=True)
class Adaptation:
    """The options of a run that change its prompt files (`system`, `--shots`, `--protocol`)."""

    system: str | None = None
    shots: int | None = None
    """Number of worked examples; None: the examples that the file shows by default."""
    texts: str | None = None
    """Protocol whose imported texts the agent reads, besides the prompt file."""

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Adaptation:
        """Return the adaptation in the configuration that a run's identity contains."""
        protocol = config.get("protocol")
        texts = protocol.get("texts") if isinstance(protocol, Mapping) else None
        return cls(config.get("system"), config.get("shots"), texts)


AS_WRITTEN = Adaptation()


class Variant(_FileModel):
    """Texts for one kind of task, such as a PDDL domain. They replace those of the file; None keeps the file's text."""

    system: str | None = None
    instruction: str | None = None
    format_rules: str | None = None
    example: Example | None = None
    more_examples: tuple[Example, ...] | None = None
    actions: tuple[str, ...] | None = None
    """Names of the actions that are listed for this kind of task."""


class PromptFile(_FileModel):
    """Content of a prompt file. `prompts/README.md` describes its keys."""

    _sha256: str = PrivateAttr("")
    _step: str = PrivateAttr("Thought: {thought}\nAction: {action}")
    """Format of a turn in a worked example."""
    _shots: int | None = PrivateAttr(None)
    _of_protocol: Mapping[str, Any] | None = PrivateAttr(None)

    environment: str
    system: str
    instruction: str
    format_rules: str
    example: Example | None = None
    more_examples: tuple[Example, ...] = ()
    """Further worked examples, for runs with `--shots`."""
    actions: tuple[str, ...] | None = None
    variants: Mapping[str, Variant] = {}

    @property
    def sha256(self) -> str:
        """SHA-256 of the file and of the run's `Adaptation`. It is the same for all kinds of task and perturbations."""
        return self._sha256

    @property
    def texts(self) -> Mapping[str, Any] | None:
        """Prompt texts that are imported from another group's code; None: the agent reads only our prompt file."""
        return self._of_protocol

    def adapt(self, how: Adaptation, texts: ImportedTexts | None = None) -> PromptFile:
        """Return the prompt with a run's changes, which also change the hash. `texts`: those of the run's protocol."""
        if how == AS_WRITTEN:
            return self
        update: dict[str, Any] = {}
        if how.system is not None:
            own = {kind: each.model_copy(update={"system": None}) for kind, each in self.variants.items()}
            update = {"system": how.system, "variants": own}
        prompt = self.model_copy(update=update)
        prompt._shots = how.shots
        of_protocol = [] if texts is None else [how.texts, texts.sha256]
        prompt._of_protocol = None if texts is None else texts.texts
        content = json.dumps([self._sha256, how.system, how.shots, *of_protocol])
        prompt._sha256 = hashlib.sha256(content.encode()).hexdigest()
        return prompt

    def examples(self, kind: str) -> list[Example]:
        """Return all worked examples that fit this kind of task, its own examples first. Examples of other kinds fit if
        these kinds have the same actions."""
        own = self._merge_variant(kind)
        others = [self, *(self._merge_variant(other) for other in self.variants if other != kind)]
        examples: list[Example] = []
        for each in [own, *(other for other in others if other.actions == own.actions)]:
            examples += [
                e for e in (each.example, *each.more_examples) if e is not None and e not in examples
            ]
        return examples

    def fewer_examples(self, kinds: Iterable[str]) -> str | None:
        """Return a warning if one of these kinds has fewer worked examples than `--shots` asks for."""
        has = min(len(self.examples(kind)) for kind in kinds)
        if self._shots is None or has >= self._shots:
            return None
        return f"--shots {self._shots}: {self.environment} has only {has} worked example{'s' * (has != 1)}"

    def for_format(self, format_rules: str, step: str) -> PromptFile:
        """Return the prompt for another reply format. `format_rules` replace the file's rules, if the file has rules.
        `step`: template of a turn in examples, with {thought} and {action}."""
        prompt = self.model_copy(update={"format_rules": format_rules if self.format_rules.strip() else ""})
        prompt._step = step
        return prompt

    def action_names(self) -> set[str]:
        """Return the names of all actions that the file lists."""
        listed = [self.actions, *(variant.actions for variant in self.variants.values())]
        return {name for names in listed for name in names or ()}

    def for_kind(self, kind: str) -> PromptFile:
        """Return the prompt for one kind of task, with the texts of its variant and the run's number of examples."""
        merged = self._merge_variant(kind)
        examples: Sequence[Example | None] = [merged.example]
        if self._shots is not None:
            examples = self.examples(kind)[: self._shots]
        first, more = (examples[0], tuple(examples[1:])) if examples else (None, ())
        if (first, more) == (merged.example, merged.more_examples):
            return merged
        return merged.model_copy(update={"example": first, "more_examples": more})

    def _merge_variant(self, kind: str) -> PromptFile:
        variant = self.variants.get(kind)
        if variant is None:
            return self
        return self.model_copy(update={name: value for name, value in variant if value is not None})

    def instruction_text(self, surface: ActionSurface, max_turns: int = MAX_TURNS) -> str:
        """Return the instruction with its placeholders filled in."""
        text = self.instruction.replace("{max_turns}", str(max_turns))
        return text.replace("{actions}", surface.listing(list(self.actions or ()))).strip()

    def messages(
        self, surface: ActionSurface, goal: str, observation: str, *, max_turns: int = MAX_TURNS
    ) -> list[Message]:
        """Return the system message and the first user message. `surface`: templates for the list of actions."""
        parts = [self.instruction_text(surface, max_turns), self.format_rules.strip()]
        if examples := self.worked_examples():
            if len(examples) == 1:
                parts.append(f"Here is an example.\n{examples[0]}")
            else:
                parts.append(f"Here are {len(examples)} examples.")
                parts += [f"Example {number}.\n{text}" for number, text in enumerate(examples, start=1)]
        parts.append(f"Now it is your turn.\nGoal: {goal}\nObservation: {observation}")
        return [
            {"role": "system", "content": self.system.strip()},
            {"role": "user", "content": "\n\n".join(part for part in parts if part)},
        ]

    def worked_examples(self) -> list[str]:
        return (
            []
            if self.example is None
            else [self._format_example(e) for e in (self.example, *self.more_examples)]
        )

    def _format_example(self, example: Example) -> str:
        lines = [f"Goal: {example.goal}", f"Observation: {example.observation}"]
        for step in example.steps:
            written = self._step.replace("{thought}", step.thought).replace("{action}", step.action)
            lines += [written, f"Observation: {step.observation}"]
        return "\n".join(lines)

    def wrong_placeholders(self, slots: Collection[str]) -> list[str]:
        """Return a phrase about each wrong placeholder. `slots`: names in action templates, which are allowed."""
        problems = []
        for place, text in self._texts():
            known = {"actions", "max_turns"} if place.endswith("instruction") else set()
            names = set(SLOT.findall(text))
            problems += [f"{{{name}}} in {place} is unknown" for name in sorted(names - known - set(slots))]
            if known and "actions" not in names:
                problems.append(f"{place} lacks {{actions}}, the placeholder for the list of actions")
        return problems

    def _texts(self) -> Iterator[tuple[str, str]]:
        """Yield (key, text) of all texts in the file."""
        parts: list[tuple[str, PromptFile | Variant]] = [("", self)]
        parts += [(f"variants.{kind}.", variant) for kind, variant in self.variants.items()]
        for where, part in parts:
            for name in ("system", "instruction", "format_rules"):
                if (text := getattr(part, name)) is not None:
                    yield where + name, text


def load_prompts(
    specs: Sequence[EnvSpec], folder: Path | None = None, adaptation: Adaptation = AS_WRITTEN
) -> dict[str, PromptFile]:
    """Return family -> prompt. Raise UserError if `folder` lacks a family's file: its name may be wrong, and our prompt
    would be used without notice."""
    if folder is not None:
        _require_files(folder, [f"{spec.family}.yaml" for spec in specs])
    return {spec.family: load_prompt(spec, folder, adaptation) for spec in specs}


def _require_files(folder: Path, names: Sequence[str]) -> None:
    try:
        # Compare names exactly: some file systems would also open BabyAI.yaml as babyai.yaml.
        entries = sorted(entry.name for entry in folder.iterdir())
    except FileNotFoundError:
        raise UserError(f"--prompts {folder}: no such folder") from None
    except OSError as error:
        raise UserError(f"--prompts {folder}: cannot be read: {error.strerror}") from None
    if missing := [name for name in names if name not in entries]:
        listed = ", ".join(map(repr, entries[:5])) + (
            f" and {len(entries) - 5} more" if len(entries) > 5 else ""
        )
        raise UserError(
            f"--prompts {folder}: no {', '.join(missing)}; the folder has: {listed or 'nothing'}. Every family of the "
            f"run needs its file: write it, copy ours from {prompts_folder()}, or leave the family out with --tasks"
        )


def prompt_path(spec: EnvSpec) -> Path:
    """Return the path of the prompt file in the environment's package, or else of the file in `prompts/`."""
    return spec.prompt_file or prompts_folder() / f"{spec.family}.yaml"


def read_prompt_file(ours: Path, kind: type[M], folder: Path | None) -> tuple[Path, M, str]:
    """Read the file in `folder` that has the name of `ours`, or else `ours`. Return (path, content, SHA-256). Raise
    UserError with the path and the error if the file is invalid."""
    if folder is not None and not folder.is_dir():
        raise UserError(f"--prompts {folder}: no such folder")
    path = folder / ours.name if folder is not None and (folder / ours.name).exists() else ours
    missing = f"no prompt file {path}: add one (see prompts/README.md)"
    file, raw = load_model(path, kind, f"prompt file {path}", missing)
    return path, file, hashlib.sha256(raw).hexdigest()


def load_prompt(spec: EnvSpec, folder: Path | None = None, adaptation: Adaptation = AS_WRITTEN) -> PromptFile:
    """Load the prompt of a family from `<family>.yaml` in `folder`, or else from `prompt_path`.

    Raise UserError with the path and the error if the file is invalid.
    """
    path, prompt, sha256 = read_prompt_file(prompt_path(spec), PromptFile, folder)
    prompt._sha256 = sha256
    if prompt.environment != spec.family:
        raise UserError(f"prompt file {path} is for {prompt.environment!r}, not {spec.family!r}")
    unknown = sorted(prompt.action_names() - set(spec.actions.templates))
    if unknown:
        raise UserError(
            f"prompt file {path} names actions that {spec.title} does not have: {', '.join(unknown)}"
        )
    slots = {
        slot
        for template in spec.actions.templates.values()
        for _, slot, _, _ in Formatter().parse(template)
        if slot
    }
    if wrong := prompt.wrong_placeholders(slots):
        raise UserError(f"prompt file {path} is not usable: {'; '.join(wrong)} (see prompts/README.md)")
    texts = None if adaptation.texts is None else _texts_of(adaptation.texts, spec.family)
    return prompt.adapt(adaptation, texts)


def _texts_of(protocol: str, family: str) -> ImportedTexts:
    """Return the texts of a protocol for a family. Raise UserError if they were not imported."""
    if (module := module_of(protocol)) is None:
        raise UserError(f"--protocol {protocol}: the package that reads its prompt texts is not installed")
    texts: ImportedTexts = module.read_imported_texts(protocol, family)
    return texts
