"""A small study's plan, and the options that its file may name."""

from __future__ import annotations

from pathlib import Path

import pytest
from studies import STUDY

from evalharness.cli.study import known_options
from evalharness.training.study.file import KnownOptions, read_study_file
from evalharness.training.study.plan import Plan, make_plan


@pytest.fixture(scope="module")
def known() -> KnownOptions:
    return known_options()


@pytest.fixture
def plan(tmp_path: Path, known: KnownOptions) -> Plan:
    path = tmp_path / "s.yaml"
    path.write_text(STUDY)
    return make_plan(read_study_file(path, known), tmp_path / "study", tmp_path)
