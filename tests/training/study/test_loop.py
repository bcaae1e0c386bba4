"""Rounds of play, correction and training: which jobs they are, that a kill changes nothing, and their table."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import study_program
from made_runs import make_run
from refine_conversations import clean_conversation, erring_conversation

from evalharness.cli import main
from evalharness.cli.study import known_options
from evalharness.runs.study import LOOP, run_folders
from evalharness.training.datasets.conversation import write_data
from evalharness.training.study.file import KnownOptions
from evalharness.training.study.folder import StudyFolder
from evalharness.training.study.jobs import read_progress, work
from evalharness.training.study.loop import plan_loop, read_loop
from evalharness.training.study.plan import Plan

PROGRAM = [sys.executable, str(study_program.__file__)]
FILE = """\
data: own.jsonl
play: {tasks: alfworld, draw: 8}
correct: {per_episode: 2}
from_runs: {per_task: 1}
tune: {max_steps: 3}
evaluate: {tasks: alfworld, draw: 4}
"""


@pytest.fixture(scope="module")
def known() -> KnownOptions:
    return known_options()


def planned(folder: Path, known: KnownOptions, **given: Any) -> Plan:
    own = folder.parent / "own.jsonl"
    own.write_text("{}\n")
    (folder / "loop.yaml").write_text(FILE.replace("own.jsonl", str(own)))
    loop, beside = read_loop(folder / "loop.yaml", known, **given)
    return plan_loop(loop, folder / "loop", beside)


def after(words: tuple[str, ...], flag: str) -> str:
    return words[words.index(flag) + 1]


def test_each_round_plays_and_trains_the_model_of_the_one_before(tmp_path: Path, known: KnownOptions) -> None:
    plan = planned(tmp_path, known, model="base/", rounds=2)
    jobs = {name: job.words for name, job in plan.jobs.items()}
    models = [after(jobs[f"data played-{k}"], "--model") for k in (1, 2)]
    assert models == ["base/", str(tmp_path / "loop" / "models" / "round-1")]
    assert [after(jobs[f"training round-{k}"], "--model") for k in (1, 2)] == models
    assert [after(jobs[f"data played-{k}"], "--suite-seed") for k in (1, 2)] == ["401", "402"]
    assert {after(jobs[f"run round-{k}"], "--suite-seed") for k in (0, 1, 2)} == {"301"}
    made = [str(tmp_path / "loop" / "data" / f"new-{k}.jsonl") for k in (1, 2)]
    assert jobs["data all-2"][2:6] == (str(tmp_path.parent / "own.jsonl"), *made, "--all")
    assert {after(jobs[f"data {name}-2"], "--exclude-suite-seeds") for name in ("new", "all")} == {"301"}
    for job in plan.jobs.values():
        assert set(job.needs) <= jobs.keys()
    assert plan.jobs["data played-2"].needs == ("training round-1",)


def test_rejection_sampling_keeps_the_good_ones_of_several_samples(
    tmp_path: Path, known: KnownOptions
) -> None:
    corrected, kept = planned(tmp_path, known), planned(tmp_path, known, rejection=4)
    played, new = (kept.jobs[f"data {name}-1"].words for name in ("played", "new"))
    assert (played[0], after(played, "-n")) == ("bon", "4")
    assert new[:2] == ("refine", "from-runs")
    assert after(new, "--per-task") == "1"
    other = {name for name in kept.jobs if kept.jobs[name].words != corrected.jobs[name].words}
    assert other == {f"data {name}-{k}" for name in ("played", "new") for k in (1, 2, 3)}


@pytest.mark.parametrize(
    ("text", "words", "why"),
    [
        ("plya: {}\n", (), "line 1, plya: no such key; did you mean 'play'?"),
        (
            "suite_seed: 300\n",
            (),
            "validation_seed 301 is among the suites that the rounds play (300 to 302)",
        ),
        ("suite_seed: 299\n", ("--rounds", "3"), "validation_seed 301 is among"),
        ("play: {suite_seed: 4}\n", (), "line 1, play.suite_seed: the study sets it"),
        ("correct: {allow_eval_tasks: true}\n", (), "line 1, correct.allow_eval_tasks: the study sets it"),
        ("correct: {exclude_suite_seeds: 9}\n", (), "the study sets it"),
        ("rounds: 2\n", ("--rounds", "0"), "rounds: Input should be greater than or equal to 1"),
        ("rounds: 2\n", ("--rejection", "1"), "rejection: Input should be greater than or equal to 2"),
        ("rounds: 2\n", ("--model", "/nowhere/at/all"), "no such model folder"),
    ],
)
def test_what_cannot_be_played_is_said_in_a_line(
    text: str, words: tuple[str, ...], why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "loop.yaml").write_text(text)
    given = ["refine", "loop", str(tmp_path / "loop.yaml"), *words, "-o", str(tmp_path / "loop")]
    assert main(given) == 2
    error = capsys.readouterr().err
    assert why in error
    assert len(error.splitlines()) == 1
    assert not (tmp_path / "loop").exists()


# --- kills -------------------------------------------------------------------------------------------------------

KILLED = """\
import sys
from pathlib import Path
sys.path[:0] = sys.argv[2:]
from test_loop import known_options, planned, session
here = Path(sys.argv[1])
session(planned(here, known_options(), rounds=2), here)
"""


def session(plan: Plan, here: Path) -> int:
    """One call of the loop's command, with a program that makes nothing real; how many jobs are done."""
    (here / "notes").mkdir(exist_ok=True)
    with StudyFolder(here / "loop", LOOP) as store:
        store.begin("", plan)
        progress = read_progress(plan, here / "loop")
        asyncio.run(work(progress, here / "loop", (None,), [*PROGRAM, str(here / "notes")]))
        store.note(progress)
    return progress.count("done")


