"""Raters of training data: its own marks, a model, a person, and the simulator where one answered."""

from __future__ import annotations

import asyncio
import csv
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from chat_server import ChatServer
from command_line import evalharness

from evalharness.cli import main
from evalharness.training.datasets.conversation import Conversation, MarkedMessage, write_data

from .scripted_judge import judge

WRONG = ("parameter", "place", "logic")


def conversation(number: int, **metadata: Any) -> Conversation:
    """Six turns: the second and third are marked, and refused by whatever answered."""
    messages = [MarkedMessage("user", "Now it is your turn.\nGoal: find the key\nObservation: A room.")]
    for turn in range(6):
        bad = turn in (1, 2)
        said = f"Thought: I think of {number}.\nAction: go to {number} {turn}"
        kinds = (WRONG[turn],) if bad else ()
        messages.append(MarkedMessage("assistant", said, loss=not bad, error=kinds, refine=turn == 3))
        messages.append(MarkedMessage("user", f"Observation: {'No.' if bad else f'Place {number} {turn}.'}"))
    return Conversation(f"s{number}", "trajectories", "cellar", None, tuple(messages), metadata)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.jsonl"
    write_data(path, [conversation(number) for number in range(5)], {})
    return path


def labelled(folder: Path, wrong: set[int]) -> Path:
    """A CSV file with a person's labels of the first conversation of a data set."""
    rows = list(csv.DictReader(folder.open(encoding="utf-8")))
    for row in rows:
        row["label"] = "wrong" if int(row["turn"]) in wrong else "right"
    with folder.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
    return folder


async def judged(data: Path) -> None:
    """By a judge that goes by what the world answered."""
    async with ChatServer(answer=judge(lambda turn: turn["observation"] == "No.")).running() as server:
        words = ("judge", data, "--judge", server.url, "--judge-name", "toy")
        done = await asyncio.to_thread(evalharness, dict(os.environ), *words)
        assert done.returncode == 0, done.stderr
        assert "parameter" not in json.dumps(server.requests[-1]["messages"]).replace("- parameter: ", "")


def test_a_judge_a_person_and_the_marks_are_compared(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The judge sees what the world answered and no mark; the person calls one marked turn right."""
    asyncio.run(judged(data))
    table = tmp_path / "labels.csv"
    assert main(["judge", "label", str(data), "--rater", "ann", "--turns", "30", "--export", str(table)]) == 0
    labelled(table, {2})
    assert main(["judge", "label", str(data), "--rater", "ann", "--turns", "30", "--import", str(table)]) == 0
    found = tmp_path / "found.json"
    (judgements,) = (data.parent / "data.judged" / "judgements").iterdir()
    raters = ["marks", str(judgements), str(data.parent / "data.judged" / "labels" / "ann")]
    assert main(["judge", "agreement", *raters, "--json", str(found)]) == 0
    model, person = json.loads(found.read_text())
    assert (model["n"], model["kappa"]) == (30, 1.0)
    assert person["counts"] == {"right_right": 20, "right_wrong": 0, "wrong_right": 5, "wrong_wrong": 5}
    balanced = ["judge", "label", str(data), "--rater", "bob", "--balanced", "--turns"]
    assert main([*balanced, "20", "--export", str(table)]) == 0
    labelled(table, {2})
    assert main([*balanced, "20", "--import", str(table)]) == 0
    raters = [str(data.parent / "data.judged" / "labels" / "bob"), str(judgements)]
    assert main(["judge", "agreement", *raters, "--json", str(found)]) == 0
    drawn, published = json.loads(found.read_text())
    counts = drawn["counts"]
    assert (
        counts["right_right"] + counts["wrong_right"] == counts["right_wrong"] + counts["wrong_wrong"] == 10
    )
    assert published["counts"]["right_right"] == 47
    assert main([*balanced, "22", "--export", str(table)]) == 2
    assert "calls 10 turns wrong, and 11 are needed" in capsys.readouterr().err
    exhibit = tmp_path / "paper.csv"
    assert main(["paper", "judge", str(data), "--csv", str(exhibit)]) == 0
    rows = {row["name"]: row["kappa_marks"] for row in csv.DictReader(exhibit.open(encoding="utf-8"))}
    assert list(rows) == [
        "human x GPT-4",
        "marks x ann",
        "marks x bob",
        "marks x toy",
        "ann x toy",
        "bob x toy",
    ]
    assert (rows["human x GPT-4"], rows["marks x toy"], rows["bob x toy"]) == ("", "\u2021", "")


def test_the_simulator_is_a_rater_only_where_one_answered(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["judge", "agreement", "marks", "simulator", "--run", str(data)]) == 2
    assert "simulator" in capsys.readouterr().err
    grounded = tmp_path / "grounded.jsonl"
    valid = [True, False, False, True, True, True]
    write_data(grounded, [conversation(number, valid=valid) for number in range(5)], {})
    found = tmp_path / "found.json"
    assert (
        main(["judge", "agreement", "marks", "simulator", "--run", str(grounded), "--json", str(found)]) == 0
    )
    assert json.loads(found.read_text())[0]["counts"]["wrong_wrong"] == 10


def test_labels_are_refused_for_a_data_set_that_has_changed(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    export = ["judge", "label", str(data), "--export", str(tmp_path / "labels.csv")]
    assert main(export) == 0
    assert main(export) == 0
    other = replace(conversation(0), messages=conversation(7).messages)
    write_data(data, [other], {})
    assert main(export) == 2
    assert "data.judged" in capsys.readouterr().err


def test_one_task_twice_in_a_mixture_is_judged_twice(tmp_path: Path) -> None:
    data = tmp_path / "mixed.jsonl"
    facts = {"task_id": "cellar/open/001", "suite_seed": 100, "variant": 0}
    write_data(data, [conversation(number, **facts) for number in range(2)], {})
    table = tmp_path / "labels.csv"
    assert main(["judge", "label", str(data), "--export", str(table)]) == 0
    assert len(list(csv.DictReader(table.open(encoding="utf-8")))) == 12


def test_marks_are_of_data_sets(tmp_path: Path, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["judge", "agreement", "marks", "simulator"]) == 2
    assert "--run" in capsys.readouterr().err
