"""Trains a model on token ids and labels that are made already. Run by the training environment's Python, which has
trl, peft and datasets; needs nothing of this package.

python -I train.py JOB      (or: accelerate launch --config_file FILE train.py JOB)

JOB is a JSON file: `Job` of `evalharness/tune/job.py`. Each line of standard output that begins with `@tune ` holds an
event as JSON; all else is the libraries' own talk. Standard input is open for as long as somebody wants the training:
`stop` on a line of its own ends it after the step, with a checkpoint; its end ends it at once.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parent))  # also under -I

NOT_FINITE = 7
"""Exit status where the loss or a gradient was no number any more."""
REFUSED = 9
"""Exit status where the settings do not fit the number of processes."""
NO_MEMORY = 8
"""Exit status where memory did not suffice, as far as the libraries say so."""
AT_ONCE, AT_ONCE_GPU = 1024, 4096
"""Tokens, padding included, whose intermediate results are in memory at once (or one conversation's, if it is longer),
beside those of a shared beginning. Of SmolLM2-135M with LoRA on all layers a token takes about 2 MB."""
_GROUP = 8
"""Conversations that begin alike side by side, where nothing else is said."""
RECORD = "evalharness_tune.json"
"""Written last into a checkpoint: without it a kill came between."""


def say(event: str, **values: Any) -> None:
    if int(os.environ.get("RANK", "0")) == 0:
        print("@tune " + json.dumps({"event": event, **values}), flush=True)


class NotFiniteError(Exception):
    """The loss or a gradient is no number."""


class _Wish:
    """Whether somebody still wants the training."""

    def __init__(self) -> None:
        self.stop = False

    def listen(self) -> None:
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        for line in sys.stdin:
            if line.strip() == "stop":
                self.stop = True
        os._exit(3)


class _Order:
    """A sampler: every conversation once an epoch, those that begin alike side by side."""

    def __init__(self, families: list[list[int]], lengths: list[int], job: dict[str, Any]) -> None:
        self.families, self.lengths, self.job = families, lengths, job
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self.lengths)

    def __iter__(self) -> Iterator[int]:
        from batches import order  # type: ignore[import-not-found, unused-ignore]

        return iter(order(self.families, self.lengths, self.job["group"], self.job["seed"], self.epoch))


def trainer_class() -> Any:
    """The trainer, defined once its libraries are wanted."""
    import torch  # type: ignore[import-not-found, unused-ignore]
    from losses import add_gradients, plain_loss  # type: ignore[import-not-found, unused-ignore]
    from trl import SFTTrainer  # type: ignore[import-not-found, unused-ignore]

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
            return _Order(self.families, lengths, self.job)

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

    return Trainer


def watcher(job: dict[str, Any], wish: _Wish) -> Any:
    """Says what happens, makes checkpoints whole, and ends the training when nobody wants it."""
    from transformers import TrainerCallback  # type: ignore[import-not-found, unused-ignore]

    class Watcher(TrainerCallback):  # type: ignore[misc, unused-ignore]
        trainer: Any = None

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
            if wish.stop:
                control.should_save = True
                control.should_training_stop = True

        def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            if state.is_world_process_zero:
                folder = Path(args.output_dir, f"checkpoint-{state.global_step}")
                tidy(folder, job)
                write(folder / RECORD, {"step": state.global_step})
                say("saved", step=state.global_step, folder=folder.name)

    return Watcher()


def _summed(trainer: Any, *numbers: int) -> list[int]:
    import torch  # type: ignore[import-not-found, unused-ignore]

    if trainer.accelerator.num_processes == 1:
        return list(numbers)
    own = torch.tensor(numbers, device=trainer.accelerator.device)
    return [int(number) for number in trainer.accelerator.reduce(own, "sum").tolist()]


def write(path: Path, value: Any) -> None:
    """Whole or not at all, and on the disk."""
    part = path.with_name(f".{path.name}.part")
    with part.open("w", encoding="utf-8") as file:
        file.write(json.dumps(value, indent=2) + "\n")
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def tidy(folder: Path, job: dict[str, Any]) -> None:
    """The tokenizer as the base has it: read and written again it can come out another one. An adapter needs none."""
    for name in [*job["tokenizer_files"], "README.md"]:
        (folder / name).unlink(missing_ok=True)
    if job["method"] == "full":
        for name in job["tokenizer_files"]:
            source = Path(job["model"], name)
            if source.is_file():
                (folder / name).write_bytes(source.read_bytes())


def rounded(folder: Path, dtype: str) -> None:
    """The weights of a finished model in the type that the base is stored in: half the bytes of float32, and what
    servers make of them when they load them."""
    import torch  # type: ignore[import-not-found, unused-ignore]
    from safetensors import safe_open  # type: ignore[import-not-found, unused-ignore]
    from safetensors.torch import save_file  # type: ignore[import-not-found, unused-ignore]

    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(str(path), framework="pt") as file:
            said = file.metadata()
            tensors = {
                name: file.get_tensor(name).to(getattr(torch, dtype)).contiguous() for name in file.keys()
            }  # noqa: SIM118
        part = path.with_name(f".{path.name}.part")
        save_file(tensors, str(part), metadata=said)
        part.replace(path)
    config = folder / "config.json"
    if config.is_file():
        write(config, {**json.loads(config.read_text(encoding="utf-8")), "dtype": dtype})


def micro_batch(job: dict[str, Any], processes: int, cuda: bool) -> int:
    """Conversations at a time: the most that divide a process's part of the batch, up to a limit. On one CPU memory
    does not grow with them (`losses.py`), and the more of them begin alike the less is computed."""
    share, rest = divmod(job["batch"], processes)
    if rest or not share or (job["micro_batch"] and share % job["micro_batch"]):
        own = f" of micro-batches of {job['micro_batch']}" if job["micro_batch"] else ""
        say("refused", why=f"a batch of {job['batch']} cannot be divided over {processes} processes{own}")
        sys.exit(REFUSED)
    if job["micro_batch"]:
        return int(job["micro_batch"])
    return divisor(share, _GROUP if job["loss"] == "by conversation" else 4 if cuda else 1)


def divisor(number: int, most: int) -> int:
    """The largest up to `most`."""
    return max(size for size in range(1, most + 1) if number % size == 0)


def choose_loss(job: dict[str, Any], processes: int, cuda: bool) -> None:
    """Fill in `share_prefix` and `loss`: how losses and gradients are computed.

    What goes its own way back (`by conversation`) does so in one process that nobody launched: FSDP and DeepSpeed want
    to see every step of a way back. Elsewhere on a GPU it is TRL's own loss, which there, but not on a CPU, computes
    the logits of trained positions alone.
    """
    alone = processes == 1 and not job["launched"]
    possible = alone and not job["packing"] and not job["gradient_checkpointing"]
    if job["share_prefix"] and not possible:
        say("refused", why="--share-prefix is for one process, without --accelerate-config")
        sys.exit(REFUSED)
    job["share_prefix"] = possible if job["share_prefix"] is None else job["share_prefix"]
    if job["share_prefix"] or (alone and not cuda):
        job["loss"] = "by conversation"
    else:
        job["loss"] = "trl" if cuda else "selected"
    job["at_once"] = AT_ONCE_GPU if cuda else AT_ONCE


def make_trainer(job: dict[str, Any], wish: _Wish) -> Any:
    import pyarrow.parquet  # type: ignore[import-not-found, unused-ignore]
    import torch  # type: ignore[import-not-found, unused-ignore]
    from batches import alike, context_length, packed  # type: ignore[import-not-found, unused-ignore]
    from datasets import Dataset  # type: ignore[import-not-found, unused-ignore]
    from transformers import (  # type: ignore[import-not-found, unused-ignore]
        AutoModelForCausalLM,
        AutoTokenizer,
    )
    from trl import SFTConfig  # type: ignore[import-not-found, unused-ignore]

    cuda = torch.cuda.is_available() and not job["cpu"]
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    if not cuda and job["threads"]:
        torch.set_num_threads(max(1, job["threads"] // processes))
    choose_loss(job, processes, cuda)

    # Of one family side by side: no matter how many processes there are, so that their steps are those of one.
    job["group"] = job["micro_batch"] or divisor(job["batch"], _GROUP)
    job["micro_batch"] = micro_batch(job, processes, cuda)

    table = pyarrow.parquet.read_table(job["data"], columns=["input_ids", "labels"])
    data = Dataset(table)
    families = alike([packed(row["input_ids"][: context_length(row["labels"])]) for row in data])

    bf16 = job["dtype"] == "bfloat16"
    # Weights that are trained are kept in float32: steps of 5e-6 are less than bfloat16 can tell apart.
    kept = torch.bfloat16 if bf16 and job["method"] == "lora" else torch.float32
    model = AutoModelForCausalLM.from_pretrained(job["model"], dtype=kept, local_files_only=True)
    tokenizer = AutoTokenizer.from_pretrained(job["model"], local_files_only=True)
    settings = SFTConfig(
        output_dir=job["out"],
        per_device_train_batch_size=job["micro_batch"],
        gradient_accumulation_steps=max(1, job["batch"] // (job["micro_batch"] * processes)),
        learning_rate=job["lr"],
        lr_scheduler_type=job["schedule"],
        warmup_steps=job["warmup"],
        num_train_epochs=job["epochs"],
        max_steps=job["max_steps"] or -1,
        weight_decay=job["weight_decay"],
        max_grad_norm=job["max_grad_norm"],
        optim="adamw_torch",
        logging_steps=1,
        logging_first_step=True,
        logging_nan_inf_filter=False,
        save_strategy="steps" if job["save_every"] else "epoch",
        save_steps=job["save_every"] or 500,
        save_total_limit=job["keep"] or None,
        report_to=[],
        disable_tqdm=True,
        seed=job["seed"],
        data_seed=job["seed"],
        bf16=bf16,
        use_cpu=not cuda,
        dataloader_pin_memory=cuda,
        gradient_checkpointing=job["gradient_checkpointing"],
        max_length=job["max_length"] if job["packing"] else None,
        packing=job["packing"],
        shuffle_dataset=False,
    )
    lora = None
    if job["method"] == "lora":
        from peft import LoraConfig  # type: ignore[import-not-found, unused-ignore]

        lora = LoraConfig(
            r=job["lora_rank"], lora_alpha=job["lora_alpha"], lora_dropout=job["lora_dropout"],
            target_modules="all-linear", task_type="CAUSAL_LM", bias="none",
        )  # fmt: skip
    watch = watcher(job, wish)
    chosen = trainer_class()
    # Attributes of the class: the trainer asks for them while it is made.
    chosen.job, chosen.families = job, families
    trainer = chosen(
        model=model, args=settings, train_dataset=data, processing_class=tokenizer, peft_config=lora,
        callbacks=[watch],
    )  # fmt: skip
    watch.trainer = trainer
    for module in trainer.model.modules():
        # Under autocast peft turns each input into float32, and autocast turns it back.
        if bf16 and hasattr(module, "cast_input_dtype_enabled"):
            module.cast_input_dtype_enabled = False
    parameters = [(p.numel(), p.requires_grad) for p in trainer.model.parameters()]
    say(
        "ready", parameters=sum(n for n, _ in parameters), trained_parameters=sum(n for n, t in parameters if t),
        families=len(families), share_prefix=job["share_prefix"], micro_batch=job["micro_batch"], loss=job["loss"],
        device="cuda" if cuda else "cpu",
        processes=processes, threads=torch.get_num_threads(), rows=len(trainer.train_dataset),
    )  # fmt: skip
    return trainer


def main(path: Path) -> int:
    job = json.loads(path.read_text(encoding="utf-8"))
    wish = _Wish()
    if job.get("listen", True):
        wish.listen()
    say("loading")
    trainer = make_trainer(job, wish)
    try:
        trainer.train(resume_from_checkpoint=job["resume"])
    except NotFiniteError as what:
        say("not finite", what=str(what), step=trainer.state.global_step)
        return NOT_FINITE
    except (MemoryError, RuntimeError) as error:
        text = str(error).lower()
        if isinstance(error, MemoryError) or "out of memory" in text or "can't allocate memory" in text:
            say("no memory", what=str(error)[:300])
            return NO_MEMORY
        raise
    if trainer.state.global_step >= trainer.state.max_steps:
        trainer.save_model(job["out"])
        if trainer.accelerator.is_main_process:
            tidy(Path(job["out"]), job)
            rounded(Path(job["out"]), job["stored"])
        say("done", step=trainer.state.global_step)
    else:
        say("stopped", step=trainer.state.global_step)
    return 0


if __name__ == "__main__":
    status = main(Path(sys.argv[1]))
    sys.stdout.flush()
    # Threads of the libraries, and ours that waits for a line, would hold the process up.
    os._exit(status)