def starts(here: Path) -> list[str]:
    path = here / "notes" / "starts"
    return [" ".join(line.split()[:2]) for line in path.read_text().splitlines()] if path.exists() else []


def holds(here: Path) -> dict[str, str]:
    """The folder's files and what is in them, but for the seconds that jobs took."""
    files = {
        str(path.relative_to(here)): path.read_text()
        for path in sorted((here / "loop").rglob("*"))
        if path.is_file() and path.suffix != ".lock"
    }
    ledger = [json.loads(line) for line in files["loop/jobs.jsonl"].splitlines()]
    files["loop/jobs.jsonl"] = json.dumps([{**line, "seconds": 0} for line in ledger])
    return files


@pytest.mark.faults
@pytest.mark.slow
@pytest.mark.parametrize(
    "stage", ["run played-2", "data new-2.jsonl", "data all-2.jsonl", "training round-2", "run round-1"]
)
def test_a_kill_in_any_stage_and_the_same_command_again_give_the_same_folder(
    stage: str, tmp_path: Path, known: KnownOptions
) -> None:
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    for folder in (killed, whole):
        (folder / "notes").mkdir(parents=True)
    hang = killed / "notes" / f"hang-{stage.replace(' ', '-')}"
    hang.touch()
    paths = [str(Path(__file__).parent), str(Path(study_program.__file__ or "").parent)]
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(killed), *paths])
    while stage not in starts(killed):
        assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.wait()
    hang.unlink()
    assert session(planned(killed, known, rounds=2), killed) == 11
    assert session(planned(whole, known, rounds=2), whole) == 11
    assert holds(killed) == holds(whole)
    again = {job: count for job, count in Counter(starts(killed)).items() if count > 1}
    assert again == {stage: 2}


def test_more_rounds_go_on_in_the_same_folder(tmp_path: Path, known: KnownOptions) -> None:
    session(planned(tmp_path, known, rounds=1), tmp_path)
    before = len(starts(tmp_path))
    assert session(planned(tmp_path, known, rounds=2), tmp_path) == 11
    assert len(starts(tmp_path)) - before == 5


# --- the table ---------------------------------------------------------------------------------------------------


@pytest.fixture
def loop(tmp_path: Path) -> Path:
    """Two of three rounds are done; the second's training failed."""
    folder = tmp_path / "loop"
    for number, solved in enumerate((1, 3)):
        outcomes = [(task < solved, float(task < solved)) for task in range(4)]
        make_run(folder / "runs" / f"round-{number}", {"alfworld": outcomes}, label={"round": str(number)})
    conversations = [erring_conversation("a"), clean_conversation("b")]
    write_data(folder / "data" / "new-1.jsonl", conversations, {})
    manifest = {
        "kind": "evalharness tuning",
        "data": {"conversations": 7},
        "training": {"trained_tokens": 1234},
    }
    (folder / "models" / "round-1").mkdir(parents=True)
    (folder / "models" / "round-1" / "manifest.json").write_text(json.dumps(manifest))
    lines = [("data played-1", 1800), ("training round-1", 3600), ("run round-0", 360)]
    (folder / "jobs.jsonl").write_text(
        "".join(json.dumps({"job": job, "identity": "x", "seconds": s}) + "\n" for job, s in lines)
    )
    runs = {f"round-{number}": f"runs/round-{number}" for number in (0, 1, 2)}
    study = {"schema": 1, "kind": LOOP, "runs": runs, "missing": {"round-2": "training round-2 failed: x"}}
    (folder / "study.json").write_text(json.dumps(study))
    return folder


def test_show_of_a_loop_is_the_table_of_its_rounds(
    loop: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", str(loop), "--json", str(tmp_path / "rounds.json")]) == 0
    out = capsys.readouterr().out
    assert "parameter 1, place 1" in out
    assert "25.0" in out
    assert "75.0" in out
    first, second, third = json.loads((tmp_path / "rounds.json").read_text())["rounds"]
    assert first["families"]["alfworld"]["success_rate"] == 0.25
    low, high = second["families"]["alfworld"]["success_rate_ci95"]
    assert low < second["families"]["alfworld"]["success_rate"] == 0.75 < high
    assert (second["new"], second["data"], second["trained_tokens"]) == (2, 7, 1234)
    assert (first["hours"], second["hours"], third["hours"]) == (0.1, 1.5, 0.0)
    assert (third["families"], third["new"]) == ({}, None)


def test_a_loops_runs_are_those_that_are_there(loop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_folders([loop]) == [loop / "runs" / "round-0", loop / "runs" / "round-1"]
    assert main(["compare", str(loop)]) == 0
    assert main(["paper", "table1", str(loop)]) == 0
    assert "no run of round-2: training round-2 failed: x" in " ".join(capsys.readouterr().out.split())


def test_what_a_strangers_folder_says_reaches_no_terminal_raw(
    loop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = loop / "data" / "new-1.manifest.json"
    manifest = json.loads(path.read_text())
    manifest["counts"]["errors"] = {"\x1b[31mred": 3, "worse": "many"}
    manifest["counts"]["samples"] = "two"
    path.write_text(json.dumps(manifest))
    assert main(["show", str(loop)]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "red 3" in out
