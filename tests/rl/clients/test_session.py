"""A client's connection to `evalharness env serve` where the answer is late."""

from __future__ import annotations

from pathlib import Path

import pytest
import throwaway

from tests.rl.clients.test_trainers import carry_out

PROGRAM = Path(__file__).with_name("late_answers.py")


@pytest.mark.slow
def test_a_late_answer_is_never_that_of_the_next_request(tmp_path: Path) -> None:
    python = throwaway.make(tmp_path / "venv", ["websockets"])
    said = carry_out(python, PROGRAM.read_text(), tmp_path)
    assert len(said) == 5
    assert "in time" in said[0]
    assert "in time" in said[2]
    assert "closed" in said[4]
    assert not any("asked" in line for line in said)
