"""Two checkpoints of a training run, one after the other on a real vLLM."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest
from command_line import evalharness

from evalharness.records.store import read_episodes

pytestmark = [pytest.mark.vllm, pytest.mark.slow]


async def test_two_tiny_checkpoints_are_played_by_servers_of_their_own(
    environment: dict[str, str], tmp_path: Path, tiny_checkpoint: Path, server_python: Path
) -> None:
    folder, study = tmp_path / "training", tmp_path / "study"
    for name in ("checkpoint-9", "checkpoint-10"):
        shutil.copytree(tiny_checkpoint, folder / name)
    weights = folder / "checkpoint-10" / "model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-32768:-16384] = data[-16384:]  # other weights, and all of them numbers
    weights.write_bytes(data)
    done = await asyncio.to_thread(
        evalharness, environment, "checkpoints", folder, "--suite", "open", "--tasks", "compass", "--limit", 4,
        "--max-turns", 2, "--max-tokens", 8, "--vllm", server_python, "-o", study, "--json", study / "result.json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert [p["name"] for p in json.loads((study / "result.json").read_text())["points"]] == [
        "checkpoint-9",
        "checkpoint-10",
    ]
    models = [
        json.loads((study / name / "manifest.json").read_text())["identity"]["model"]["checkpoint_sha256"]
        for name in ("checkpoint-9", "checkpoint-10")
    ]
    assert models[0] != models[1]
    replies = [
        [turn.reply for episode in read_episodes(study / name) for turn in episode.turns]
        for name in ("checkpoint-9", "checkpoint-10")
    ]
    assert len(replies[0]) == len(replies[1]) == 8
    assert (study / "server.log").read_text(errors="replace").count("Application startup complete") == 2
