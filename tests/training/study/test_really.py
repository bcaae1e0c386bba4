"""A study that really trains and plays: a tiny random model, killed in the middle."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from command_line import EXAMPLE, command
from refine_conversations import clean_conversation, erring_conversation

from evalharness.cli import main
from evalharness.training.datasets.conversation import write_data
from evalharness.training.tune.install import read_tune_install

pytestmark = [pytest.mark.vllm, pytest.mark.slow(180)]


def test_a_study_that_is_killed_ends_with_its_exhibit(
    tiny_checkpoint: Path, server_python: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two seeds of one size, a mixture of two data sets, and a cell whose base model is not there."""
    install = read_tune_install()
    if install is None or install.server != server_python:
        pytest.skip("no training environment; install it with: evalharness tune install")
    write_data(tmp_path / "agent.jsonl", [*(erring_conversation(f"a{n}") for n in range(6))], {})
    write_data(tmp_path / "general.jsonl", [*(clean_conversation(f"c{n}") for n in range(6))], {})
    (tmp_path / "s.yaml").write_text(
        json.dumps(
            {
                "exhibit": "figure5",
                "axes": {
                    "data_size": 4,
                    "mixing_ratio": 0.5,
                    "base_model": [str(tiny_checkpoint), str(tmp_path / "gone")],
                    "training_seed": [0, 1],
                },
                "data": {"file": "agent.jsonl", "general": "general.jsonl"},
                "tune": {"max_steps": 2, "batch": 2, "cpu": True, "max_length": 2048},
                "run": {"suite": "open", "tasks": "compass", "limit": 2, "max_turns": 2, "max_tokens": 8},
            }
        )
    )
    folder = tmp_path / "study"
    path = os.pathsep.join([str(EXAMPLE), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "COMPASS_FAULTS": str(tmp_path)}
    words = command("study", tmp_path / "s.yaml", "-o", folder)
    killed = subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while (
        b"training" not in (folder / "jobs.jsonl").read_bytes() if (folder / "jobs.jsonl").exists() else True
    ):
        assert killed.poll() is None
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    before = (folder / "jobs.jsonl").read_text()
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 3, done.stderr
    assert (folder / "jobs.jsonl").read_text().startswith(before)
    jobs = [json.loads(line)["job"] for line in (folder / "jobs.jsonl").read_text().splitlines()]
    assert len(jobs) == len(set(jobs)) == 2 + 2 + 2
    assert "training gone-seed0 failed" in done.stderr
    assert "no run of gone-seed0: training gone-seed0 failed" in done.stdout
    rows = tmp_path / "rows.csv"
    assert main(["paper", "figure5", str(folder), "--csv", str(rows)]) == 0
    assert [row["name"] for row in csv.DictReader(rows.open()) if row["source"] == "run"] == []
    assert main(["show", str(folder)]) == 0
    assert f"{tiny_checkpoint.name}-seed1" in capsys.readouterr().out
