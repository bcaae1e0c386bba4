"""Others' layouts: a field with meaning is read or the record is refused by its name, and what goes is named."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from made_runs import make_run

from evalharness.cli import main
from evalharness.training.datasets.conversation import Conversation, UnfitError, read_data, read_manifest
from evalharness.training.datasets.layouts import ReadReport, read_any, to_conversation

ASKED, ANSWER, OTHER = "Put a lamp on the shelf.", "Thought: I go.\nAction: go to chest 1", "Action: look"
USER, AGENT = {"role": "user", "content": ASKED}, {"role": "assistant", "content": ANSWER}
TALK = f"u:{ASKED}|a:{ANSWER}"
GAME = [
    {"role": "DM", "Thought": "secret", "Observation": ASKED, "place_error": False},
    {"role": "Player", "Thought": "I go.", "Action": "go to chest 1"},
    {"role": "DM", "Thought": "secret", "Observation": "You cannot.", "place_error": True},
    {"role": "Player", "Thought": "Thought: I look.", "Action": "Action: look"},
]


def act(action: str | None) -> list[dict[str, Any]]:
    return [{"tool_call_id": "c", "function_name": "act", "arguments": {"action": action}}]


SEEN = {"results": [{"source_call_id": "c", "content": "A lamp."}]}
ATIF = {"schema_version": "ATIF-v1.7", "session_id": "run"}
READ: dict[str, tuple[Any, str]] = {
    "ATIF, a turn in two steps": (
        ATIF | {"steps": [
            {"source": "system", "message": "Be good."}, {"source": "user", "message": ASKED},
            {"source": "agent", "message": ANSWER, "reasoning_content": "I go."},
            {"source": "agent", "message": "", "tool_calls": act("go to chest 1"), "observation": SEEN},
            {"source": "agent", "message": "Hm."},
            {"source": "agent", "message": "", "tool_calls": act(None), "observation": SEEN},
        ]},
        f"s:Be good.|u:{ASKED}|a:{ANSWER}|u:Observation: A lamp.|a:Hm.|u:A lamp.",
    ),
    "ATIF, a turn in one step": (
        ATIF | {"steps": [
            {"source": "user", "message": ASKED},
            {"source": "agent", "message": "I go.", "reasoning_content": "Where?", "tool_calls": act("go to chest 1"),
             "observation": SEEN},
            {"source": "agent", "message": "", "tool_calls": act("take lamp")},
        ]},
        f"u:{ASKED}|a:<think>\nWhere?\n</think>\n\n{ANSWER}|u:Observation: A lamp.|a:Action: take lamp",
    ),
    "prompt and completion": ({"prompt": ASKED, "completion": ANSWER}, TALK),
    "prompt and completion, messages": ({"prompt": [USER], "completion": [AGENT]}, TALK),
    "KTO, desired": ({"prompt": ASKED, "completion": ANSWER, "label": True}, TALK),
    "LLaMA-Factory's KTO, desired": ({"messages": [USER, AGENT], "kto_tag": True}, TALK),
    "a question": ({"question": ASKED, "answer": ANSWER}, TALK),
    "alpaca": (
        {"instruction": "Do it.", "input": ASKED, "output": ANSWER, "system": "Be good."},
        f"s:Be good.|u:Do it.\n{ASKED}|a:{ANSWER}",
    ),
    "reasoning": (
        {"messages": [USER, {**AGENT, "reasoning_content": "Hm."}]}, f"u:{ASKED}|a:<think>\nHm.\n</think>\n\n{ANSWER}",
    ),
    "AgentRefine": (
        {"trajectory": GAME}, f"u:{ASKED}|-:{ANSWER}|u:Observation: You cannot.|a:Thought: I look.\nAction: look",
    ),
    "a step's action and answer": (
        [{"observation": ASKED}, {"thought": "I go.", "action": "go to chest 1", "observation": "A lamp."}],
        f"u:{ASKED}|a:{ANSWER}|u:Observation: A lamp.",
    ),
    "a turn judged wrong": (
        {"messages": [USER, {**AGENT, "valid": False}, USER, AGENT]}, f"u:{ASKED}|-:{ANSWER}|{TALK}",
    ),
    "a goal beside a trajectory that begins with an action": (
        {"task": ASKED, "steps": [{"thought": "I go.", "action": "go to chest 1", "observation": "A lamp."}]},
        f"{TALK}|u:Observation: A lamp.",
    ),
    "reasoning beside an answer": (
        {"prompt": ASKED, "completion": ANSWER, "reasoning": "Where?"},
        f"u:{ASKED}|a:<think>\nWhere?\n</think>\n\n{ANSWER}",
    ),
    "a mask by another name": (
        {"messages": [USER, {**AGENT, "trainable": False}, USER, AGENT]}, f"u:{ASKED}|-:{ANSWER}|{TALK}",
    ),
    "a success": ({"messages": [USER, AGENT], "metadata": {"success": True, "reward": 0.5}}, TALK),
}  # fmt: skip


def written(conversation: Conversation) -> str:
    """Who says what; `-` is an assistant's turn that is not trained."""
    return "|".join(
        f"{'-' if m.role == 'assistant' and not m.trained else m.role[0]}:{m.content}"
        for m in conversation.messages
    )


