"""The trainers' own packages read the exports, and train the turns that we say.

Each is laid over the training environment without its dependencies (megabytes instead of gigabytes): its code that
makes labels is the real one. What a template adds around a turn (`<|im_start|>assistant`, the line's end after
`<|im_end|>`) some of them train, too: that is stated here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from refine_conversations import erring_conversation

from evalharness.models.serving.demo import ensure_demo
from evalharness.training.datasets.conversation import write_data
from evalharness.training.datasets.export import export
from evalharness.training.tune.install import TuneInstall

pytestmark = [pytest.mark.vllm, pytest.mark.slow]

SCRIPT = Path(__file__).with_name("trainer_labels.py")
PACKAGES = {
    "axolotl": ("sharegpt", ("axolotl==0.19.0", "colorama==0.4.6", "addict==2.4.0")),
    "ms-swift": (
        "messages",
        ("ms-swift==4.6.0", "modelscope==1.40.2", "modelscope-hub==0.5.1", "json-repair==0.64.6"),
    ),
    "llamafactory": ("llamafactory", ("llamafactory==0.9.5", "omegaconf==2.4.0")),
}
"""Trainer -> our format, and what is laid over the environment."""
ADDED = {"axolotl": (0, 0), "ms-swift": (0, 1), "llamafactory": (4, 1)}
"""Tokens of the template that are trained before and after a turn and its end: none, the line's end, and with
LLaMA-Factory `<|im_start|>assistant` and its line's end, too."""


def overlaid(folder: Path, packages: tuple[str, ...]) -> Path:
    options = ("--quiet", "--no-compile", "--no-deps", "--target", folder)
    argv = [sys.executable, "-m", "pip", "install", *options, *packages]
    done = subprocess.run([*map(str, argv)], capture_output=True, text=True)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [""])[-1][:200]
        pytest.fail(last) if os.environ.get("CI") else pytest.skip(f"not to be installed here: {last}")
    return folder


def labels_of(trainer: str, python: Path, overlay: Path, model: Path, folder: Path) -> list[dict[str, Any]]:
    done = subprocess.run(
        [python, "-I", SCRIPT, trainer, overlay, model, folder], capture_output=True, text=True, cwd=folder
    )
    answers = [line for line in done.stdout.splitlines() if line.startswith("answer: ")]
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line.removeprefix("answer: ")) for line in answers]


def spans(labels: list[int]) -> list[tuple[int, int]]:
    """[begin, end) of each run of trained tokens."""
    found: list[tuple[int, int]] = []
    for at, label in enumerate(labels):
        if label >= 0 and found and found[-1][1] == at:
            found[-1] = (found[-1][0], at + 1)
        elif label >= 0:
            found.append((at, at + 1))
    return found


@pytest.mark.parametrize("trainer", PACKAGES)
def test_the_trainer_trains_the_turns_that_the_export_says(
    trainer: str, tuning: TuneInstall, server_python: Path, tmp_path: Path
) -> None:
    """Token by token: the same ids, and each run of trained ones is ours with what the template adds around a turn."""
    form, packages = PACKAGES[trainer]
    overlay = overlaid(tmp_path / "overlay", packages)
    model = ensure_demo(print, server_python)
    data = tmp_path / "data.jsonl"
    write_data(data, [erring_conversation("a"), erring_conversation("b")], {})
    export([data], form, "full", tmp_path / "out")
    export([data], "tokens", "full", tmp_path / "tokens", model=model, python=server_python)
    ours = pyarrow.parquet.read_table(tmp_path / "tokens" / "train.parquet").to_pylist()
    settings, theirs = [], []
    for answer in labels_of(trainer, tuning.python, overlay, model, tmp_path / "out"):
        (settings if "settings" in answer else theirs).append(answer)
    assert [row["id"] for row in theirs] == [row["id"] for row in ours]
    before, after = ADDED[trainer]
    for own, row in zip(ours, theirs, strict=True):
        ids = row["input_ids"]
        # Some end with the line's end that the template writes after the last turn, which nobody generates.
        assert ids[: len(own["input_ids"])] == own["input_ids"]
        assert len(ids) - len(own["input_ids"]) <= 1
        mine, found = spans(own["labels"]), spans(row["labels"])
        assert len(mine) == len(found) == 3
        for (begin, end), (first, last) in zip(mine, found, strict=True):
            assert (begin - first, last - end) == (before, after), trainer
            assert row["labels"][begin:end] == own["labels"][begin:end]
    if trainer == "axolotl":
        assert {"learning_rate", "num_epochs", "deepspeed"} <= set(settings[0]["settings"])
    if trainer == "llamafactory":
        assert settings[0]["settings"] == [64, 5e-6, 8192, "train.jsonl"]
