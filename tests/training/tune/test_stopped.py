"""Trainings that are killed or stopped."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from tune_commands import all_weights, command, steps

from evalharness.training.tune.install import TuneInstall
from evalharness.training.tune.training import find_latest_checkpoint

pytestmark = [pytest.mark.vllm, pytest.mark.slow(360)]


def test_a_killed_training_goes_on_from_its_last_checkpoint_to_the_same_weights(
    tuning: TuneInstall, tiny_checkpoint: Path, data: Path, tmp_path: Path
) -> None:
    options = all_weights(tiny_checkpoint, data, "--batch", "2")
    with command(*options, "-o", tmp_path / "whole") as process:
        talk, _ = process.communicate()
        assert process.returncode == 0, talk
    killed = shutil.copytree(tmp_path / "whole", tmp_path / "killed")
    last = find_latest_checkpoint(killed)
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
        assert "(lr 2e-05 there, 0.0001 now)" in process.communicate()[0]
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
