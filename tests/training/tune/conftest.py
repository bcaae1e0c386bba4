"""The data of the trainings."""

from __future__ import annotations

from pathlib import Path

import pytest
from refine_samples import clean_sample, erring_sample

from evalharness.training.datasets.sample import write_samples

SAMPLES = [*(erring_sample(f"a{n}") for n in range(6)), *(clean_sample(f"c{n}") for n in range(2))]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.jsonl"
    write_samples(path, SAMPLES, {})
    return path
