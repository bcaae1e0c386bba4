"""The trainer, the order of its data, and what it says while it works.

Run by the training environment's Python; needs nothing of this package.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch  # type: ignore[import-not-found, unused-ignore]
from batches import order  # type: ignore[import-not-found, unused-ignore]
from events import NotFiniteError, Wish, say  # type: ignore[import-not-found, unused-ignore]
from losses import add_gradients, plain_loss  # type: ignore[import-not-found, unused-ignore]
from saving import RECORD, tidy, write  # type: ignore[import-not-found, unused-ignore]
from transformers import TrainerCallback  # type: ignore[import-not-found, unused-ignore]
from trl import SFTTrainer  # type: ignore[import-not-found, unused-ignore]


class Order:
    """A sampler: every conversation once an epoch, in batches drawn at random."""

    def __init__(self, families: list[list[int]], lengths: list[int], job: dict[str, Any]) -> None:
        self.families, self.lengths, self.job = families, lengths, job
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self.lengths)

    def __iter__(self) -> Iterator[int]:
        return iter(order(self.families, self.lengths, self.job["batch"], self.job["seed"], self.epoch))


class Trainer(SFTTrainer):  # type: ignore[misc, unused-ignore]
    """SFTTrainer with our order, and on a CPU with our loss: there TRL's computes the logits of every position."""

    job: dict[str, Any]
    families: list[list[int]]
    tokens = 0
    trained_tokens = 0

    def create_model_card(self, *args: Any, **kwargs: Any) -> None:
        """None: the manifest says more."""

    def _get_train_sampler(self, train_dataset: Any = None) -> Any:
        if self.job["packing"]:
            return super()._get_train_sampler(train_dataset)
        lengths = [len(ids) for ids in self.train_dataset["input_ids"]]
        return Order(self.families, lengths, self.job)

    def training_step(self, model: Any, inputs: Any, num_items_in_batch: Any = None) -> Any:
        """On one CPU: conversation by conversation, each with its own way back."""
        lengths = inputs["attention_mask"].sum(1).tolist() if "attention_mask" in inputs else None
        self.tokens += int(inputs["input_ids"].numel() if lengths is None else sum(lengths))
        trained = int((inputs["labels"][..., 1:] != -100).sum())
        self.trained_tokens += trained
        if lengths is None or not self.by_conversation:
            return super().training_step(model, inputs, num_items_in_batch)
        model.train()
        inputs = self._prepare_inputs(inputs)
        count = max(1, int(trained if num_items_in_batch is None else num_items_in_batch))
        arguments = (model, self.output_layer(model), inputs["input_ids"], inputs["labels"], lengths)
        loss = add_gradients(
            *arguments, scale=1 / count, share=self.job["share_prefix"], at_once=self.job["at_once"],
            check=self.require_finite,
        )  # fmt: skip
        return torch.tensor(loss, device=self.args.device)

    @property
    def by_conversation(self) -> bool:
        return bool(self.job["loss"] == "by conversation" and not self.aux_loss_enabled)

    def output_layer(self, model: Any) -> Any:
        return self.accelerator.unwrap_model(model).get_output_embeddings()

    @staticmethod
    def require_finite(loss: Any) -> None:
        if not torch.isfinite(loss):
            raise NotFiniteError("the loss")

    def compute_loss(
        self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        if self.job["loss"] == "trl" or self.aux_loss_enabled or return_outputs:
            answer = super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
            self.require_finite((answer[0] if return_outputs else answer).detach())
            return answer
        labels = inputs["labels"]
        # Packed: positions say where a conversation begins.
        given = {"position_ids": inputs["position_ids"]} if "position_ids" in inputs else {}
        total = plain_loss(model, self.output_layer(model), inputs["input_ids"], labels, **given)
        count = (labels[..., 1:] != -100).sum() if num_items_in_batch is None else num_items_in_batch
        loss = total / torch.as_tensor(count, device=total.device).clamp(min=1)
        self.require_finite(loss.detach())
        # DDP averages over the processes what the count, which is over all of them, has divided already.
        averaged = self.args.average_tokens_across_devices and num_items_in_batch is not None
        return loss * self.accelerator.num_processes if averaged else loss

    def _clip_grad_norm(self, model: Any) -> Any:
        norm = super()._clip_grad_norm(model)
        value = norm.full_tensor() if hasattr(norm, "full_tensor") else norm
        if value is not None and not torch.isfinite(torch.as_tensor(value)).all():
            raise NotFiniteError("a gradient")
        return norm


class Watcher(TrainerCallback):  # type: ignore[misc, unused-ignore]
    """Says what happens, makes checkpoints whole, and ends the training when nobody wants it."""

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
        counts = _summed(self.trainer, self.trainer.tokens, self.trainer.trained_tokens)
        self.trainer.tokens = self.trainer.trained_tokens = 0
        say(
            "step", step=state.global_step, steps=state.max_steps, epoch=round(float(state.epoch or 0), 4),
            loss=float(logs["loss"]), lr=float(logs["learning_rate"]),
            grad_norm=float(logs.get("grad_norm", 0.0)), tokens=counts[0], trained_tokens=counts[1],
            seconds=round(now - self.seconds, 3),
        )  # fmt: skip
        self.seconds = now

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self.wish.stop:
            control.should_save = True
            control.should_training_stop = True

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.is_world_process_zero:
            folder = Path(args.output_dir, f"checkpoint-{state.global_step}")
            tidy(folder, self.job)
            write(folder / RECORD, {"step": state.global_step})
            say("saved", step=state.global_step, folder=folder.name)


def _summed(trainer: Any, *numbers: int) -> list[int]:
    if trainer.accelerator.num_processes == 1:
        return list(numbers)
    own = torch.tensor(numbers, device=trainer.accelerator.device)
    return [int(number) for number in trainer.accelerator.reduce(own, "sum").tolist()]