@pytest.mark.parametrize("name", READ)
def test_a_layout_is_read_with_all_that_it_says(name: str) -> None:
    record, wanted = READ[name]
    assert written(to_conversation(record, "x", "y")) == wanted


CHAT = {"messages": [USER, AGENT]}
REFUSED: dict[str, tuple[Any, str]] = {
    "KTO, undesired": ({"prompt": ASKED, "completion": ANSWER, "label": False}, "'label'"),
    "LLaMA-Factory's KTO, undesired": (CHAT | {"kto_tag": "false"}, "'kto_tag'"),
    "a failure": (CHAT | {"success": 0}, "'success'"),
    "a failure, within": (CHAT | {"metadata": {"success": False}}, "'metadata.success'"),
    "no reward": (CHAT | {"reward": 0.0}, "'reward'"),
    "rewards of nothing": (CHAT | {"rewards": [0, 0]}, "'rewards'"),
    "a bad outcome": (CHAT | {"outcome": "failed"}, "'outcome'"),
    "an unwanted label": (CHAT | {"label": "undesirable"}, "'label'"),
    "a label below 0": (CHAT | {"label": -1}, "'label'"),
    "a list of bad labels": (CHAT | {"label": [False]}, "'label'"),
    "no reward as a text": (CHAT | {"reward": "0.0"}, "'reward'"),
    "no reward in all": (CHAT | {"reward": {"total": 0, "steps": 9}}, "'reward.total'"),
    "a failure, in camel case": (CHAT | {"isSuccess": False}, "'isSuccess'"),
    "a failure, in a text of JSON": (CHAT | {"metadata": '{"success": false}'}, "'metadata.success'"),
    "a fault": (CHAT | {"failed": True}, "'failed'"),
    "a weight below 0": (CHAT | {"weight": -1}, "'weight'"),
    "a mask that may mean either": ({"messages": [USER, {**AGENT, "mask": 0}]}, "'mask'"),
    "reasoning in parts": ({"messages": [USER, {**AGENT, "reasoning_content": ["a"]}]}, "reasoning is no text"),
    "a weight of nothing": (CHAT | {"weight": 0}, "'weight'"),
    "no answer": ({"prompt": ASKED}, "no message of the assistant"),
    "two answers": ({"prompt": ASKED, "output": ANSWER, "response": OTHER}, "several answers: response, output"),
    "an action in the text and another beside it": ([USER, {**AGENT, "action": "look"}], "in its text and another"),
    "preferences": ({"prompt": ASKED, "chosen": ANSWER, "rejected": OTHER}, "'chosen'"),
    "ATIF, another tool": (
        ATIF | {"steps": [{"source": "user", "message": ASKED},
                          {"source": "agent", "message": "", "tool_calls": [{"function_name": "find"}]}]},
        "another tool",
    ),
    "ATIF, several calls": (
        ATIF | {"steps": [{"source": "user", "message": ASKED},
                          {"source": "agent", "message": "", "tool_calls": act("look") * 2}]}, "several tools",
    ),
    "calls of tools": ({"messages": [USER, {**AGENT, "tool_calls": [{"id": "c"}]}]}, "'tool_calls'"),
    "an earlier conversation beside the prompt": (
        {"prompt": ASKED, "completion": ANSWER, "history": [["a", "b"]]}, "'history'",
    ),
    "a picture": (CHAT | {"images": ["a.png"]}, "'images'"),
    "a picture in a message": ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}, AGENT]}, "no text"),
    "spans of a turn": ({"messages": [USER, {**AGENT, "train_detail": [{}]}]}, "'train_detail'"),
    "two system texts": ({"messages": [{"role": "system", "content": "a"}, USER, AGENT], "system": "b"}, "'system'"),
    "ours with more": (
        {"id": "x", "source": "y", "world": "", "task_hash": None, "messages": CHAT["messages"], "tools": ["act"]},
        "'tools'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_must_not_or_cannot_be_trained_is_refused_by_name(name: str) -> None:
    record, why = REFUSED[name]
    with pytest.raises(UnfitError, match=why):
        to_conversation(record, "x", "y")


def test_what_is_not_read_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = {
        "messages": [{**USER, "time": 3, "reasoning": "a"}, {**AGENT, "weight": 0.5, "text": "b"}],
        "about": {"steps": [1], "level": 2}, "score": float("nan"),
    }  # fmt: skip
    (tmp_path / "x.jsonl").write_text(json.dumps(record))
    out = tmp_path / "out.jsonl"
    assert main(["refine", "read", str(tmp_path / "x.jsonl"), "-o", str(out)]) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "fields not read: about.steps (1)" in said
    assert "time (1), reasoning (1), text (1)" in said
    assert "between 0 and 1" in said
    assert "1 values are NaN" in said
    (conversation,) = read_data(out, [])
    assert conversation.metadata == {"about.level": 2}
    manifest = read_manifest(out)
    assert manifest is not None
    assert manifest["made"]["not_read"] == {"about.steps": 1}


FILES: dict[str, tuple[bytes, int, list[str]]] = {
    "x.jsonl.gz": (gzip.compress(json.dumps(CHAT).encode() + b"\n"), 1, []),
    "x.json": (json.dumps(CHAT, indent=2).encode(), 1, []),
    "torn.jsonl": (json.dumps(CHAT).encode() + b"\n{", 1, ["not JSON"]),
    "nan.jsonl": (b'{"score": NaN, "more": [-Infinity, 1e999], ' + json.dumps(CHAT).encode()[1:], 1, []),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_each_kind_of_file_is_read_and_can_be_read_again(name: str, tmp_path: Path) -> None:
    content, count, reasons = FILES[name]
    (tmp_path / name).write_bytes(content)
    out = tmp_path / "out.jsonl"
    assert main(["refine", "read", str(tmp_path / name), "-o", str(out)]) == 0
    broken: list[Any] = []
    assert [written(conversation) for conversation in read_data(out, broken)] == [TALK] * count
    assert not broken
    unfit = ReadReport()
    assert len(list(read_any(tmp_path / name, unfit))) == count
    assert [reason.split(" (")[0] for reason in unfit.reasons] == reasons


def test_parquet_holds_text_and_numbers_that_can_be_written(tmp_path: Path) -> None:
    rows = [
        {"prompt": ASKED.encode(), "completion": ANSWER.encode(), "about": {"x": float("nan")}, "y": float("inf")},
        {"prompt": ASKED.encode(), "completion": b"\xff\xfe", "about": {"x": 1.0}, "y": 2.0},
    ]  # fmt: skip
    path, out = tmp_path / "x.parquet", tmp_path / "out.jsonl"
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    assert main(["refine", "read", str(path), "-o", str(out)]) == 0
    broken: list[Any] = []
    assert [written(conversation) for conversation in read_data(out, broken)] == [TALK]
    assert not broken
    manifest = read_manifest(out)
    assert manifest is not None
    assert [("'completion'" in why, n) for why, n in manifest["made"]["left_out"].items()] == [(True, 1)]


def test_our_own_export_of_a_run_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An episode that did not solve its task is left out, and the field that says so is named."""
    run = make_run(tmp_path / "run", {"babyai": [(True, 1.0), (False, 0.0)]})
    chat, out = tmp_path / "chat.jsonl", tmp_path / "out.jsonl"
    assert main(["export", str(run), "--format", "openai-chat", "-o", str(chat)]) == 0
    assert main(["refine", "read", str(chat), "-o", str(out), "--allow-eval-tasks"]) == 0
    (conversation,) = read_data(out, [])
    assert [turn.content for turn in conversation.player_turns] == ["Thought: go\nAction: look"] * 3
    assert "success'" in capsys.readouterr().err
