"""What training data of others says about errors, by its marks or by its mask alone, is what is trained."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from refine_conversations import clean_conversation, erring_conversation

from evalharness.base.errors import UserError
from evalharness.cli import main
from evalharness.training.datasets.conversation import (
    Conversation,
    MarkedMessage,
    read_data,
    read_manifest,
    write_data,
)
from evalharness.training.datasets.export import export
from evalharness.training.datasets.layouts import (
    ReadReport,
    UnfitError,
    read_any,
    to_conversation,
)
from evalharness.training.datasets.modes import Mode, apply_mode, is_trained

# One conversation, as AgentGym's data has them: an acknowledgement, then a right turn, two errors, the correction, the
# end. (who, text); what stands beside the replies is the layouts'.
SAID = [
    ("user", "You act in a house."),
    ("assistant", "OK. I'll follow your instructions and try my best to solve the task."),
    ("user", "Your task is to put a cup on the shelf. You see a cup."),
    ("assistant", "Thought:\nThere it is.\n\nAction:\ntake cup"),
    ("user", "You take the cup."),
    ("assistant", "Thought: Up.\nAction: fly to shelf"),
    ("user", "Nothing happens."),
    ("assistant", "Thought: Again.\nAction: fly to shelf"),
    ("user", "Nothing happens."),
    ("assistant", "Thought: I walk.\nAction: go to shelf"),
    ("user", "You are at the shelf."),
    ("assistant", "Thought: Done.\nAction: put cup on shelf"),
]
REPLIES = [at for at, (role, _) in enumerate(SAID) if role == "assistant"]
MASK = [False, True, False, False, True, True]
PLACE = [False, False, True, True, False, False]


def messages(**beside: list[Any]) -> list[dict[str, Any]]:
    """In the messages layout; `beside` are values of the assistant's messages."""
    rows: list[dict[str, Any]] = [{"role": role, "content": text} for role, text in SAID]
    for key, values in beside.items():
        for at, value in zip(REPLIES, values, strict=True):
            rows[at][key] = value
    return rows


