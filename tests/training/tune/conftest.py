"""The data of the trainings."""

from __future__ import annotations

from pathlib import Path

import pytest
from refine_conversations import clean_conversation, erring_conversation

from evalharness.training.datasets.conversation import write_data

CONVERSATIONS = [
    *(erring_conversation(f"a{n}") for n in range(6)),
    *(clean_conversation(f"c{n}") for n in range(2)),
]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.jsonl"
    write_data(path, CONVERSATIONS, {})
    return path
