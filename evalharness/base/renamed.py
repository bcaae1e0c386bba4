"""Options by the names that they do not have here: earlier ones of ours, and those of lm-eval and Inspect."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

EARLIER: Mapping[str, str] = {
    "evaluated": "allow_eval_tasks",
    "family": "tasks",
    "model_key_env": "api_key_env",
    "patience": "after_faults",
    "sample": "draw",
    "samples": "conversations",
    "seeds": "seed",
}
_ELSEWHERE: Mapping[str, str] = {
    "epochs": "samples",
    "log_dir": "output",
    "max_connections": "concurrency",
    "num_fewshot": "shots",
    "output_path": "output",
    "sample_id": "tasks",
    "system_instruction": "system",
}
"""lm-eval 0.4 and Inspect 0.3. Both have `--limit`, `--seed`, `--model`, `--temperature`, as we do."""


def called_here(name: str, known: Collection[str]) -> str | None:
    """The option of `known` that `name` stands for, with its underscores or dashes."""
    here = {**EARLIER, **_ELSEWHERE}.get(name.replace("-", "_"))
    return next((one for one in known if one.replace("-", "_") == here), None)


def with_new_names(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options as a run folder keeps them. An option's name in a manifest is the one that it had at first: identities
    and the names of folders stay."""
    return {("draw" if name == "sample" else name): value for name, value in options.items()}