def sharegpt(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    names = {"user": "human", "assistant": "gpt"}
    return [
        {"from": names[row["role"]], "value": row["content"]}
        | {key: value for key, value in row.items() if key not in ("role", "content")}
        for row in rows
    ]


def after_the_turn(key: str, values: list[Any]) -> list[dict[str, Any]]:
    """Flags on the user's message that answers a reply, as AgentRefine's Dungeon Master has them."""
    rows = messages()
    for at, value in zip(REPLIES[:-1], values[:-1], strict=True):
        rows[at + 1][key] = value
    return rows


NO = ()
BY_MASK = [
    # trained, error, refine: of each reply
    (False, NO, False),
    (True, NO, False),
    (False, ("masked",), False),
    (False, ("masked",), False),
    (True, NO, True),
    (True, NO, False),
]
MASK_ALONE = [
    (False, NO, False),
    (True, NO, False),
    (False, NO, False),
    (False, NO, False),
    (True, NO, False),
    (True, NO, False),
]
NAMED = [
    (True, NO, False),
    (True, NO, False),
    (False, ("place",), False),
    (False, ("place",), False),
    (True, NO, True),
    (True, NO, False),
]
MASK_AND_NAMED = [(False, NO, False), *NAMED[1:]]
UNNAMED = [
    (True, NO, False),
    (True, NO, False),
    (False, ("unnamed",), False),
    (False, ("unnamed",), False),
    (True, NO, True),
    (True, NO, False),
]
NOTHING = [(True, NO, False)] * 6

TABLE: dict[str, tuple[Any, list[Any]]] = {
    "ShareGPT, loss": ({"conversations": sharegpt(messages(loss=MASK))}, BY_MASK),
    "messages, train": ({"messages": messages(train=MASK)}, BY_MASK),
    "messages, weight": ({"messages": messages(weight=[0, 1, 0, 0, 1, 1])}, BY_MASK),
    "messages, loss_weight": ({"messages": messages(loss_weight=[0.0, 1.0, 0.0, 0.0, 0.5, 1.0])}, BY_MASK),
    "messages, training as text": ({"messages": messages(training=[str(m) for m in MASK])}, BY_MASK),
    "a bare list": (messages(loss=MASK), BY_MASK),
    "JSON in a text column": ({"messages": json.dumps(messages(loss=MASK))}, BY_MASK),
    "a list beside, of replies": ({"messages": messages(), "loss_mask": [0, 1, 0, 0, 1, 1]}, BY_MASK),
    "a list beside, of messages": (
        {"conversations": sharegpt(messages()), "loss": [0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 1]},
        BY_MASK,
    ),
    "with a system text": ({"messages": messages(loss=MASK), "system": "Be good."}, BY_MASK),
    "error, names": ({"messages": messages(error=[[], [], ["place"], ["place_error"], [], []])}, NAMED),
    "error, a name": ({"messages": messages(error=["", "none", "place", "place_error", None, "no"])}, NAMED),
    "error, true or false": ({"messages": messages(error=PLACE)}, UNNAMED),
    "error, a sentence": ({"messages": messages(errors=[None, "", "No wings.", "No wings.", "", ""])}, UNNAMED),
    "separate fields": ({"messages": messages(place_error=PLACE, logic_error=[False] * 6)}, NAMED),
    "separate fields of the answer": ({"messages": after_the_turn("place_error", PLACE)}, NAMED),
    "a list of errors beside": ({"messages": messages(), "error": PLACE}, UNNAMED),
    "mask and marks": ({"messages": messages(loss=MASK, place_error=PLACE)}, MASK_AND_NAMED),
    "marks and a mask that trains all": ({"messages": messages(loss=[True] * 6, place_error=PLACE)}, NAMED),
    "marks that say no error": ({"messages": messages(loss=MASK, error=[[]] * 6)}, MASK_ALONE),
    "AgentInstruct's labels": (
        {
            "messages": [
                {**row, "content": row["content"].replace("Action:", "Act:").replace("Thought:", "Think:")}
                for row in messages(loss=MASK)
            ]
        },
        BY_MASK,
    ),
    "neither": ({"messages": messages()}, NOTHING),
}  # fmt: skip


def marks(conversation: Conversation) -> list[tuple[bool, tuple[str, ...], bool]]:
    return [(turn.trained, turn.error, turn.refine) for turn in conversation.player_turns]


@pytest.mark.parametrize("name", TABLE)
def test_every_layout_keeps_what_its_masks_and_marks_say(name: str) -> None:
    record, wanted = TABLE[name]
    assert marks(to_conversation(record, "x", "y")) == wanted


@pytest.mark.parametrize("name", ["ShareGPT, loss", "error, a name", "separate fields"])
def test_parquet_says_the_same(name: str, tmp_path: Path) -> None:
    """There every message has every field; those that were not given are null."""
    record, wanted = TABLE[name]
    path = tmp_path / "x.parquet"
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([record]), path)
    (conversation,) = read_any(path, ReadReport())
    assert marks(conversation) == wanted


def test_our_own_layout_is_taken_as_it_is(tmp_path: Path) -> None:
    own = [erring_conversation(), clean_conversation()]
    write_data(tmp_path / "x.jsonl", own, {})
    unfit = ReadReport()
    assert [conversation.messages for conversation in read_any(tmp_path / "x.jsonl", unfit)] == [
        s.messages for s in own
    ]
    assert unfit.masked_errors == 0


def test_a_last_turn_that_nobody_answers_is_no_error() -> None:
    record = messages(loss=[True, True, True, True, True, False])
    assert marks(to_conversation(record, "x", "y"))[-1] == (False, NO, False)


