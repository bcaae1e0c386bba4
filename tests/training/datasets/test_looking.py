"""Looking at training data: maps of thoughts, similarity to the test environments, the figure of error turns."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest
from refine_conversations import clean_conversation, erring_conversation, said, user

from evalharness.cli import main
from evalharness.envs import specs
from evalharness.records.store import read_episodes
from evalharness.results.diversity import Source, pooled, read_thoughts
from evalharness.training.datasets.as_run import write_run
from evalharness.training.datasets.conversation import Conversation, write_data
from evalharness.training.datasets.similarity import OF_FAMILY, of_data, of_family, opening


def test_only_labelled_thoughts_are_thoughts(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    write_data(path, [erring_conversation(), clean_conversation()], {})
    assert read_thoughts(path).texts == (
        "The box is there.", "I open it.", "Perhaps from the door.", "I misspelt open. I open it.", "a",
    )  # fmt: skip


def test_the_pool_is_drawn_by_seed_and_keeps_equal_thoughts() -> None:
    sources = [Source("a", ("same",) * 60 + ("other",) * 20, 80), Source("b", ("same",) * 20, 20)]
    drawn = pooled(sources, 50, seed=1)
    assert sum(len(source.texts) for source in drawn) == 50
    assert drawn == pooled(sources, 50, seed=1) != pooled(sources, 50, seed=2)
    assert drawn[0].texts.count("same") > 20
    assert [source.total for source in drawn] == [80, 20]
    assert pooled(sources, 100) == sources


def test_worked_examples_are_left_out() -> None:
    head = "Rules.\n\nHere is an example.\nGoal: x\nObservation: y\n\nNow it is your turn.\nGoal: z\nObservation: w"
    conversation = Conversation("i", "s", "w", None, (user(head), said("t", "a"), user("Observation: v")))
    assert opening(conversation) == "Rules.\n\nNow it is your turn.\nGoal: z\nObservation: w"
    texts = of_family("alfworld", 0)
    assert len(texts) == OF_FAMILY
    assert len(set(texts)) > 1
    assert not any("Here is an example" in text for text in texts)


def test_a_variant_that_is_no_number_of_one_opens_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    odd = [replace(erring_conversation(str(n)), metadata={"variant": n}) for n in (-1, 10**12, 3)]
    write_data(path, odd, {})
    write_run(path, tmp_path / "run", [])
    assert [episode.sample for episode in read_episodes(tmp_path / "run")] == [0, 0, 3]


@pytest.mark.slow
def test_data_like_a_family_is_flagged(
    tmp_path: Path, clean_home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("sklearn")
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    near, far = tmp_path / "near.jsonl", tmp_path / "far.json"
    write_data(
        near,
        [
            Conversation(str(i), "s", "w", None, (user(t), said("t", "a")))
            for i, t in enumerate(of_family("pddl", 3))
        ],
        {},
    )
    far.write_text(json.dumps([{"messages": [user("Bake bread.").to_json(), said("t", "a").to_json()]}] * 3))
    assert of_data(far, 0) == ["Bake bread."] * 3
    assert main(["paper", "diversity", "environments", str(near), str(far), "--embedding", "tfidf"]) == 0
    with (tmp_path / "plots" / "environments.csv").open() as file:
        rows = {(row["first"], row["second"]): float(row["similarity"]) for row in csv.DictReader(file)}
    assert rows["near.jsonl", "PDDL"] > rows["near.jsonl", "BabyAI"] > rows["far.json", "PDDL"]
    assert rows["far.json", "far.json"] == pytest.approx(1)
    assert len(rows) == (2 + len(specs())) ** 2
    err = capsys.readouterr().err
    assert ("near.jsonl x PDDL" in err) == (rows["near.jsonl", "PDDL"] >= 0.5)
    assert "far.json x" not in err


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
