"""Make requests from the prompt files `prompts/training/script.yaml` and `trajectory.yaml`."""

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
"""Maximum number of characters of a rejected script in the request for a corrected script."""


class _PromptModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ScriptExample(_PromptModel):
    persona: str
    script: dict[str, Any]


class ScriptPrompt(_PromptModel):
    system: str
    instruction: str
    """Must contain `{persona}`, which is replaced by the persona's text."""
    format: str
    correction: str
    """The message after a rejected script; contains `{mistakes}`."""
    examples: tuple[ScriptExample, ...]


class TrajectoryExample(_PromptModel):
    script: int
    """Index of the played script in `ScriptPrompt.examples`."""
    trajectory: list[dict[str, Any]]


class TrajectoryPrompt(_PromptModel):
    system: str
    instruction: str
    """Contains `{script}`, and `{errors}`, which is replaced by the field `errors` or `no_errors`."""
    errors: str = ""
    no_errors: str = (
        "- The Player makes no error: every Action is right, and no turn of the DM has an error flag."
    )
    """Used instead of `errors` for data without errors. Appended to the instruction if that has no `{errors}`."""
    format: str
    again: str
    """The message if no turn is kept; contains `{mistakes}`."""
    continuation: str
    """The message after kept turns; contains `{mistakes}`, `{turn}` and `{speaker}`."""
    example: TrajectoryExample


@dataclass(frozen=True)
class SynthesisPrompts:
    script: ScriptPrompt
    trajectory: TrajectoryPrompt
    sha256: dict[str, str]
    """File name -> hash."""

    def ask_script(self, persona: str, rejected: str | None, mistakes: Sequence[str]) -> list[Message]:
        """Return the request for a script. If `rejected` is given, ask for a correction of this reply."""
        prompt = self.script
        examples = "\n\n".join(
            f"Example {number}, for the person: {each.persona}\n{_to_json(each.script)}"
            for number, each in enumerate(prompt.examples, 1)
        )
        instruction = prompt.instruction.replace("{persona}", persona)
        messages = _write_opening(prompt.system, prompt.format, examples, instruction)
        if rejected is None:
            return messages
        return [
            *messages,
            {"role": "assistant", "content": rejected[:_LONGEST_SHOWN].strip() or "(no reply)"},
            {
                "role": "user",
                "content": prompt.correction.replace("{mistakes}", _write_list(mistakes)).strip(),
            },
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
        """Return the request for a trajectory. Given `kept`, ask for the turns after these; given `rejected`, ask for
        another trajectory. `errors`: whether the player must make errors and correct them."""
        prompt = self.trajectory
        example = prompt.example
        example_text = (
            f"Example: the script\n{_to_json(self.script.examples[example.script].script)}\n\nis played like this:\n"
            + _to_json({"trajectory": example.trajectory if errors else _drop_errors(example.trajectory)})
        )
        instruction = prompt.instruction.replace("{errors}", prompt.errors if errors else prompt.no_errors)
        if not errors and "{errors}" not in prompt.instruction:
            instruction = f"{instruction.rstrip()}\n{prompt.no_errors}"
        instruction = instruction.replace("{script}", _to_json(script.to_json()))
        if mistakes and not kept and not rejected:
            instruction += "\n" + prompt.again.replace("{mistakes}", "; ".join(mistakes))
        messages = _write_opening(prompt.system, prompt.format, example_text, instruction)
        if not kept and not rejected:
            return messages
        if kept:
            speaker = "Player" if len(kept) % 2 else "DM"
            go_on = prompt.continuation.replace("{turn}", str(len(kept))).replace("{speaker}", speaker)
            go_on = go_on.replace("{mistakes}", _write_list(mistakes))
        else:
            go_on = prompt.again.replace("{mistakes}", "; ".join(mistakes))
        trajectory = _to_json({"trajectory": [turn.to_json() for turn in kept or rejected]})
        return [
            *messages,
            {"role": "assistant", "content": trajectory},
            {"role": "user", "content": go_on.strip()},
        ]


def _drop_errors(turns: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the example's turns, renumbered, without the player's errors and the Dungeon Master's answers to these
    errors."""
    right_turns: list[dict[str, Any]] = []
    for turn in turns:
        if any(turn.get(flag) for flag in ("parameter_error", "place_error", "logic_error")):
            right_turns.pop()
        else:
            right_turns.append(turn)
    return [{**turn, "turn": number} for number, turn in enumerate(right_turns)]


def _to_json(value: Any) -> str:
    """Return JSON on one line, because an indented script has twice as many tokens."""
    return json.dumps(value, ensure_ascii=False)


def _write_list(mistakes: Sequence[str]) -> str:
    return "\n".join(f"- {mistake}" for mistake in mistakes)


def _write_opening(system: str, form: str, examples: str, instruction: str) -> list[Message]:
    """Return the first two messages. They begin with the text that all requests share, so that the server's prefix
    cache works."""
    parts = [form.strip(), examples, instruction.strip()]
    return [
        {"role": "system", "content": system.strip()},
        {"role": "user", "content": "\n\n".join(parts)},
    ]


def load_prompts(folder: Path | None = None) -> SynthesisPrompts:
    """Load the prompt files of this package; a file in `folder` replaces the package's file of the same name. Raises
    UserError with the file and the mistake."""
    ours = prompts_folder() / "training"
    _, script, script_sha = read_prompt_file(ours / "script.yaml", ScriptPrompt, folder)
    _, trajectory, trajectory_sha = read_prompt_file(ours / "trajectory.yaml", TrajectoryPrompt, folder)
    if not 0 <= trajectory.example.script < len(script.examples):
        raise UserError(f"trajectory.yaml: script.yaml has no example {trajectory.example.script}")
    return SynthesisPrompts(script, trajectory, {"script": script_sha, "trajectory": trajectory_sha})