@pytest.mark.parametrize(
    ("record", "why"),
    [
        ({"messages": messages(), "loss_mask": [0, 1]}, "each message"),
        ({"messages": messages(loss=MASK, weight=[1] * 6)}, "masks disagree"),
        ({"messages": messages(error=[[["place"]]] * 6)}, "list of names"),
    ],
)  # fmt: skip
def test_what_says_two_things_or_none_is_refused_by_name(record: Any, why: str) -> None:
    with pytest.raises(UnfitError, match=why):
        to_conversation(record, "x", "y")


def written(path: Path, name: str) -> Path:
    path.write_text(json.dumps([TABLE[name][0]]), encoding="utf-8")
    return path


@pytest.mark.parametrize("command", ["read", "mix"])
def test_one_line_says_how_many_masked_turns_were_read_as_errors(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = written(tmp_path / "x.json", "ShareGPT, loss"), tmp_path / "out.jsonl"
    assert main(["refine", command, str(path), "-o", str(out)]) == 0
    said = capsys.readouterr().err
    assert "2 masked turns" in said
    assert "1 trained turn after errors as correction;" in said
    (conversation,) = read_data(out, [])
    assert marks(conversation) == BY_MASK
    manifest = read_manifest(out)
    assert manifest is not None
    assert manifest["counts"]["error_turns"] == 2


def test_the_modes_of_masked_data_differ(tmp_path: Path) -> None:
    conversation = to_conversation(TABLE["ShareGPT, loss"][0], "x", "y")
    trained: dict[Mode, list[bool] | None] = {}
    for mode in ("full", "no_refine_loss", "no_refine_data", "all_turns"):
        chosen = apply_mode(conversation, mode)
        trained[mode] = None if chosen is None else [turn.trained for turn in chosen.player_turns]
    assert trained == {
        "full": [False, True, False, False, True, True],
        "no_refine_loss": [False, True, False, False, False, True],
        "no_refine_data": None,  # it holds errors, and what it would be without them is not known
        "all_turns": [False, True, True, True, True, True],  # not the acknowledgement
    }


def test_one_function_decides_what_marks_and_mode_make_of_a_turn() -> None:
    def turn(loss: bool | None, error: bool = False, refine: bool = False) -> MarkedMessage:
        return MarkedMessage("assistant", "a", loss, ("place",) if error else (), refine)

    table = {
        # loss, error, refine: full, no_refine_loss, no_refine_data, all_turns
        turn(True): "yyyy",
        turn(None): "yyyy",
        turn(False): "nnnn",
        turn(True, error=True): "nnny",
        turn(False, error=True): "nnny",
        turn(True, refine=True): "ynyy",
        turn(False, refine=True): "nnnn",
    }
    modes: tuple[Mode, ...] = ("full", "no_refine_loss", "no_refine_data", "all_turns")
    for case, wanted in table.items():
        assert "".join("ny"[is_trained(case, mode)] for mode in modes) == wanted


@pytest.mark.parametrize("mode", ["no_refine_loss", "no_refine_data", "all_turns"])
def test_a_mode_that_needs_marks_refuses_data_without_any(mode: Mode, tmp_path: Path) -> None:
    bare = written(tmp_path / "bare.json", "neither")
    assert main(["refine", "read", str(bare), "-o", str(tmp_path / "bare.jsonl")]) == 0
    with pytest.raises(UserError, match=f"--mode {mode} needs marks.*none of 1 conversations"):
        export([tmp_path / "bare.jsonl"], "messages", mode, tmp_path / "out")
    assert not (tmp_path / "out" / "train.jsonl").exists()
    export([tmp_path / "bare.jsonl"], "messages", "full", tmp_path / "full")
    write_data(tmp_path / "marked.jsonl", [erring_conversation()], {})
    # Marks in one of several files are enough: general conversations have none.
    export([tmp_path / "bare.jsonl", tmp_path / "marked.jsonl"], "messages", mode, tmp_path / "both")


def loaded(path: Path, *records: object) -> tuple[list[Conversation], ReadReport]:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    unfit = ReadReport()
    return list(read_any(path, unfit)), unfit


@pytest.mark.parametrize("marked_last", [True, False])
def test_marks_in_one_conversation_are_the_marks_of_the_data(marked_last: bool, tmp_path: Path) -> None:
    """What the mask of another one says is not guessed then, and the line does not say that there are no marks."""
    by_mask = {"messages": messages(loss=MASK)}
    named = {"messages": messages(loss=MASK, error=["none", "none", "place", "place", "none", "none"])}
    records = [by_mask, named] if marked_last else [named, by_mask]
    conversations, unfit = loaded(tmp_path / "x.jsonl", *records)
    masked, own = conversations if marked_last else conversations[::-1]
    assert marks(masked) == MASK_ALONE
    assert marks(own) == MASK_AND_NAMED
    assert [line.partition(":")[0] for line in unfit.list_masked()] == ["3 masked turns not marked as errors"]


def test_masked_turns_that_mean_nothing_here_are_counted(tmp_path: Path) -> None:
    """Of agents that write code, say."""
    rows = messages(loss=MASK)
    for row in rows:
        row["content"] = row["content"].replace("Action: ", "```bash\n")
    _, unfit = loaded(tmp_path / "x.jsonl", {"messages": rows})
    assert unfit.masked_errors == 0
    (line,) = unfit.list_masked()
    assert line.startswith("3 masked turns ")
    assert "Action: ..." in line


@pytest.mark.parametrize(
    "text", ["OK. I'll answer as\nThought: ...\nAction: ...", "Sure!\nThought: why\nAction: what I do"]
)
def test_an_opening_acknowledgement_that_quotes_the_form_is_no_error(text: str) -> None:
    rows = messages(loss=MASK)
    rows[REPLIES[0]]["content"] = text
    unfit = ReadReport()
    assert marks(to_conversation({"messages": rows}, "x", "y", unfit)) == BY_MASK
    assert unfit.masked_alone == 1


def test_one_turn_is_spoken_of_in_the_singular(tmp_path: Path) -> None:
    loss = [True, True, False, True, True, True]
    _, unfit = loaded(tmp_path / "x.jsonl", {"messages": messages(loss=loss)})
    (line,) = unfit.list_masked()
    assert line.startswith("1 masked turn ")


def test_data_in_another_layout_is_told_the_command_that_reads_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps({"messages": messages()}) + "\n")
    assert main(["refine", "export", str(path), "--format", "messages", "-o", str(tmp_path / "out")]) == 2
    assert f"evalharness refine read {path} -o data.jsonl" in " ".join(capsys.readouterr().err.split())


def test_parquet_whose_text_is_no_utf_8_is_refused_in_one_line(tmp_path: Path) -> None:
    text = pyarrow.array([b"\xe0 no text"], pyarrow.binary()).cast(pyarrow.string(), safe=False)
    pyarrow.parquet.write_table(pyarrow.table({"messages": text}), tmp_path / "x.parquet")
    with pytest.raises(UserError, match="parquet"):
        list(read_any(tmp_path / "x.parquet", ReadReport()))


def test_a_conversation_that_cannot_be_cut_is_left_out_and_counted(tmp_path: Path) -> None:
    released = to_conversation(TABLE["ShareGPT, loss"][0], "x", "y")
    write_data(tmp_path / "x.jsonl", [released, clean_conversation()], {})
    done = export([tmp_path / "x.jsonl"], "messages", "no_refine_data", tmp_path / "out")
    assert (done.conversations, done.records) == (2, 1)
    assert list(done.left_out.values()) == [1]
    write_data(tmp_path / "x.jsonl", [released], {})
    with pytest.raises(UserError, match="none of 1"):
        export([tmp_path / "x.jsonl"], "messages", "no_refine_data", tmp_path / "none")
