"""Really training a tiny model: what the collated batches hold, the loss that falls, kills, several processes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from adapters import read_tensors
from refine_samples import clean_sample, erring_sample

from evalharness.base.errors import UserError
from evalharness.cli import main
from evalharness.models.serving.checkpoint import check_checkpoint
from evalharness.models.serving.lora import check_adapter, check_fits, find_base
from evalharness.training.datasets.sample import write_samples
from evalharness.training.tune.install import TuneInstall
from evalharness.training.tune.plan import Plan, plan
from evalharness.training.tune.progress import TuningProgress
from evalharness.training.tune.settings import make_settings
from evalharness.training.tune.start import start_of
from evalharness.training.tune.training import TRAINER, job_of, latest_checkpoint, train

pytestmark = [pytest.mark.vllm, pytest.mark.slow(540)]

HERE = Path(__file__).parent
SAMPLES = [*(erring_sample(f"a{n}") for n in range(6)), *(clean_sample(f"c{n}") for n in range(2))]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.jsonl"
    write_samples(path, SAMPLES, {})
    return path


def planned(tuning: TuneInstall, model: Path, data: Path, folder: Path, **given: Any) -> Plan:
    """In float32, so that two ways to compute one thing can be compared."""
    where = {key: given.pop(key) for key in ("save_every",) if key in given}
    settings = make_settings("small", {"batch": 4, "lr": 1e-3, **given})
    folder.mkdir()
    made = plan(
        start_of(str(model), print), [data], folder, settings, tuning, dtype="float32", cpu=True, **where
    )
    assert made is not None
    return made


def job(made: Plan, **other: Any) -> Path:
    path = made.folder / "job.json"
    path.write_text(json.dumps({**job_of(made, None, listen=False), "threads": 1, **other}))
    return path


def drive(tuning: TuneInstall, kind: str, *jobs: Path) -> list[Any]:
    done = subprocess.run(
        [tuning.python, "-I", HERE / "drive.py", TRAINER.parent, kind, *jobs],
        capture_output=True, text=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    answers = [line for line in done.stdout.splitlines() if line.startswith("answer: ")]
    assert answers, done.stderr[-3000:]
    found: list[Any] = json.loads(answers[0].removeprefix("answer: "))
    return found


def steps(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


def test_a_dry_run_states_tokens_steps_and_time(
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
    assert "on this machine as it is now" in shown
    assert found["flop"] > 4 * found["parameters"] * found["tokens"], "forward and backward of a LoRA"
    assert 0 < found["seconds"] < 600


def test_the_collated_batches_train_what_the_data_says(
    tuning: TuneInstall, tiny_checkpoint: Path, data: Path, tmp_path: Path
) -> None:
    """Also where several conversations share a row, and there none sees another."""
    apart = planned(tuning, tiny_checkpoint, data, tmp_path / "apart")
    packed = planned(tuning, tiny_checkpoint, data, tmp_path / "packed", packing=True, max_length=600)
    full, rows = drive(tuning, "batches", job(apart), job(packed))
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

    conversations: dict[tuple[int, ...], list[int]] = {}
    for batch in rows:
        (ids,), (labels,), (positions,) = batch["input_ids"], batch["labels"], batch["position_ids"]
        starts = [place for place, position in enumerate(positions) if position == 0] + [len(ids)]
        for start, stop in pairwise(starts):
            conversations[tuple(ids[start:stop])] = labels[start:stop]
    assert conversations == wanted
    assert any(batch["position_ids"][0].count(0) > 1 for batch in rows)
    assert sum(batch["loss"] for batch in rows) == pytest.approx(
        sum(batch["loss"] for batch in full), rel=1e-4
    )


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
    state = json.loads((latest_checkpoint(learns.folder) / "trainer_state.json").read_text())  # type: ignore[operator]
    losses = [row["loss"] for row in state["log_history"] if "loss" in row]
    assert losses[-1] < 0.7 * losses[0]
    # Whole, in the base's type, with the base's own tokenizer: what `run --model` takes.
    checkpoint = check_checkpoint(learns.folder)
    assert checkpoint.has_chat_template
    assert checkpoint.weight_bytes == pytest.approx(check_checkpoint(tiny_checkpoint).weight_bytes, rel=0.01)
    assert (learns.folder / "tokenizer.json").read_bytes() == (
        tiny_checkpoint / "tokenizer.json"
    ).read_bytes()
    kept = latest_checkpoint(breaks.folder)
    assert kept is None or check_adapter(kept).rank == 16
    assert not (breaks.folder / "adapter_config.json").exists()


def test_a_shared_prompt_gives_the_same_loss_and_lower_layers_stay(
    tuning: TuneInstall, tiny_checkpoint: Path, tmp_path: Path
) -> None:
    data = tmp_path / "long.jsonl"
    instruction = "Act in this world, one action a turn. " * 60
    long = []
    for sample in (erring_sample(f"a{n}") for n in range(8)):
        system, goal, *rest = sample.messages
        long.append(
            replace(sample, messages=(system, replace(goal, content=instruction + goal.content), *rest))
        )
    write_samples(data, long, {})
    own = planned(tuning, tiny_checkpoint, data, tmp_path / "own")
    shared = planned(
        tuning, tiny_checkpoint, data, tmp_path / "shared", shared_prompt=4, top_layers=1, max_steps=4
    )
    apart, together = drive(tuning, "batches", job(own), job(shared))
    assert [batch["input_ids"] for batch in apart] == [batch["input_ids"] for batch in together]
    assert [batch["loss"] for batch in together] == pytest.approx(
        [batch["loss"] for batch in apart], rel=1e-4
    )
    assert drive(tuning, "train", job(shared)) == [0]
    for name, values in read_tensors(shared.folder / "adapter_model.safetensors").items():
        if "lora_B" in name:  # begins at zero
            layer = int(name.partition(".layers.")[2].partition(".")[0])
            assert bool(values.any()) == (layer == 1), name


@contextmanager
def command(*words: str | Path, environment: dict[str, str] | None = None) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "evalharness", "tune", *map(str, words)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, **(environment or {})},
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_a_killed_training_goes_on_from_its_last_checkpoint_to_the_same_weights(
    tuning: TuneInstall, tiny_checkpoint: Path, data: Path, tmp_path: Path
) -> None:
    options = [
        "--model",
        tiny_checkpoint,
        "--data",
        data,
        "--batch",
        "2",
        "--epochs",
        "2",
        "--save-every",
        "2",
        "--cpu",
    ]
    options += ["--dtype", "float32", "--method", "full"]
    with command(*options, "-o", tmp_path / "whole") as process:
        talk, _ = process.communicate()
        assert process.returncode == 0, talk
    killed = shutil.copytree(tmp_path / "whole", tmp_path / "killed")
    last = latest_checkpoint(killed)
    assert last is not None
    assert last.name == "checkpoint-8"
    # As a kill after checkpoint-4 leaves it, in the middle of writing the next one.
    for path in killed.glob("checkpoint-[68]"):
        shutil.rmtree(path)
    shutil.copytree(killed / "checkpoint-4", killed / "checkpoint-6")
    (killed / "checkpoint-6" / "evalharness_tune.json").unlink()
    (killed / "model.safetensors").unlink()
    manifest = json.loads((killed / "manifest.json").read_text())
    (killed / "manifest.json").write_text(json.dumps({**manifest, "status": "started"}))
    with (killed / "log.jsonl").open("a") as file:
        file.write('{"step": 9, "st')
    with command(*options, "-o", killed) as process:
        talk, _ = process.communicate()
        assert process.returncode == 0, talk
    assert [row["step"] for row in steps(killed)] == list(range(1, 9))
    assert [row["loss"] for row in steps(killed)] == [row["loss"] for row in steps(tmp_path / "whole")]
    assert (killed / "model.safetensors").read_bytes() == (
        tmp_path / "whole" / "model.safetensors"
    ).read_bytes()
    with command(*options, "-o", killed, "--lr", "1e-4") as process:
        assert "holds another training (lr 2e-05 there, 0.0001 now)" in process.communicate()[0]
        assert process.returncode == 2


def test_the_training_is_gone_when_its_command_is_killed(
    tuning: TuneInstall, tiny_checkpoint: Path, data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    options = [
        "--model",
        tiny_checkpoint,
        "--data",
        data,
        "--max-steps",
        "100000",
        "--save-every",
        "3",
        "--cpu",
    ]
    with command(*options, "--keep", "2", "-o", out) as process:
        os.set_blocking(process.stdout.fileno(), True)  # type: ignore[union-attr]
        (child,) = trainers(process.pid)
        process.send_signal(signal.SIGKILL)
        process.wait()
        with subprocess.Popen(["tail", f"--pid={child}", "-f", "/dev/null"]) as waiting:
            assert waiting.wait(120) == 0


def trainers(parent: int) -> list[int]:
    """The processes that train, once there are any."""
    import psutil

    while True:
        found = []
        for child in psutil.Process(parent).children():
            with suppress(psutil.Error):  # one that has just ended
                found += [child.pid] if any("train.py" in word for word in child.cmdline()) else []
        if found:
            return found


DDP = """\
compute_environment: LOCAL_MACHINE
distributed_type: MULTI_CPU
num_processes: 2
num_machines: 1
machine_rank: 0
use_cpu: true
mixed_precision: 'no'
main_process_port: 0
"""


def trained(*options: str | Path) -> None:
    with command(*options) as process:
        talk, _ = process.communicate()
        assert process.returncode == 0, talk


def test_two_processes_train_what_one_does(
    tuning: TuneInstall, tiny_checkpoint: Path, data: Path, tmp_path: Path
) -> None:
    """Two CPU processes over gloo, each with a copy of the adapter: the losses of one, within rounding."""
    config = tmp_path / "two.yaml"
    config.write_text(DDP)
    options = ["--model", tiny_checkpoint, "--data", data, "--batch", "4", "--epochs", "2", "--cpu"]
    options += ["--dtype", "float32"]
    trained(*options, "-o", tmp_path / "one")
    trained(*options, "--accelerate-config", config, "-o", tmp_path / "two")
    one, two = (steps(tmp_path / name) for name in ("one", "two"))
    assert [row["step"] for row in one] == [row["step"] for row in two] == [1, 2, 3, 4]
    assert json.loads((tmp_path / "two" / "manifest.json").read_text())["machine"]["processes"] == 2
    # Which conversations are in a step is the same; which of them are side by side is not.
    assert [row["tokens"] for row in one] == [row["tokens"] for row in two]
    assert [row["loss"] for row in two] == pytest.approx([row["loss"] for row in one], rel=1e-4)
    adapters = [read_tensors(tmp_path / name / "adapter_model.safetensors") for name in ("one", "two")]
    for name, values in adapters[0].items():
        assert values == pytest.approx(adapters[1][name], abs=2e-3), name
    adapter = check_adapter(tmp_path / "two")
    assert find_base(adapter) == tiny_checkpoint
    check_fits(adapter, check_checkpoint(tiny_checkpoint))


def test_a_sharded_training_is_that_of_one_process_also_interrupted_and_leaves_a_plain_model(
    tuning: TuneInstall, tiny_checkpoint: Path, data: Path, tmp_path: Path
) -> None:
    """FSDP2, the shipped file, over two CPU processes: weights, gradients and optimiser in two pieces."""
    options = [
        "--model",
        tiny_checkpoint,
        "--data",
        data,
        "--batch",
        "4",
        "--epochs",
        "2",
        "--save-every",
        "2",
    ]
    options += ["--cpu", "--dtype", "float32", "--method", "full", "--lr", "1e-3"]
    sharded = [*options, "--accelerate-config", "fsdp2", "--processes", "2", "--gradient-checkpointing"]
    trained(*options, "-o", tmp_path / "one")
    trained(*sharded, "-o", tmp_path / "whole")
    one, whole = (steps(tmp_path / name) for name in ("one", "whole"))
    assert json.loads((tmp_path / "whole" / "manifest.json").read_text())["machine"]["sharded"]
    assert [row["loss"] for row in whole] == pytest.approx([row["loss"] for row in one], rel=1e-5)
    assert [row["grad_norm"] for row in whole] == pytest.approx([row["grad_norm"] for row in one], rel=1e-4)

    killed = shutil.copytree(tmp_path / "whole", tmp_path / "killed")
    shutil.rmtree(killed / "checkpoint-4")
    (killed / "model.safetensors").unlink()
    manifest = json.loads((killed / "manifest.json").read_text())
    (killed / "manifest.json").write_text(json.dumps({**manifest, "status": "started"}))
    # Each process goes on from its own piece, not from the plain copy, which is in bfloat16.
    assert (killed / "checkpoint-2" / "pytorch_model_fsdp_0" / "__1_0.distcp").is_file()
    with command(*options, "--gradient-checkpointing", "-o", killed) as process:
        assert "continue it with --accelerate-config fsdp2" in process.communicate()[0]
        assert process.returncode == 2
    trained(*sharded, "-o", killed)
    assert [row["loss"] for row in steps(killed)] == [row["loss"] for row in whole]
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "killed")]
    assert weights[0] == weights[1]

    # What `run --model` and `checkpoints` take: the names, shapes and type of the base.
    base = check_checkpoint(tiny_checkpoint)
    for folder in (tmp_path / "whole", tmp_path / "whole" / "checkpoint-2"):
        found = check_checkpoint(folder)
        assert found.architecture == base.architecture
        assert found.weight_bytes == pytest.approx(base.weight_bytes, rel=0.01)


def test_ctrl_c_ends_a_sharded_training_after_the_step_with_a_checkpoint(
    tuning: TuneInstall, tiny_checkpoint: Path, data: Path, tmp_path: Path
) -> None:
    """Although one process alone reads that it shall end."""
    options = ["--model", tiny_checkpoint, "--data", data, "--batch", "4", "--max-steps", "100000", "--cpu"]
    options += [
        "--save-every",
        "100000",
        "--accelerate-config",
        "fsdp2",
        "--processes",
        "2",
        "-o",
        tmp_path / "out",
    ]
    with command(*options) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("step "):
                break
        process.send_signal(signal.SIGINT)
        talk, _ = process.communicate()
    assert process.returncode == 130, talk
    kept = latest_checkpoint(tmp_path / "out")
    assert kept is not None
    assert (kept / "pytorch_model_fsdp_0").is_dir()
    assert check_adapter(kept).rank == 16


def test_an_adapter_is_trained_on_over_the_same_base(
    tuning: TuneInstall, tiny_checkpoint: Path, data: Path, tmp_path: Path
) -> None:
    """With a learning rate that changes nothing the second training ends with the first one's matrices."""
    first = planned(tuning, tiny_checkpoint, data, tmp_path / "first", max_steps=3, warmup=0.5, lora_rank=4)
    assert train(first, TuningProgress(steps=first.steps)) == "done"
    rates = [step["lr"] for step in steps(first.folder)]
    assert all(rate > 0 for rate in rates[:-1])
    assert rates[0] < rates[1]

    start = start_of(str(first.folder), print)
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

    with pytest.raises(UserError, match="--lora-rank 8: the adapter that is trained on has 4"):
        start.settings({"lora_rank": 8}, settings)
    with pytest.raises(UserError, match="--method full trains no adapter: merge first first"):
        start.settings({}, make_settings("small", {"method": "full"}))
