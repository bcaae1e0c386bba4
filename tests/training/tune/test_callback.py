"""The callbacks in a real Trainer: each checkpoint is played beside the training, one process at a time; the policy
that is served is played while the training waits."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from evalharness.training.tune.install import TuneInstall

pytestmark = [pytest.mark.vllm, pytest.mark.slow]
ROOT = Path(__file__).parents[3]
_HARNESS = """
import json, sys, time
from pathlib import Path
folder = Path(sys.argv[2])
here = Path(__file__).with_name("calls")
with here.open("a") as calls:
    calls.write("begin\\n")
time.sleep(1)
seen = sorted(path.name for path in folder.glob("checkpoint-*"))
with here.open("a") as calls:
    calls.write(json.dumps([sys.argv[1:], seen]) + "\\n")
sys.exit(int(sys.argv[-1]))
"""
_TRAINING = """
import sys
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
from evalharness.rl.clients.callback import EvaluateCheckpoints

model, output, command = sys.argv[1], sys.argv[2], sys.argv[3:-1]
rows = [{"input_ids": [1, 2, 3, 4], "labels": [1, 2, 3, 4]}] * 8
settings = TrainingArguments(
    output, max_steps=3, save_steps=1, per_device_train_batch_size=1, use_cpu=True, report_to="none", logging_steps=9
)
trainer = Trainer(AutoModelForCausalLM.from_pretrained(model), settings, train_dataset=rows)
trainer.add_callback(EvaluateCheckpoints("--subset", sys.argv[-1], command=command))
trainer.train()
print("trained")
"""


def trained(
    tuning: TuneInstall, checkpoint: Path, folder: Path, command: list[str], status: int
) -> subprocess.CompletedProcess[str]:
    script = folder / "train.py"
    script.write_text(_TRAINING)
    words = [tuning.python, script, checkpoint, folder / "output", *command, status]
    done = subprocess.run(
        [*map(str, words)], cwd=folder, env={"PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines()[-1] == "trained"
    return done


def test_every_checkpoint_is_played_by_one_process_at_a_time(
    tuning: TuneInstall, tiny_checkpoint: Path, tmp_path: Path
) -> None:
    (tmp_path / "harness.py").write_text(_HARNESS)
    command = [str(tuning.python), str(tmp_path / "harness.py")]
    trained(tuning, tiny_checkpoint, tmp_path, command, 0)
    lines = (tmp_path / "calls").read_text().splitlines()
    assert lines[::2] == ["begin"] * (len(lines) // 2), "two at the same time"
    words, seen = json.loads(lines[-1])
    assert words == ["checkpoints", str(tmp_path / "output"), "--subset", "0"]
    assert seen == ["checkpoint-1", "checkpoint-2", "checkpoint-3"]


def test_what_goes_wrong_is_said_and_ends_no_training(
    tuning: TuneInstall, tiny_checkpoint: Path, tmp_path: Path
) -> None:
    (tmp_path / "harness.py").write_text(_HARNESS)
    command = [str(tuning.python), str(tmp_path / "harness.py")]
    said = trained(tuning, tiny_checkpoint, tmp_path, command, 2).stderr
    assert "status 2" in said
    said = trained(tuning, tiny_checkpoint, tmp_path, [str(tmp_path / "gone")], 0).stderr
    assert "cannot start" in said
