"""Training data: the canonical format, broken files, modes, what trainers take."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from refine_conversations import clean_conversation, erring_conversation

from evalharness.base.errors import UserError
from evalharness.cli import main
from evalharness.training.datasets.conversation import (
    BrokenLine,
    Conversation,
    MarkedMessage,
    manifest_path,
    read_data,
    read_manifest,
    write_data,
)
from evalharness.training.datasets.export import export
from evalharness.training.datasets.make_tokens import NotTokenizedError, convert
from evalharness.training.datasets.modes import apply_mode
from evalharness.training.datasets.stats import error_turns
from evalharness.training.datasets.tokens import IGNORED, TokenCounts, _read

CONVERSATIONS = [erring_conversation("a"), erring_conversation("b", system=False), clean_conversation()]
ANY_TEXT = st.text(st.characters(codec=None), max_size=60)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.jsonl"
    write_data(path, CONVERSATIONS, {"command": "test"})
    return path


def trained(conversation: Conversation) -> list[str]:
    return [message.content for message in conversation.messages if message.trained]


WANTED = {conversation.id: trained(conversation) for conversation in CONVERSATIONS}


# --- the canonical format --------------------------------------------------------------------------------------------


@given(
    ANY_TEXT,
    st.lists(
        st.tuples(ANY_TEXT, st.booleans(), st.lists(st.sampled_from(["parameter", "place"])), st.booleans())
    ),
)
def test_any_text_survives_a_line(text: str, turns: list[tuple[str, bool, list[str], bool]]) -> None:
    messages = [MarkedMessage("user", text)]
    for content, loss, error, refine in turns:
        messages.append(MarkedMessage("assistant", content, loss, tuple(error), refine))
    conversation = Conversation("id", "s", text, None, tuple(messages), {"text": text})
    line = conversation.to_line()
    assert line.isascii()
    assert line.count("\n") == 1
    assert Conversation.from_json(json.loads(line)) == conversation


@given(st.binary(max_size=300))
def test_whatever_is_in_a_file_is_named_and_counted(content: bytes) -> None:
    import tempfile

    good = clean_conversation().to_line().encode()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.jsonl")
        path.write_bytes(good + content + b"\n" + good)
        broken: list[BrokenLine] = []
        found = list(read_data(path, broken))
    assert found[0] == found[-1] == clean_conversation()
    lines = [line for line in (content + b"\n").split(b"\n") if line.strip()]
    assert len(found) + len(broken) == len(lines) + 2
    assert all(line.number > 1 for line in broken)


def test_a_torn_line_a_deep_one_and_wrong_keys_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    good = clean_conversation().to_line()
    wrong = json.dumps({**clean_conversation().to_json(), "messages": [{"role": "tool", "content": "x"}]})
    path.write_text(f'{good}{"[" * 100_000}\n{wrong}\n{{"id": NaN}}\n{good[:40]}', encoding="utf-8")
    broken: list[BrokenLine] = []
    assert len(list(read_data(path, broken))) == 1
    assert [line.number for line in broken] == [2, 3, 4, 5]
    assert "not JSON" in broken[0].why
    assert "role" in broken[1].why
    assert broken[3].why.startswith("torn")


def test_a_number_that_cannot_be_written_again_is_no_sample(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text(erring_conversation().to_line().replace('"metadata":{', '"metadata":{"x":1e999,'))
    broken: list[BrokenLine] = []
    assert list(read_data(path, broken)) == []
    assert "too large" in str(broken[0])


def test_the_manifest_counts_and_hashes(data: Path) -> None:
    import hashlib

    manifest = read_manifest(data)
    assert manifest is not None
    assert manifest["sha256"] == hashlib.sha256(data.read_bytes()).hexdigest()
    counts = manifest["counts"]
    assert (counts["samples"], counts["player_turns"], counts["error_turns"]) == (3, 13, 4)
    assert counts["errors"] == {"parameter": 2, "place": 2}
    assert counts["refine_turns"] == 2
    assert counts["trained_turns"] == 8
    assert manifest_path(data).name == "data.manifest.json"


def test_error_turns_are_counted_by_run() -> None:
    found = error_turns(CONVERSATIONS)
    assert found.runs == {"2": 2}
    assert (found.turns, found.player_turns, found.without_errors) == (10 + 10 + 7, 13, 1)
    assert found.rows()[1]["share_of_player_turns"] == pytest.approx(4 / 13)


# --- what trainers take ----------------------------------------------------------------------------------------------


def from_messages(record: dict[str, Any]) -> list[str]:
    return [m["content"] for m in record["messages"] if m["role"] == "assistant" and m["loss"]]


def from_sharegpt(record: dict[str, Any]) -> list[str]:
    return [m["value"] for m in record["conversations"] if m["loss"]]


def from_v1(record: dict[str, Any]) -> list[str]:
    return ["".join(p["value"] for p in m["content"]) for m in record["messages"] if m["loss_weight"] > 0]


READERS: dict[str, Callable[[dict[str, Any]], list[str]]] = {
    "messages": from_messages,
    "sharegpt": from_sharegpt,
    "llamafactory": from_v1,
}

END = 1_114_112
"""The toy template's end-of-turn token; every other token is a character."""


