"""Scripts from a real vLLM with structured output. A tiny random model writes none that passes: that is the result."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import evalharness
from tiny_model import make_tiny_checkpoint

from evalharness.refine.synthesis_store import CALLS, read_finished, read_records

pytestmark = [pytest.mark.vllm, pytest.mark.slow]


def test_a_tiny_model_never_passes_and_that_is_shown_as_such(
    environment: dict[str, str], tmp_path: Path, server_python: Path
) -> None:
    # Its byte-level tokenizer makes a token of almost every letter of the prompt.
    checkpoint = make_tiny_checkpoint(tmp_path / "model", server_python, positions=32768)
    out = tmp_path / "scripts"
    words = (
        "refine", "scripts", "--model", checkpoint, "--vllm", server_python, "--vllm-args", "--max-model-len 32768",
        "--max-tokens", 64, "-n", 3, "--calls", 2, "-o", out,
    )  # fmt: skip
    done = evalharness(environment, *words)
    assert done.returncode == 0, done.stderr
    passed, rejected = read_finished(out)
    assert (len(passed), len(rejected)) == (0, 3)
    assert {tuple(record["signals"]) for record in rejected} == {("JSON", "JSON")}
    assert "0 of 3 personas passed (0.0 %)" in done.stdout
    calls = list(read_records(out / CALLS))
    assert len(calls) == 6
    # Held to the schema by the server, even a random model begins with a brace.
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["sessions"][0]["structured_output"] is True
    assert all(call["reply"].lstrip().startswith("{") for call in calls)
    assert {call["finish_reason"] for call in calls} == {"length"}
    assert all(call["completion_tokens"] == 64 for call in calls)
    # Nothing is left to make, so nothing is started.
    again = evalharness(environment, *words)
    assert again.returncode == 0, again.stderr
    assert "starting vLLM" not in again.stderr
    # No script, no trajectory: said plainly.
    none = evalharness(
        environment, "refine", "trajectories", "--scripts", out, "--model", checkpoint, "-o", tmp_path / "t"
    )
    assert none.returncode == 2
    assert "no script passed there" in none.stderr
