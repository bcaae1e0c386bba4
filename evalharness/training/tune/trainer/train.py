"""Train a model on token ids and labels. This file runs in the training environment, which has trl, peft and datasets,
so it imports nothing of this package.

python -I train.py JOB

JOB is a JSON file: the result of `make_job` in `evalharness/training/tune/training.py`. Lines of standard output that
begin with `@tune ` have an event as JSON; other lines are output of the libraries. A line `stop` on standard input
ends the training after the current step, with a checkpoint. The end of standard input ends the training at once.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parent))  # python -I does not add this folder

from events import (  # type: ignore[import-not-found, unused-ignore]
    NO_MEMORY,
    NOT_FINITE,
    NotFiniteError,
    Wish,
    say,
)
from saving import convert_weights, tidy  # type: ignore[import-not-found, unused-ignore]


def make_trainer(job: dict[str, Any], wish: Wish) -> Any:
    import pyarrow.parquet  # type: ignore[import-not-found, unused-ignore]
    import torch  # type: ignore[import-not-found, unused-ignore]
    from datasets import Dataset  # type: ignore[import-not-found, unused-ignore]
    from following import Trainer, Watcher  # type: ignore[import-not-found, unused-ignore]
    from transformers import (  # type: ignore[import-not-found, unused-ignore]
        AutoModelForCausalLM,
        AutoTokenizer,
    )
    from trl import SFTConfig  # type: ignore[import-not-found, unused-ignore]

    cuda = torch.cuda.is_available() and not job["cpu"]
    if not cuda and job["threads"]:
        torch.set_num_threads(job["threads"])
    # The default is 1, because conversations of a micro-batch are padded: on an H200, four conversations of at most
    # 6,136 tokens took 59 GB instead of the estimated 20.
    at_once = job["micro_batch"] or 1
    data = Dataset(pyarrow.parquet.read_table(job["data"], columns=["input_ids", "labels"]))
    bf16 = job["dtype"] == "bfloat16"
    settings = SFTConfig(
        output_dir=job["out"],
        per_device_train_batch_size=at_once,
        gradient_accumulation_steps=job["batch"] // at_once,
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
        max_length=None,
        shuffle_dataset=False,
    )
    # Keep trained weights in float32, because bfloat16 would round away updates with a learning rate of 5e-6.
    kept = torch.bfloat16 if bf16 and job["method"] == "lora" else torch.float32
    model = AutoModelForCausalLM.from_pretrained(job["model"], dtype=kept, local_files_only=True)
    tokenizer = AutoTokenizer.from_pretrained(job["model"], local_files_only=True)
    ends = [tokenizer.convert_ids_to_tokens(token) for token in job["end_ids"]]
    job["end_token"] = ends[0] if len(ends) == 1 else None
    lora = None
    if job.get("adapter"):
        from peft import PeftModel  # type: ignore[import-not-found, unused-ignore]

        model = PeftModel.from_pretrained(model, job["adapter"], is_trainable=True)
    elif job["method"] == "lora":
        from peft import LoraConfig  # type: ignore[import-not-found, unused-ignore]

        lora = LoraConfig(
            r=job["lora_rank"], lora_alpha=job["lora_alpha"], lora_dropout=job["lora_dropout"],
            target_modules="all-linear", task_type="CAUSAL_LM", bias="none",
        )  # fmt: skip
    watch = Watcher(job, wish)
    # Set `job` on the class, because the trainer's constructor already reads it.
    made = type("Trainer", (Trainer,), {"job": job})
    trainer = made(
        model=model, args=settings, train_dataset=data, processing_class=tokenizer, peft_config=lora,
        callbacks=[watch],
    )  # fmt: skip
    watch.trainer = trainer
    for module in trainer.model.modules():
        # Under autocast, peft would convert each input to float32, and autocast would convert it back to bfloat16.
        if bf16 and hasattr(module, "cast_input_dtype_enabled"):
            module.cast_input_dtype_enabled = False
    parameters = [(p.numel(), p.requires_grad) for p in trainer.model.parameters()]
    say(
        "ready", parameters=sum(n for n, _ in parameters), trained_parameters=sum(n for n, t in parameters if t),
        micro_batch=at_once, device="cuda" if cuda else "cpu", threads=torch.get_num_threads(),
        rows=len(trainer.train_dataset),
    )  # fmt: skip
    return trainer


def main(path: Path) -> int:
    job = json.loads(path.read_text(encoding="utf-8"))
    wish = Wish()
    wish.listen()
    say("loading")
    trainer = make_trainer(job, wish)
    try:
        trainer.train(resume_from_checkpoint=job["resume"])
    except NotFiniteError as what:
        say("not finite", what=str(what), step=trainer.state.global_step)
        return int(NOT_FINITE)
    except (MemoryError, RuntimeError) as error:
        text = str(error).lower()
        if isinstance(error, MemoryError) or "out of memory" in text or "can't allocate memory" in text:
            say("no memory", what=str(error)[:300])
            return int(NO_MEMORY)
        raise
    if trainer.state.global_step >= trainer.state.max_steps:
        trainer.save_model(job["out"])
        tidy(Path(job["out"]), job)
        convert_weights(Path(job["out"]), job["stored"])
        say("done", step=trainer.state.global_step)
    else:
        say("stopped", step=trainer.state.global_step)
    return 0


if __name__ == "__main__":
    status = main(Path(sys.argv[1]))
    sys.stdout.flush()
    # Exit at once: threads of the libraries, and the thread that reads standard input, would keep the process alive.
    os._exit(status)
