"""The runs of a study are played by one server, started with the first and ended with the last."""

from __future__ import annotations

import json
from pathlib import Path

from command_line import evalharness
from empty_checkpoint import make_empty_checkpoint
from fake_vllm import make_fake_vllm, set_skill

from evalharness.records.store import read_episodes

from .processes import serving


def test_the_runs_of_a_study_share_one_server(environment: dict[str, str], tmp_path: Path) -> None:
    name, study = f"shared-{tmp_path.name}-{tmp_path.parent.name}", tmp_path / "study"
    model = set_skill(make_empty_checkpoint(tmp_path / "model"), "north")
    variables = environment | {"FAKE_VLLM_LOG": str(tmp_path / "starts")}
    options = (
        "bon", "-n", 2, "--model", model, "--model-name", name, "--vllm", make_fake_vllm(tmp_path / "bin"),
        "--suite", "open", "--tasks", "compass", "--limit", 2, "--max-turns", 3, "--max-tokens", 24, "-o", study,
    )  # fmt: skip
    done = evalharness(variables, *options)
    assert done.returncode == 0, done.stderr
    assert not serving(name)
    facts = [
        json.loads((study / run / "manifest.json").read_text())["sessions"][0]["policy"]
        for run in ("greedy", "samples")
    ]
    assert facts[0]["argv"] == facts[1]["argv"]  # its port among them
    assert (tmp_path / "starts").read_text().splitlines() == ["start model"]
    assert (study / "server.log").exists()
    assert not list(study.glob("*/server.log"))
    assert len(list(read_episodes(study / "samples"))) == 4
    # Nothing is left to play, so nothing is started.
    again = evalharness(variables, *options)
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "starts").read_text().splitlines() == ["start model"]
