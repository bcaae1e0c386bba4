"""Recordings and exceptions with values that nothing can be computed with: one line each."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conform.__main__ import main


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (("0,", "Infinity,"), "Infinity is not JSON"),
        (("0.5", "9" * 401), "too large"),
        (('"a wall"', "[" * 5000), "too deep"),
    ],
    ids=["an id", "a progress", "an observation"],
)
def test_a_recording(
    damage: tuple[str, str], why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    step = {"action": "turn left", "obs": "a wall", "progress": 0.5}
    whole = json.dumps({"id": 0, "task": "babyai", "steps": [step]})
    assert damage[0] in whole
    path = tmp_path / "recorded.jsonl"
    path.write_text(whole.replace(*damage, 1))
    assert main([str(path)]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"conform: {path}:1 ")
    assert why in line


@pytest.mark.parametrize("text", ["babyai: &a [*a]", "babyai: " + "[" * 5000], ids=["a circle", "brackets"])
def test_exceptions(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded, exceptions = tmp_path / "recorded.jsonl", tmp_path / "exceptions.yaml"
    recorded.write_text(json.dumps({"id": 0, "task": "babyai", "steps": [{"action": "turn left"}]}))
    exceptions.write_text(text)
    assert main([str(recorded), "--exceptions", str(exceptions)]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"conform: {exceptions} ")
