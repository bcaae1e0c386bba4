"""People label: what is kept, what goes out and comes in as CSV, what is refused."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalharness.base.errors import UserError
from evalharness.cli import main
from evalharness.judge.draw import load_turns
from evalharness.judge.judging import JudgementFolder, judges_of
from evalharness.judge.labels import (
    LabelFolder,
    guard_cell,
    read_labels,
    read_labels_csv,
    unguard_cell,
)
from evalharness.judge.verdict import Verdict, check_verdict
from evalharness.models.many_requests import Answer
from evalharness.records.answers import make_manifest

from .runs import change_turn, make_judged_run

FORMULA = '=HYPERLINK("http://example.invalid","x")'


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return make_judged_run(tmp_path / "run", tasks=2, turns=5)


@pytest.mark.parametrize(
    "link", ["labels", "labels/person", "labels/person/labels.jsonl", "labels/person/.lock"]
)
def test_no_label_is_written_where_a_link_leads(
    link: str, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (run / link).parent.mkdir(parents=True, exist_ok=True)
    (run / link).symlink_to(outside / "file" if "." in link else outside)
    table = tmp_path / "labels.csv"
    task, sample, turn = next(iter(load_turns(run).turns))
    table.write_text(f"task_id,sample,turn,label,kind,note\n{task},{sample},{turn},right,,\n")
    assert main(["judge", "label", str(run), "--import", str(table)]) == 2
    assert f"{run / link}" in capsys.readouterr().err
    assert list(outside.iterdir()) == []


def test_labels_are_kept_as_they_are_made_and_the_last_one_counts(run: Path) -> None:
    loaded = load_turns(run)
    keys = [turn.key for turn in loaded.draw_turns(4, 0)]
    with LabelFolder(loaded, "ann") as store:
        store.open({"turns": 4, "seed": 0})
        store.add(keys[0], Verdict(True, "place", "too far"))
        store.add(keys[0], Verdict(False, None, ""))
        store.add(keys[1], Verdict(True))
        store.add(keys[2], Verdict(True))
        store.add(keys[2], Verdict(None))
        with pytest.raises(UserError, match=r"is writing"), LabelFolder(loaded, "ann"):
            pass
        with LabelFolder(loaded, "bob") as other:  # a second person at the same time
            other.open({"turns": 4, "seed": 0})
            other.add(keys[0], Verdict(True))
        with pytest.raises(UserError, match="has no babyai/agentboard/000 #0 turn 6"):
            store.add(("babyai/agentboard/000", 0, 6), Verdict(True))
    with (run / "labels" / "ann" / "labels.jsonl").open("ab") as file:
        file.write(b'{"task_id": "to')  # as a kill leaves it
    with LabelFolder(loaded, "ann") as store:
        store.open({"turns": 4, "seed": 0})
        assert store.labels == {keys[0]: Verdict(False), keys[1]: Verdict(True)}
    assert read_labels(run / "labels" / "ann").verdicts == {keys[0]: Verdict(False), keys[1]: Verdict(True)}
    assert read_labels(run / "labels" / "bob").verdicts == {keys[0]: Verdict(True)}


def test_a_run_that_got_more_samples_keeps_its_labels_and_another_run_refuses_them(run: Path) -> None:
    with LabelFolder(load_turns(run), "ann") as store:
        store.open({"turns": 4, "seed": 0})
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["identity"]["config"]["samples"] = 4
    (run / "manifest.json").write_text(json.dumps(manifest))
    with LabelFolder(load_turns(run), "ann") as store:
        store.open({"turns": 4, "seed": 0})
    manifest["identity"]["config"]["temperature"] = 0.7
    (run / "manifest.json").write_text(json.dumps(manifest))
    with LabelFolder(load_turns(run), "ann") as store, pytest.raises(UserError, match="run_digest"):
        store.open({"turns": 4, "seed": 0})


def test_a_run_that_was_played_anew_takes_no_labels_and_judgements_of_the_run_before(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The manifest is the same. A table without the column of hashes is taken by the turns' names."""
    loaded = load_turns(run)
    drawn = loaded.draw_turns(None, 0)
    with LabelFolder(loaded, "ann") as store, JudgementFolder(run / "judgements" / "toy") as judge:
        store.open({"turns": None, "seed": 0})
        judge.load_or_refuse(make_manifest({"kind": "judgements", "run_digest": loaded.digest}, "toy"))
        judge.note_start(drawn={"turns": None, "seed": 0})
        for turn in drawn:
            store.add(turn.key, Verdict(False))
            judge.add(turn, Answer("key", 1, '{"reason": "so", "verdict": "wrong", "kind": "plan"}'))
    table = tmp_path / "labels.csv"
    assert main(["judge", "label", str(run), "--rater", "ann", "--export", str(table)]) == 0
    apart = shutil.copytree(run / "judgements" / "toy", tmp_path / "apart")
    agreement = ["judge", "agreement", "--run", str(run), "simulator"]
    raters = [str(run / "labels" / "ann"), str(run / "judgements" / "toy"), str(apart), str(table)]
    assert [main([*agreement, rater]) for rater in raters] == [0] * 4
    change_turn(run, 2, observation="Another room.")
    capsys.readouterr()
    for rater in raters:
        assert main([*agreement, rater]) == 2
        assert "has another babyai/agentboard/000 #0 turn 2" in capsys.readouterr().err
    assert judges_of(run) == []
    assert main(["judge", "label", str(run), "--rater", "bob", "--import", str(table)]) == 2
    with LabelFolder(load_turns(run), "ann") as store, pytest.raises(UserError, match="has another"):
        store.open({"turns": None, "seed": 0})
    with LabelFolder(load_turns(run), "bob") as store:
        store.open({"turns": None, "seed": 0})
        for turn in load_turns(run).draw_turns(None, 0):
            store.add(turn.key, Verdict(False))
    bob = shutil.copytree(run / "labels" / "bob", tmp_path / "bob")
    lines = [line.rpartition(",")[0] for line in table.read_text().splitlines()]
    table.write_text("\n".join(lines))
    assert main([*agreement, str(table)]) == 0
    assert main(["judge", "agreement", str(apart), str(bob)]) == 2
    assert "judge" in capsys.readouterr().err


