"""How long a server took to start is said at its next start."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalharness.models.serving.readiness import note_start, of_about


def test_the_last_start_of_a_model_is_remembered(home: Path) -> None:
    assert "a first start takes" in of_about("ckpt", "cpu")
    note_start("ckpt", "cpu", 48.4)
    assert of_about("ckpt", "cpu") == "of about 48 s"
    assert "a first start takes" in of_about("ckpt", "gpu")
    note_start("ckpt", "cpu", 61.0)
    assert of_about("ckpt", "cpu") == "of about 61 s"


@pytest.mark.parametrize(
    "damage", ["{", "[" * 100_000, '{"a": "b"}'], ids=["cut off", "nested", "another kind"]
)
def test_a_damaged_file_is_as_good_as_none(home: Path, damage: str) -> None:
    note_start("ckpt", "cpu", 48.0)
    [file] = home.rglob("server-starts.json")
    file.write_text(damage)
    assert "a first start takes" in of_about("ckpt", "cpu")
    note_start("ckpt", "cpu", 50.0)
    assert of_about("ckpt", "cpu") == "of about 50 s"
