"""Trainings that are killed, stopped, or shared by several processes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from adapters import read_tensors
from tune_commands import all_weights, command, steps, trained

from evalharness.models.serving.checkpoint import check_checkpoint
from evalharness.models.serving.lora import check_adapter, check_fits, find_base
from evalharness.training.tune.install import TuneInstall
from evalharness.training.tune.training import latest_checkpoint

pytestmark = [pytest.mark.vllm, pytest.mark.slow(360)]

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


def test_a_killed_training_goes_on_from_its_last_checkpoint_to_the_same_weights(
    tuning: TuneInstall, tiny_checkpoint: Path, data: Path, tmp_path: Path
) -> None:
    options = all_weights(tiny_checkpoint, data, "--batch", "2")
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
    options = all_weights(tiny_checkpoint, data, "--batch", "4", "--lr", "1e-3")
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
