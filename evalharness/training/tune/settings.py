"""The settings of a training: the defaults, and those of the AgentRefine paper."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from evalharness.base.errors import UserError
from evalharness.models.serving.checkpoint import check_checkpoint
from evalharness.training.datasets.chat_templates import choose_template
from evalharness.training.datasets.modes import Mode

Method = Literal["lora", "full"]
TooLong = Literal["refuse", "drop", "drop-any"]
Schedule = Literal["cosine", "linear", "constant"]


@dataclass(frozen=True)
class Settings:
    """All settings that determine the trained model, apart from base and data."""

    method: Method = "lora"
    mode: Mode = "full"
    """Selects the turns to train on (`datasets/modes.py`)."""
    chat_template: str | None = None
    """Name of a template in `datasets/chat_templates`, or a file. None: use the base model's template."""
    epochs: float = 3.0
    max_steps: int = 0
    """Number of optimizer steps; 0: as many as the epochs need."""
    batch: int = 8
    """Conversations in an optimizer step."""
    micro_batch: int = 0
    """Conversations in one forward pass; 0 means 1."""
    lr: float = 5e-4
    schedule: Schedule = "cosine"
    warmup: float = 0.03
    """Share of the steps over which the learning rate rises."""
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0
    max_length: int = 4096
    """Maximum number of tokens of a conversation; `too_long` says what happens to longer ones."""
    too_long: TooLong = "refuse"
    lora_rank: int = 16
    lora_alpha: int = 32
    lora_dropout: float = 0.0
    gradient_checkpointing: bool = False
    seed: int = 0

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


PAPER: dict[str, Any] = {
    "method": "full",
    "lr": 5e-6,
    "schedule": "cosine",
    "warmup": 0.0,
    "batch": 64,
    "epochs": 10.0,
    "max_length": 8192,
    "micro_batch": 1,
    "gradient_checkpointing": True,
}
"""AgentRefine's appendix B for 7B and 8B models. The last two settings only save memory: the trained model is the
same."""
_OF_FULL: dict[str, Any] = {"lr": 2e-5}
PRESETS: dict[str, dict[str, Any]] = {"small": {}, "paper": PAPER}


def make_settings(preset: str, given: dict[str, Any]) -> Settings:
    """Return the preset's settings, changed by values of `given` that are not None. Raises UserError."""
    chosen = {key: value for key, value in given.items() if value is not None}
    start = dict(PRESETS[preset])
    if chosen.get("method", start.get("method")) == "full":
        start = {**_OF_FULL, **start}
    if "lora_rank" in chosen and "lora_alpha" not in chosen:
        start["lora_alpha"] = 2 * chosen["lora_rank"]
    settings = replace(Settings(), **{**start, **chosen})
    _check(settings)
    return settings


def choose_base_template(settings: Settings, model: Path, preset: str) -> Settings:
    """Return the settings with a chat template, if the preset trains all weights and the base model has no template.
    Choose the template for which the vocabulary was made. Raises UserError if no template fits."""
    base = check_checkpoint(model)
    if (
        PRESETS[preset].get("method") != "full"
        or settings.chat_template is not None
        or base.has_chat_template is not False
    ):
        return settings
    return replace(settings, chat_template=choose_template(base))


def _check(settings: Settings) -> None:
    least = {"epochs": 0, "batch": 1, "lr": 0, "max_length": 8, "lora_rank": 1, "lora_alpha": 1}
    for name, bound in least.items():
        value = getattr(settings, name)
        if not value >= bound or (bound == 0 and not value > 0) or value == float("inf"):
            above = "above 0" if bound == 0 else f"at least {bound}"
            raise UserError(f"--{name.replace('_', '-')} must be {above}, not {value:g}")
    for name in ("warmup", "lora_dropout"):
        if not 0 <= getattr(settings, name) < 1:
            raise UserError(f"--{name.replace('_', '-')} must be a share from 0 to less than 1")
    for name in ("max_steps", "micro_batch", "seed", "weight_decay", "max_grad_norm"):
        if not getattr(settings, name) >= 0:
            raise UserError(f"--{name.replace('_', '-')} must be 0 or more")
    if settings.micro_batch and settings.batch % settings.micro_batch:
        raise UserError(
            f"--batch {settings.batch} must be a multiple of --micro-batch {settings.micro_batch}"
        )