def toy_render(messages: list[dict[str, str]]) -> str:
    return "".join(f"<|start|>{m['role']}\n{m['content'].strip()}\N{END OF TRANSMISSION}\n" for m in messages)


def toy_encode(text: str) -> tuple[list[int], list[tuple[int, int]]]:
    ids = [END if letter == "\N{END OF TRANSMISSION}" else ord(letter) for letter in text]
    return ids, [(i, i + 1) for i in range(len(text))]


def spoken(labels: list[int]) -> list[str]:
    """The trained texts: each ends with the end-of-turn token."""
    runs, run = [], ""
    for label in labels:
        if label == END:
            runs.append(run)
            run = ""
        elif label != IGNORED:
            run += chr(label)
    assert run == ""
    return runs


def by_tokens(path: Path, max_length: int = 0) -> Iterator[tuple[str, list[str]]]:
    """The trained texts of a `messages` export, by way of tokens and labels."""
    for line in path.read_text().splitlines():
        record = json.loads(line)
        row = convert(record, toy_render, toy_encode, frozenset({END}), max_length)
        tokens = _read(0, row, TokenCounts())
        assert tokens is not None
        assert len(tokens.labels) == len(tokens.input_ids)
        yield tokens.id, spoken(tokens.labels)


def test_all_formats_train_the_same_turns(data: Path, tmp_path: Path) -> None:
    for name, reader in READERS.items():
        done = export([data], name, "full", tmp_path / name)
        found: dict[str, list[str]] = {}
        for line in (tmp_path / name / "train.jsonl").read_text().splitlines():
            record = json.loads(line)
            found.setdefault(record["id"].split("#")[0], []).extend(reader(record))
        assert found == WANTED, name
        assert done.trained_turns == sum(map(len, WANTED.values()))
    assert dict(by_tokens(tmp_path / "messages" / "train.jsonl")) == WANTED


def test_every_mode_trains_what_it_says(data: Path, tmp_path: Path) -> None:
    first = CONVERSATIONS[0]
    turns = [turn.content for turn in first.player_turns]
    wanted = {
        "full": [turns[0], turns[3], turns[4]],
        "no_refine_loss": [turns[0], turns[4]],
        "no_refine_data": [turns[0], "Thought: I open it.\nAction: open box", turns[4]],
        "all_turns": turns,
    }
    for mode, expected in wanted.items():
        export([data], "messages", mode, tmp_path / mode)  # type: ignore[arg-type]
        found = dict(by_tokens(tmp_path / mode / "train.jsonl"))
        assert found[first.id] == expected, mode
    whole = (tmp_path / "no_refine_data" / "train.jsonl").read_text()
    assert "opne" not in whole
    assert "You cannot." not in whole


def test_errors_that_cannot_be_taken_out_leave_the_sample_out() -> None:
    conversation = erring_conversation()
    bare = Conversation(conversation.id, conversation.source, conversation.world, None, conversation.messages)
    assert apply_mode(bare, "no_refine_data") is None
    assert apply_mode(clean_conversation(), "no_refine_data") == clean_conversation()


