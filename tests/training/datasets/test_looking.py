"""Looking at training data: as a run, and the figure of error turns."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from refine_conversations import erring_conversation

from evalharness.records.store import read_episodes
from evalharness.training.datasets.as_run import write_as_run
from evalharness.training.datasets.conversation import write_data


def test_a_variant_that_is_no_number_of_one_opens_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    odd = [replace(erring_conversation(str(n)), metadata={"variant": n}) for n in (-1, 10**12, 3)]
    write_data(path, odd, {})
    write_as_run(path, tmp_path / "run", [])
    assert [episode.sample for episode in read_episodes(tmp_path / "run")] == [0, 0, 3]
