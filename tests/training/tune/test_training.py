"""Really training a tiny model: what the collated batches hold, the loss that falls."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from adapters import read_tensors
from tune_commands import steps

from evalharness.base.errors import UserError
from evalharness.cli import main
from evalharness.models.serving.checkpoint import check_checkpoint
from evalharness.models.serving.lora import check_adapter
from evalharness.training.tune.install import TuneInstall
from evalharness.training.tune.plan import TrainingPlan, plan
from evalharness.training.tune.progress import TuningProgress
from evalharness.training.tune.settings import make_settings
from evalharness.training.tune.start import find_start
from evalharness.training.tune.training import TRAINER, find_latest_checkpoint, make_job, train

pytestmark = [pytest.mark.vllm, pytest.mark.slow(180)]

HERE = Path(__file__).parent


def planned(tuning: TuneInstall, model: Path, data: Path, folder: Path, **given: Any) -> TrainingPlan:
    """In float32, so that two ways to compute one thing can be compared."""
    where = {key: given.pop(key) for key in ("save_every",) if key in given}
    settings = make_settings("small", {"batch": 4, "lr": 1e-3, **given})
    folder.mkdir()
    made = plan(
        find_start(str(model), print), [data], folder, settings, tuning, dtype="float32", cpu=True, **where
    )
    assert made is not None
    return made


def job(made: TrainingPlan, **other: Any) -> Path:
    path = made.folder / "job.json"
    path.write_text(json.dumps({**make_job(made, None), "threads": 1, **other}))
    return path


def drive(tuning: TuneInstall, kind: str, *jobs: Path) -> list[Any]:
    words = [tuning.python, "-I", HERE / "drive.py", TRAINER.parent, kind, *jobs]
    # Standard input stays open: its end ends a training.
    with (
        tempfile.TemporaryFile("w+") as talk,
        subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=talk, text=True
        ) as process,
    ):
        assert process.stdout is not None
        answers = [line for line in process.stdout if line.startswith("answer: ")]
        talk.seek(0)
        assert answers, talk.read()[-3000:]
    found: list[Any] = json.loads(answers[0].removeprefix("answer: "))
    return found


def test_a_dry_run_states_tokens_and_steps(
    tuning: TuneInstall, tiny_checkpoint: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = tmp_path / "said.json"
    words = ["--model", str(tiny_checkpoint), "--data", str(data), "--cpu", "--batch", "4", "--epochs", "1"]
    assert main(["tune", "--dry-run", *words, "--json", str(said)]) == 0
    shown = capsys.readouterr().out
    found = json.loads(said.read_text())
    made = planned(tuning, tiny_checkpoint, data, tmp_path / "out", epochs=1.0)
    assert (found["conversations"], found["tokens"]) == (8, made.made.tokens)
    assert f"{made.made.tokens:,} tokens" in shown
    assert f"; {made.steps} steps of 4" in shown


def test_the_collated_batches_train_what_the_data_says(
    tuning: TuneInstall, tiny_checkpoint: Path, data: Path, tmp_path: Path
) -> None:
    apart = planned(tuning, tiny_checkpoint, data, tmp_path / "apart")
    (full,) = drive(tuning, "batches", job(apart))
    wanted = {
        tuple(row["input_ids"]): row["labels"] for row in pyarrow.parquet.read_table(apart.rows).to_pylist()
    }
    found = {}
    for batch in full:
        for ids, labels, mask in zip(
            batch["input_ids"], batch["labels"], batch["attention_mask"], strict=True
        ):
            length = sum(mask)
            found[tuple(ids[:length])] = labels[:length]
            assert set(labels[length:]) <= {-100}
    assert found == wanted


def test_the_loss_of_what_is_trained_falls_and_a_loss_that_is_no_number_stops(
    tuning: TuneInstall, tiny_checkpoint: Path, data: Path, tmp_path: Path
) -> None:
    learns = planned(tuning, tiny_checkpoint, data, tmp_path / "learns", method="full", max_steps=12, lr=5e-3)
    breaks = planned(
        tuning,
        tiny_checkpoint,
        data,
        tmp_path / "breaks",
        max_steps=8,
        lr=1e30,
        max_grad_norm=1e30,
        save_every=1,
    )
    assert drive(tuning, "train", job(learns), job(breaks)) == [0, 7]
    state = json.loads((find_latest_checkpoint(learns.folder) / "trainer_state.json").read_text())  # type: ignore[operator]
    list_losses = [row["loss"] for row in state["log_history"] if "loss" in row]
    assert list_losses[-1] < 0.7 * list_losses[0]
    # Whole, in the base's type, with the base's own tokenizer: what `run --model` takes.
    checkpoint = check_checkpoint(learns.folder)
    assert checkpoint.has_chat_template
    assert checkpoint.weight_bytes == pytest.approx(check_checkpoint(tiny_checkpoint).weight_bytes, rel=0.01)
    assert (learns.folder / "tokenizer.json").read_bytes() == (
        tiny_checkpoint / "tokenizer.json"
    ).read_bytes()
    kept = find_latest_checkpoint(breaks.folder)
    assert kept is None or check_adapter(kept).rank == 16
    assert not (breaks.folder / "adapter_config.json").exists()


def test_an_adapter_is_trained_on_over_the_same_base(
    tuning: TuneInstall, tiny_checkpoint: Path, data: Path, tmp_path: Path
) -> None:
    """With a learning rate that changes nothing the second training ends with the first one's matrices."""
    first = planned(tuning, tiny_checkpoint, data, tmp_path / "first", max_steps=3, warmup=0.5, lora_rank=4)
    assert train(first, TuningProgress(steps=first.steps)) == "done"
    rates = [step["lr"] for step in steps(first.folder)]
    assert all(rate > 0 for rate in rates[:-1])
    assert rates[0] < rates[1]

    start = find_start(str(first.folder), print)
    settings = start.settings({}, make_settings("small", {"batch": 4, "lr": 1e-30, "max_steps": 1}))
    assert (settings.lora_rank, settings.lora_alpha) == (4, 8)
    folder = tmp_path / "second"
    folder.mkdir()
    second = plan(start, [data], folder, settings, tuning, dtype="float32", cpu=True)
    assert second is not None
    assert train(second, TuningProgress(steps=second.steps)) == "done"
    before, after = (read_tensors(f / "adapter_model.safetensors") for f in (first.folder, folder))
    assert before.keys() == after.keys()
    assert all((before[name] == after[name]).all() for name in before)
    chain = json.loads((folder / "manifest.json").read_text())["chain"]
    base, adapter = chain
    assert base["sha256"] == first.base.identity
    assert adapter["sha256"] == start.chain()[-1]["sha256"]
    assert adapter["data_sha256"] == [file["sha256"] for file in first.data]

    with pytest.raises(UserError, match=r"--lora-rank 8: .* 4"):
        start.settings({"lora_rank": 8}, settings)
    with pytest.raises(UserError, match="--method full"):
        start.settings({}, make_settings("small", {"method": "full"}))
