"""A judge behind a real vLLM, held to the schema. A tiny random model gives no verdict: that is the result."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import evalharness
from made_runs import make_run

from .shared_vllm import SharedVllm

pytestmark = [pytest.mark.vllm, pytest.mark.slow]


def test_a_tiny_model_gives_no_verdict_and_that_is_counted(
    environment: dict[str, str], shared_vllm: SharedVllm, tmp_path: Path
) -> None:
    run, out = make_run(tmp_path / "run", {"babyai": [(False, 0.0)] * 2}), tmp_path / "judged"
    words = (
        "judge",
        run,
        "--judge",
        shared_vllm.base_url,
        "--judge-name",
        "toy",
        "--max-tokens",
        48,
        "-o",
        out,
    )
    done = evalharness(environment, *words)
    assert done.returncode == 0, done.stderr
    summary = json.loads((out / "summary.json").read_text())
    assert (summary["judged"], summary["unread"]) == (6, 6)
    assert list(summary["unread_because"].values()) == [6]
    assert "no verdict: 100.0 %" in done.stdout
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["sessions"][0]["structured_output"] is True
    lines = [json.loads(line) for line in (out / "judgements.jsonl").read_text().splitlines()]
    assert all(line["reply"].lstrip().startswith("{") for line in lines)
    assert {line["completion_tokens"] for line in lines} == {48}