def test_a_long_conversation_ends_with_the_last_whole_turn_that_fits(data: Path, tmp_path: Path) -> None:
    export([data], "messages", "full", tmp_path)
    whole = dict(by_tokens(tmp_path / "train.jsonl"))
    text = toy_render([m.to_json() for m in CONVERSATIONS[0].messages])
    cut = dict(by_tokens(tmp_path / "train.jsonl", max_length=text.index("I misspelt")))
    assert cut[CONVERSATIONS[0].id] == whole[CONVERSATIONS[0].id][:1]


def test_a_template_without_a_system_role_gets_the_text_with_the_first_message() -> None:
    def strict(messages: list[dict[str, str]]) -> str:
        if messages[0]["role"] == "system":
            raise ValueError("System role not supported")
        return toy_render(messages)

    record = {"id": "x", "messages": [m.to_json() for m in CONVERSATIONS[0].messages]}
    row = convert(record, strict, toy_encode, frozenset({END}), 0)
    tokens = _read(0, row, TokenCounts())
    assert tokens is not None
    assert spoken(tokens.labels) == WANTED[CONVERSATIONS[0].id]


def test_a_template_that_rewrites_a_reply_is_refused() -> None:
    def loud(messages: list[dict[str, str]]) -> str:
        return toy_render([{**m, "content": m["content"].upper()} for m in messages])

    record = {"id": "x", "messages": [m.to_json() for m in CONVERSATIONS[0].messages]}
    with pytest.raises(NotTokenizedError, match="changes message 1"):
        convert(record, loud, toy_encode, frozenset({END}), 0)


@pytest.mark.parametrize(
    ("replies", "reason"),
    [
        (["<think>a</think>look", "ok"], "earlier reply"),
        (["look", "ok LOUD"], "changes message 4"),
    ],
)
def test_the_reason_names_what_the_template_did(replies: list[str], reason: str) -> None:
    """With texts of a few letters: the ones before the changed one are found."""

    def dropping(messages: list[dict[str, str]]) -> str:
        shown = [m["content"].rpartition("</think>")[2].replace("LOUD", "loud") for m in messages]
        return toy_render([{**m, "content": text} for m, text in zip(messages, shown, strict=True)])

    texts = [("user", "a"), ("assistant", replies[0]), ("user", "s"), ("assistant", replies[1])]
    record = {"id": "x", "messages": [{"role": role, "content": text} for role, text in texts]}
    with pytest.raises(NotTokenizedError, match=reason):
        convert(record, dropping, toy_encode, frozenset({END}), 0)


def test_the_trainers_configuration_names_the_key_of_the_loss(data: Path, tmp_path: Path) -> None:
    export([data], "sharegpt", "full", tmp_path / "axolotl")
    (block,) = yaml.safe_load((tmp_path / "axolotl" / "axolotl.yaml").read_text())["datasets"]
    assert block["message_field_training"] == "loss"
    assert (block["roles_to_train"], block["train_on_eos"]) == ([], "turn")
    export([data], "llamafactory", "full", tmp_path / "lf")
    configuration = yaml.safe_load((tmp_path / "lf" / "llamafactory.yaml").read_text())
    assert (configuration["global_batch_size"], configuration["learning_rate"]) == (64, 5e-6)
    assert (tmp_path / "lf" / configuration["train_dataset"]).is_file()


def test_broken_lines_are_told_and_the_rest_is_exported(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with data.open("a") as file:
        file.write("{broken\n")
    assert main(["refine", "export", str(data), "--format", "messages", "-o", str(tmp_path / "out")]) == 0
    assert json.loads((tmp_path / "out/export.json").read_text())["counts"]["broken_lines"] == 1
    assert "1 broken line left out" in capsys.readouterr().err
    assert len((tmp_path / "out" / "train.jsonl").read_text().splitlines()) == 3


def test_tokens_ask_for_a_model(data: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--model"):
        export([data], "tokens", "full", tmp_path)
    with pytest.raises(UserError, match=r"tokenizer_config\.json"):
        export([data], "tokens", "full", tmp_path, model=tmp_path)
