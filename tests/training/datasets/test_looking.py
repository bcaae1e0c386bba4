"""Looking at training data: as a run, and the figure of error turns."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest
from refine_conversations import clean_conversation, erring_conversation

from evalharness.cli import main
from evalharness.records.store import read_episodes
from evalharness.training.datasets.as_run import write_run
from evalharness.training.datasets.conversation import write_data


def test_a_variant_that_is_no_number_of_one_opens_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    odd = [replace(erring_conversation(str(n)), metadata={"variant": n}) for n in (-1, 10**12, 3)]
    write_data(path, odd, {})
    write_run(path, tmp_path / "run", [])
    assert [episode.sample for episode in read_episodes(tmp_path / "run")] == [0, 0, 3]


def test_the_figure_of_error_turns_has_its_numbers_beside_it(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "data.jsonl"
    write_data(path, [erring_conversation(), clean_conversation()], {})
    assert (
        main(
            ["refine", "stats", str(path), "-o", str(tmp_path / "plots"), "--json", str(tmp_path / "s.json")]
        )
        == 0
    )
    with (tmp_path / "plots" / "error_turns.csv").open() as file:
        rows = {row["run_length"]: row for row in csv.DictReader(file)}
    assert rows["2"]["runs"] == "1"
    assert float(rows["2"]["share_of_player_turns"]) == pytest.approx(2 / 8)
    assert (tmp_path / "plots" / "error_turns.png").stat().st_size > 1000
    stats = json.loads((tmp_path / "s.json").read_text())
    assert stats["counts"]["errors"] == {"parameter": 1, "place": 1}
