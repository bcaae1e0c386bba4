"""Mixing training data, and reading what others have made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refine_conversations import clean_conversation, erring_conversation

from evalharness.base.errors import UserError
from evalharness.cli import main
from evalharness.training.datasets.conversation import (
    Conversation,
    UnfitError,
    read_manifest,
    write_data,
)
from evalharness.training.datasets.layouts import ReadReport, read_any, to_conversation
from evalharness.training.datasets.mix import DataShare, divide, parse_share


@given(st.lists(st.tuples(st.floats(0.01, 10), st.integers(1, 50)), min_size=1, max_size=4))
def test_amounts_keep_the_ratio_and_what_is_there(table: list[tuple[float, int]]) -> None:
    parts = [DataShare(Path(str(i)), share) for i, (share, _) in enumerate(table)]
    there = [have for _, have in table]
    found = divide(parts, there, None)
    total = sum(share for share, _ in table)
    assert all(amount <= have for amount, have in zip(found, there, strict=True))
    for part, amount in zip(parts, found, strict=True):
        assert abs(amount - sum(found) * part.share / total) < 1 + 1e-6


def test_mix_draws_by_ratio_and_seed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "data.jsonl"
    write_data(
        data, [erring_conversation("a"), erring_conversation("b", system=False), clean_conversation()], {}
    )
    general = tmp_path / "general.json"
    talk = [
        {"conversations": [{"from": "human", "value": str(i)}, {"from": "gpt", "value": "yes"}]}
        for i in range(9)
    ]
    general.write_text(json.dumps([*talk, {"conversations": "nothing"}]))
    outputs = [tmp_path / name for name in ("one.jsonl", "two.jsonl", "other.jsonl")]
    for path, seed in zip(outputs, "001", strict=True):
        assert main(["refine", "mix", f"{data}:0.5", f"{general}:1", "--seed", seed, "-o", str(path)]) == 0
    assert "1 record left out" in capsys.readouterr().err
    assert outputs[0].read_bytes() == outputs[1].read_bytes() != outputs[2].read_bytes()
    manifest = read_manifest(outputs[0])
    assert manifest is not None
    assert manifest["counts"]["sources"] == {"general": 7, "grounded": 2}
    with pytest.raises(UserError, match="needs 4"):
        divide([DataShare(data, 1.0)], [3], 4)


def test_all_of_several_data_sets_is_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other, mixed = (tmp_path / f"{name}.jsonl" for name in ("one", "other", "mixed"))
    conversations = [
        [erring_conversation("a"), erring_conversation("b"), clean_conversation("c")],
        [clean_conversation("d")],
    ]
    for path, listed in zip((one, other), conversations, strict=True):
        write_data(path, listed, {})
    words = ["refine", "mix", str(one), str(other), "--all", "-o", str(mixed)]
    assert main(words) == 0
    names = {json.loads(line)["id"] for line in mixed.read_text().splitlines()}
    assert names == {
        f"{n}:{conversation.id}" for n, listed in enumerate(conversations, 1) for conversation in listed
    }
    assert main([*words, "-n", "2"]) == 2
    assert "leave -n out" in capsys.readouterr().err


def test_a_share_is_told_from_a_file_name(tmp_path: Path) -> None:
    assert parse_share("a.jsonl:0.25") == DataShare(Path("a.jsonl"), 0.25)
    assert parse_share("c:a.jsonl") == DataShare(Path("c:a.jsonl"), 1.0)
    with pytest.raises(UserError, match="above 0"):
        parse_share("a.jsonl:0")


def test_layouts_of_others_are_read_with_their_loss(tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    turns = [
        {"from": "human", "value": "Observation: x"},
        {"from": "gpt", "value": "Thought: t\nAction: a", "loss": False},
        {"from": "human", "value": "Observation: y"},
        {"from": "gpt", "value": "Thought: t\nAction: b", "loss": True},
    ]
    pyarrow.parquet.write_table(
        pyarrow.Table.from_pylist([{"conversations": turns, "score": 1.5}]), tmp_path / "x.parquet"
    )
    (tmp_path / "x.json").write_text("\ufeff" + json.dumps([{"conversations": turns, "score": 1.5}]))
    chat = [
        {"role": m["from"].replace("gpt", "assistant"), "content": m["value"], "train": m.get("loss", True)}
        for m in turns
    ]
    (tmp_path / "x.jsonl").write_text(json.dumps({"messages": json.dumps(chat), "score": 1.5}) + "\n")
    for name in ("x.parquet", "x.json", "x.jsonl"):
        unfit = ReadReport()
        (conversation,) = read_any(tmp_path / name, unfit)
        assert not unfit.reasons
        assert [message.content for message in conversation.messages if message.trained] == [
            "Thought: t\nAction: b"
        ], name
        assert conversation.metadata == {"score": 1.5}


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(st.characters(codec=None), max_size=60),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    "messages",
                    "conversations",
                    "from",
                    "value",
                    "role",
                    "content",
                    "loss",
                    "error",
                    "id",
                    "source",
                    "world",
                ]
            ),
            inner,
            max_size=6,
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_any_record_is_a_sample_or_is_refused_by_name(record: Any) -> None:
    try:
        conversation = to_conversation(record, "name", "general")
    except UnfitError:
        return
    assert Conversation.from_json(json.loads(conversation.to_line())).messages == conversation.messages


def test_what_does_not_fit_is_said_plainly(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(
        '{"prompt": "a", "\\u202egnol": 1}\n[]\n{"messages": [{"role": "tool", "content": "x"}]}\n'
    )
    assert main(["refine", "read", str(path), "-o", str(tmp_path / "out.jsonl")]) == 2
    err = capsys.readouterr().err
    assert "Its fields" in err
    assert "prompt" in err
    assert "\u202e" not in err
    assert not (tmp_path / "out.jsonl").exists()
