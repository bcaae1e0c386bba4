"""A data folder with questions of the official make."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalharness.paper.hotpotqa.importer import import_file

from .made_data import questions, silent, write


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder with 400 questions of the official make."""
    folder = tmp_path / "data"
    import_file(write(tmp_path / "dev.json", questions(400)), folder, silent)
    return folder
