"""Extend TRL's trainer: batches in the order of `draw_order`, events on standard output, and complete checkpoints.

This file runs in the training environment, so it imports nothing of this package.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch  # type: ignore[import-not-found, unused-ignore]
from batches import draw_order  # type: ignore[import-not-found, unused-ignore]
from events import NotFiniteError, Wish, say  # type: ignore[import-not-found, unused-ignore]
from saving import RECORD, tidy, write  # type: ignore[import-not-found, unused-ignore]
from transformers import TrainerCallback  # type: ignore[import-not-found, unused-ignore]
from trl import SFTTrainer  # type: ignore[import-not-found, unused-ignore]
from trl.trainer import utils  # type: ignore[import-not-found, unused-ignore]

# Without Triton, TRL 1.16 computes logits for all positions, also for the four of five without a label: it avoids
# varying shapes, for which some devices compile again. A CPU does not, so let TRL select the positions with a label.
_has_triton = utils._use_triton
utils._use_triton = lambda device: device.type == "cpu" or _has_triton(device)


class BatchSampler:
    """A sampler that yields every conversation once in each epoch, in the order of `draw_order`."""

    def __init__(self, lengths: list[int], job: dict[str, Any]) -> None:
        self.lengths, self.job = lengths, job
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self.lengths)

    def __iter__(self) -> Iterator[int]:
        return iter(draw_order(self.lengths, self.job["batch"], self.job["seed"], self.epoch))


class Trainer(SFTTrainer):  # type: ignore[misc, unused-ignore]
    """SFTTrainer that uses `BatchSampler`, counts tokens, and raises NotFiniteError for a NaN or infinite loss or
    gradient."""

    job: dict[str, Any]
    tokens = 0
    trained_tokens = 0

    def create_model_card(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing: the training's manifest replaces the model card."""

    def _get_train_sampler(self, train_dataset: Any = None) -> Any:
        return BatchSampler([len(ids) for ids in self.train_dataset["input_ids"]], self.job)

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:
        """Return the library's scheduler with a warm-up that does not begin at 0: such a step would train nothing."""
        made = super().create_scheduler(num_training_steps, optimizer)
        rising = self.args.get_warmup_steps(num_training_steps)
        if rising > 0 and hasattr(made, "lr_lambdas"):
            made.lr_lambdas = [_skip_first_step(share, rising) for share in made.lr_lambdas]
            made._last_lr = [
                base * share(made.last_epoch)
                for base, share in zip(made.base_lrs, made.lr_lambdas, strict=True)
            ]
            for group, rate in zip(made.optimizer.param_groups, made._last_lr, strict=True):
                group["lr"] = rate
        return made

    def training_step(self, model: Any, inputs: Any, num_items_in_batch: Any = None) -> Any:
        mask = inputs.get("attention_mask")
        self.tokens += int(inputs["input_ids"].numel() if mask is None else mask.sum())
        self.trained_tokens += int((inputs["labels"][..., 1:] != -100).sum())
        return super().training_step(model, inputs, num_items_in_batch)

    def compute_loss(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        answer = super().compute_loss(model, inputs, *args, **kwargs)
        loss = answer[0] if isinstance(answer, tuple) else answer
        if not torch.isfinite(loss.detach()):
            raise NotFiniteError("the loss")
        return answer

    def _clip_grad_norm(self, model: Any) -> Any:
        norm = super()._clip_grad_norm(model)
        if norm is not None and not torch.isfinite(torch.as_tensor(norm)).all():
            raise NotFiniteError("a gradient")
        return norm


class Watcher(TrainerCallback):  # type: ignore[misc, unused-ignore]
    """Writes events, completes checkpoints, and ends the training after a request to stop."""

    def __init__(self, job: dict[str, Any], wish: Wish) -> None:
        self.job, self.wish = job, wish
        self.trainer: Any = None
        self.seconds = time.monotonic()

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.seconds = time.monotonic()
        say("begin", step=state.global_step, steps=state.max_steps)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        logs = logs or {}
        if "loss" not in logs:
            return
        now = time.monotonic()
        tokens, trained_tokens = self.trainer.tokens, self.trainer.trained_tokens
        self.trainer.tokens = self.trainer.trained_tokens = 0
        say(
            "step", step=state.global_step, steps=state.max_steps, epoch=round(float(state.epoch or 0), 4),
            loss=float(logs["loss"]), lr=float(logs["learning_rate"]),
            grad_norm=float(logs.get("grad_norm", 0.0)), tokens=tokens, trained_tokens=trained_tokens,
            seconds=round(now - self.seconds, 3),
        )  # fmt: skip
        self.seconds = now

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self.wish.stop:
            control.should_save = True
            control.should_training_stop = True

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        folder = Path(args.output_dir, f"checkpoint-{state.global_step}")
        tidy(folder, self.job)
        write(folder / RECORD, {"step": state.global_step})
        say("saved", step=state.global_step, folder=folder.name)


def _skip_first_step(share: Callable[[int], float], rising: int) -> Callable[[int], float]:
    """Return a function from step to the factor of the learning rate: (step + 1) / (rising + 1) in the `rising` steps
    of warm-up, then `share`."""

    def of(step: int) -> float:
        return (step + 1) / (rising + 1) if step < rising else share(step)

    return of
