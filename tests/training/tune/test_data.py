"""Data that is trained: counted, never cut; what cannot be trained is refused with its name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from refine_conversations import clean_conversation, erring_conversation, user

from evalharness.base.errors import UserError
from evalharness.training.datasets.conversation import Conversation, write_data
from evalharness.training.tune.data import DataCounts, make_rows
from evalharness.training.tune.settings import Settings

pytestmark = [pytest.mark.vllm, pytest.mark.slow]


def rows_of(
    conversations: list[Conversation], model: Path, python: Path, folder: Path, **settings: Any
) -> DataCounts:
    data = folder / "data.jsonl"
    write_data(data, conversations, {})
    return make_rows([data], model, folder / "rows.parquet", replace(Settings(), **settings), python=python)


def test_longer_conversations_are_refused_or_dropped_and_never_cut(
    tiny_checkpoint: Path, server_python: Path, tmp_path: Path
) -> None:
    conversations = [erring_conversation("a"), clean_conversation(), erring_conversation("b")]
    with pytest.raises(UserError, match=r"2 .* 3 .* 200 tokens \(x/a: \d+ tokens; x/b"):
        rows_of(conversations, tiny_checkpoint, server_python, tmp_path, max_length=200)
    made = rows_of(
        conversations, tiny_checkpoint, server_python, tmp_path, max_length=200, too_long="drop-any"
    )
    assert (made.rows, dict(made.left_out)) == (1, {"more than 200 tokens": 2})
    rows = pyarrow.parquet.read_table(tmp_path / "rows.parquet").to_pylist()
    assert [row["id"] for row in rows] == ["y/c"]
    assert made.tokens == made.longest == len(rows[0]["input_ids"])
    assert made.trained_tokens == sum(label >= 0 for label in rows[0]["labels"])


def test_the_modes_train_other_turns_of_the_same_data(
    tiny_checkpoint: Path, server_python: Path, tmp_path: Path
) -> None:
    conversations = [erring_conversation("a")]
    turns = {"full": 3, "no_refine_loss": 2, "all_turns": 5, "no_refine_data": 3}
    tokens = {}
    for mode, wanted in turns.items():
        made = rows_of(conversations, tiny_checkpoint, server_python, tmp_path, mode=mode)
        assert made.trained_turns == wanted
        tokens[mode] = (made.tokens, made.trained_tokens)
    assert tokens["full"][0] == tokens["no_refine_loss"][0] > tokens["no_refine_data"][0]
    assert tokens["no_refine_loss"][1] < tokens["full"][1] < tokens["all_turns"][1]


def test_data_that_cannot_be_trained_is_refused(
    tiny_checkpoint: Path, server_python: Path, tmp_path: Path
) -> None:
    conversation = erring_conversation("a")
    twice = replace(
        conversation, messages=(conversation.messages[0], user("one"), *conversation.messages[1:])
    )
    made = rows_of([twice, clean_conversation()], tiny_checkpoint, server_python, tmp_path)
    assert (made.rows, made.order.repaired) == (2, 1)
    masked = replace(
        conversation,
        messages=tuple(
            replace(m, loss=False if m.role == "assistant" else None) for m in conversation.messages
        ),
    )
    with pytest.raises(UserError, match=r"none of 1.*no turn"):
        rows_of([masked], tiny_checkpoint, server_python, tmp_path)
    with pytest.raises(UserError, match="no conversation"):
        rows_of([], tiny_checkpoint, server_python, tmp_path)


def test_a_base_without_a_chat_template_is_refused(
    tiny_checkpoint: Path, server_python: Path, tmp_path: Path
) -> None:
    model = tmp_path / "model"
    model.mkdir()
    for file in tiny_checkpoint.iterdir():
        if file.name != "chat_template.jinja":
            (model / file.name).write_bytes(file.read_bytes())
    with pytest.raises(UserError, match="chat template"):
        rows_of([clean_conversation()], model, server_python, tmp_path)


def test_a_family_that_would_lose_more_than_a_tenth_is_named(
    tiny_checkpoint: Path, server_python: Path, tmp_path: Path
) -> None:
    short = [replace(clean_conversation(f"s{n}"), world="alfworld") for n in range(11)]
    long = replace(erring_conversation("l"), world="alfworld")
    lengths = {
        name: rows_of([conversation], tiny_checkpoint, server_python, tmp_path).longest
        for name, conversation in (("short", short[0]), ("long", long))
    }
    assert lengths["short"] < lengths["long"]

    def made(conversations: list[Conversation], how: str) -> DataCounts:
        limit = lengths["long"] - 1
        return rows_of(
            conversations, tiny_checkpoint, server_python, tmp_path, max_length=limit, too_long=how
        )

    dropped = made([*short, long], "drop")
    assert (dropped.rows, dropped.list_losses()) == (11, ["alfworld: 1 of 12 too long"])
    one_id = [replace(long, world="babyai"), *short, replace(long, world="alfworld")]
    with pytest.raises(UserError, match=r"babyai loses 1 of 1 "):
        made(one_id, "drop")
    gripper = [replace(erring_conversation("g"), world="pddl", metadata={"kind": "gripper"})]
    with pytest.raises(UserError, match=r"pddl loses 1 of 1 .*pddl gripper: 1 of 1 too long.*drop-any"):
        made([*short, *gripper], "drop")
    assert made([*short, *gripper], "drop-any").rows == 11
