"""What a model is asked: `prompts/training/script.yaml` and `trajectory.yaml`, made into messages."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from evalharness.base.errors import UserError
from evalharness.base.paths import prompts_folder
from evalharness.protocol.prompt import Message, read_prompt_file
from evalharness.training.synthesis.script import Script
from evalharness.training.synthesis.trajectory import Turn

_LONGEST_SHOWN = 30_000
"""Characters of a rejected script that the model sees again."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ScriptExample(_Strict):
    persona: str
    script: dict[str, Any]


class ScriptPrompt(_Strict):
    system: str
    instruction: str
    """With `{persona}`."""
    format: str
    correction: str
    """Said after a rejected script, with `{mistakes}`."""
    examples: tuple[ScriptExample, ...]


class TrajectoryExample(_Strict):
    script: int
    """Which example of the script's prompt is played."""
    trajectory: list[dict[str, Any]]


class TrajectoryPrompt(_Strict):
    system: str
    instruction: str
    """With `{script}`, and `{errors}` for one of the next two."""
    errors: str = ""
    no_errors: str = (
        "- The Player makes no error: every Action is right, and no turn of the DM has an error flag."
    )
    """Said instead of `errors` for a set without errors, and at the end of an instruction without `{errors}`."""
    format: str
    again: str
    """Said where nothing is kept, with `{mistakes}`."""
    continuation: str
    """Said after the kept turns, with `{mistakes}`, `{turn}` and `{speaker}`."""
    example: TrajectoryExample


@dataclass(frozen=True)
class SynthesisPrompts:
    script: ScriptPrompt
    trajectory: TrajectoryPrompt
    sha256: dict[str, str]
    """Of each file, by its name."""

    def ask_script(self, persona: str, rejected: str | None, mistakes: Sequence[str]) -> list[Message]:
        """Ask for a script; again with its mistakes where `rejected` is the reply before."""
        prompt = self.script
        shown = "\n\n".join(
            f"Example {number}, for the person: {each.persona}\n{_json(each.script)}"
            for number, each in enumerate(prompt.examples, 1)
        )
        instruction = prompt.instruction.replace("{persona}", persona)
        messages = _opening(prompt.system, prompt.format, shown, instruction)
        if rejected is None:
            return messages
        return [
            *messages,
            {"role": "assistant", "content": rejected[:_LONGEST_SHOWN].strip() or "(no reply)"},
            {"role": "user", "content": prompt.correction.replace("{mistakes}", _listed(mistakes)).strip()},
        ]

    def ask_trajectory(
        self,
        script: Script,
        kept: Sequence[Turn],
        mistakes: Sequence[str],
        rejected: Sequence[Turn] = (),
        *,
        errors: bool = True,
    ) -> list[Message]:
        """Ask for a trajectory, for what follows the kept turns of one, or for another than the `rejected` one.
        `errors`: the player is to err and to correct that."""
        prompt = self.trajectory
        example = prompt.example
        shown = (
            f"Example: the script\n{_json(self.script.examples[example.script].script)}\n\nis played like this:\n"
            + _json({"trajectory": example.trajectory if errors else _without_errors(example.trajectory)})
        )
        instruction = prompt.instruction.replace("{errors}", prompt.errors if errors else prompt.no_errors)
        if not errors and "{errors}" not in prompt.instruction:
            instruction = f"{instruction.rstrip()}\n{prompt.no_errors}"
        instruction = instruction.replace("{script}", _json(script.to_json()))
        if mistakes and not kept and not rejected:
            instruction += "\n" + prompt.again.replace("{mistakes}", "; ".join(mistakes))
        messages = _opening(prompt.system, prompt.format, shown, instruction)
        if not kept and not rejected:
            return messages
        if kept:
            speaker = "Player" if len(kept) % 2 else "DM"
            go_on = prompt.continuation.replace("{turn}", str(len(kept))).replace("{speaker}", speaker)
            go_on = go_on.replace("{mistakes}", _listed(mistakes))
        else:
            go_on = prompt.again.replace("{mistakes}", "; ".join(mistakes))
        said = _json({"trajectory": [turn.to_json() for turn in kept or rejected]})
        return [
            *messages,
            {"role": "assistant", "content": said},
            {"role": "user", "content": go_on.strip()},
        ]


def _without_errors(turns: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The example without the player's errors and the Dungeon Master's answers to them, numbered anew."""
    kept: list[dict[str, Any]] = []
    for turn in turns:
        if any(turn.get(flag) for flag in ("parameter_error", "place_error", "logic_error")):
            kept.pop()
        else:
            kept.append(turn)
    return [{**turn, "turn": number} for number, turn in enumerate(kept)]


def _json(value: Any) -> str:
    """On one line: an indented script has twice the tokens."""
    return json.dumps(value, ensure_ascii=False)


def _listed(mistakes: Sequence[str]) -> str:
    return "\n".join(f"- {mistake}" for mistake in mistakes)


def _opening(system: str, form: str, examples: str, instruction: str) -> list[Message]:
    """What is the same for all comes first, for the server's prefix cache."""
    parts = [form.strip(), examples, instruction.strip()]
    return [
        {"role": "system", "content": system.strip()},
        {"role": "user", "content": "\n\n".join(parts)},
    ]


def load_prompts(folder: Path | None = None) -> SynthesisPrompts:
    """Those of the package, each replaced by the file of the same name in `folder` where there is one.

    Raises UserError naming the file and what is wrong in it.
    """
    ours = prompts_folder() / "training"
    _, script, script_sha = read_prompt_file(ours / "script.yaml", ScriptPrompt, folder)
    _, trajectory, trajectory_sha = read_prompt_file(ours / "trajectory.yaml", TrajectoryPrompt, folder)
    if not 0 <= trajectory.example.script < len(script.examples):
        raise UserError(f"trajectory.yaml: script.yaml has no example {trajectory.example.script}")
    return SynthesisPrompts(script, trajectory, {"script": script_sha, "trajectory": trajectory_sha})
