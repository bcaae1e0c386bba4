"""A frozen suite is read as it was written, a case a line, and refused where a case was changed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from evalharness.envs.base import InvalidTaskError
from evalharness.envs.frozen import FrozenSuite


@dataclass(frozen=True)
class Case:
    level: str
    plan: tuple[str, ...]


CASES = (Case("near", ("north",)), Case("far", ("north", "east")))


def test_cases_are_read_as_they_were_written(tmp_path: Path) -> None:
    suite = FrozenSuite(tmp_path / "suite.json", Case, version=3)
    suite.write(CASES)
    assert suite.cases() == CASES
    text = suite.file.read_text()
    assert len(text.splitlines()) == 1 + len(CASES) + 1
    assert (json.loads(text)["suite_seed"], json.loads(text)["version"]) == (0, 3)


def test_a_changed_case_is_refused(tmp_path: Path) -> None:
    suite = FrozenSuite(tmp_path / "suite.json", Case)
    suite.write(CASES)
    suite.file.write_text(suite.file.read_text().replace("east", "west"))
    with pytest.raises(InvalidTaskError, match="does not match its content hash"):
        suite.cases()
