"""`refine show` of a data set: what is said, trained and wrong at each turn, with nothing that steers a terminal."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from refine_conversations import clean_conversation, erring_conversation

from evalharness.cli import main
from evalharness.training.datasets.conversation import write_data


@pytest.fixture
def data(tmp_path: Path) -> Path:
    hostile = clean_conversation("c")
    hostile = replace(
        hostile, messages=(*hostile.messages[:-1], replace(hostile.messages[-1], content="a\x1b[2Jb"))
    )
    write_data(tmp_path / "data.jsonl", [erring_conversation("a"), hostile], {})
    return tmp_path / "data.jsonl"


def test_the_first_conversation_is_shown_with_its_marks(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["refine", "show", str(data)]) == 0
    out = capsys.readouterr().out
    assert "assistant (not trained; error: parameter)" in out
    assert "assistant (trained; refinement)" in out
    assert "1 of 2 conversations (more: --first N)" in out


def test_one_is_shown_by_its_name_and_escaped(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = [json.loads(line)["id"] for line in data.read_text().splitlines()][1]
    assert main(["refine", "show", str(data), name, "--json", str(tmp_path / "s.json")]) == 0
    out = capsys.readouterr().out
    assert "\x1b[2J" not in out
    assert [each["id"] for each in json.loads((tmp_path / "s.json").read_text())] == [name]
    assert main(["refine", "show", str(data), name + "x"]) == 2
    assert f"did you mean '{name}'?" in capsys.readouterr().err
    assert main(["refine", "show", str(data), "--first", "1", "--rejected"]) == 2
    assert "is a data set" in capsys.readouterr().err