def test_csv_out_and_in_and_what_it_never_does(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a person wrote comes back; what a model wrote is no formula and no control character."""
    for number in range(1, 6):
        change_turn(run, number, action=FORMULA, thought="@SUM(1)", observation="\x1b[31m-1+1", valid=True)
    table = tmp_path / "labels.csv"
    words = ["judge", "label", str(run), "--turns", "20", "--rater", "ann"]
    assert main([*words, "--export", str(table)]) == 0
    rows = list(csv.DictReader(table.open()))
    assert len(rows) == 20
    for row in rows:
        assert not any(cell.startswith(("=", "+", "-", "@")) for cell in row.values())
    hostile = next(row for row in rows if row["task_id"] == "babyai/agentboard/000")
    assert hostile["action"] == f"'{FORMULA}"
    assert hostile["observation"] == "\\x1b[31m-1+1"
    rows[0] |= {"label": "wrong", "kind": "logic", "note": "'=so it is"}
    rows[1] |= {"label": "Right"}
    with table.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
    assert main([*words, "--import", str(table)]) == 0
    assert "2 labels imported, 0 were already" in capsys.readouterr().err
    assert main([*words, "--import", str(table)]) == 0
    assert "0 labels imported, 2 were already" in capsys.readouterr().err
    verdicts = read_labels(run / "labels" / "ann").verdicts
    assert sorted((v.wrong, v.kind, v.note) for v in verdicts.values()) == [
        (False, None, ""),
        (True, "logic", "=so it is"),
    ]
    assert main([*words, "--export", str(table)]) == 0
    assert next(csv.DictReader(table.open()))["note"] == "'=so it is"


def test_bad_tables_change_nothing(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = "babyai/agentboard/000,0,1,right,,\n"
    for line, message in (
        ("babyai/agentboard/000,0,9,right,,\n", "has no babyai/agentboard/000 #0 turn 9"),
        ("babyai/agentboard/000,0,2,right,place,\n", "only a wrong turn has a kind"),
        ("babyai/agentboard/000,0,2,wrong,silly,\n", "there is no kind 'silly'"),
        ("babyai/agentboard/000,0,1,wrong,,\n", "occurs twice"),
        (f"babyai/agentboard/000,0,2,wrong,,{'x' * 3000}\n", "at most 2000 characters"),
    ):
        table = tmp_path / "t.csv"
        table.write_text(f"task_id,sample,turn,label,kind,note\n{good}{line}")
        assert main(["judge", "label", str(run), "--import", str(table)]) == 2
        assert message in capsys.readouterr().err
        assert not (run / "labels").exists()
    for words, message in (
        (["--rater", "../x"], "--rater"),
        (["--turns", "0"], "--turns is at least 1"),
        (["--import", str(tmp_path / "none.csv")], "cannot read"),
    ):
        assert main(["judge", "label", str(run), *words]) == 2
        assert message in capsys.readouterr().err


def test_a_note_that_no_file_can_hold_is_written_all_the_same(run: Path, tmp_path: Path) -> None:
    """JSON can spell half a surrogate pair, so a page can send one."""
    key = "babyai/agentboard/000", 0, 1
    with LabelFolder(load_turns(run), "ann") as store:
        store.open({"turns": None, "seed": 0})
        store.add(key, check_verdict(True, "plan", json.loads('"half \\ud800"')))
    table = tmp_path / "t.csv"
    assert main(["judge", "label", str(run), "--rater", "ann", "--export", str(table)]) == 0
    assert read_labels_csv(table)[key].note == "half ?"


@given(st.text())
def test_a_guarded_cell_is_no_formula_and_comes_back(text: str) -> None:
    cell = guard_cell(text)
    assert unguard_cell(cell) == text
    assert not cell.lstrip(" ").startswith(("=", "+", "-", "@", "\t", "\r", "\n"))
