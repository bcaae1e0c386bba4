"""A study's jobs: each is done once whatever happens, and nothing is kept back but what needs a job that failed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from studies import PROGRAM_FILE, STUDY, session, starts

from evalharness.base.errors import UserError
from evalharness.training.study.file import KnownOptions, read_study_file
from evalharness.training.study.folder import StudyFolder
from evalharness.training.study.plan import Plan, make_plan
from evalharness.training.study.show import problems


def test_each_job_is_done_once_and_a_second_session_has_nothing_to_do(plan: Plan, tmp_path: Path) -> None:
    folder, notes = tmp_path / "study", tmp_path / "notes"
    progress = session(plan, folder, notes, ("0", "1"))
    assert progress.count("done") == 13
    done = starts(notes)
    assert len({tuple(line[:2]) for line in done}) == len(done) == 13
    assert {line[2] for line in done} == {"0", "1"}
    session(plan, folder, notes)
    assert len(starts(notes)) == 13


def test_a_cell_that_fails_keeps_none_of_the_others_back_and_is_tried_again(
    plan: Plan, tmp_path: Path
) -> None:
    folder, notes = tmp_path / "study", tmp_path / "notes"
    notes.mkdir()
    (notes / "fail-training-full-seed0").touch()
    progress = session(plan, folder, notes)
    assert progress.count("done") == 13 - 3
    assert progress.count("blocked", "run") == 2
    [failed, blocked] = problems(progress, folder)
    assert "training full-seed0 failed: memory did not suffice" in failed
    assert "run full-seed0-plain" in blocked
    missing = json.loads((folder / "study.json").read_text())["missing"]
    assert missing["full-seed0-P1"] == (
        "training full-seed0 failed: memory did not suffice: a smaller --micro-batch"
    )
    (notes / "fail-training-full-seed0").unlink()
    assert session(plan, folder, notes).count("done") == 13
    again = Counter(tuple(line[:2]) for line in starts(notes))
    assert {key for key, count in again.items() if count > 1} == {("training", "full-seed0")}


def test_another_option_makes_the_jobs_that_have_it_again_and_a_new_value_only_its_own(
    tmp_path: Path, known: KnownOptions
) -> None:
    folder, notes, path = tmp_path / "study", tmp_path / "notes", tmp_path / "s.yaml"

    def play(text: str) -> int:
        before = len(starts(notes)) if notes.exists() else 0
        path.write_text(text)
        session(make_plan(read_study_file(path, known), folder, tmp_path), folder, notes)
        return len(starts(notes)) - before

    assert play(STUDY) == 13
    assert play(STUDY.replace("[0, 1]", "[0, 1, 2]")) == 2 * (1 + 2)
    assert play(STUDY.replace("tasks: alfworld}", "tasks: babyai}")) == 8
    assert play(STUDY.replace("suite_seed: 201", "suite_seed: 202")) == 13  # and all that comes of the data


KILLED = """\
import asyncio, sys
from pathlib import Path
from evalharness.cli.study import forecast, known_options
from evalharness.config import RunConfig
from evalharness.training.study.file import read_study_file
from evalharness.training.study.folder import StudyFolder
from evalharness.training.study.jobs import read_progress, work
from evalharness.training.study.plan import make_plan
here = Path(sys.argv[1])
plan = make_plan(read_study_file(here / "s.yaml", known_options()), here / "study", here)
with StudyFolder(here / "study") as store:
    store.begin((here / "s.yaml").read_text(), plan)
    asyncio.run(work(read_progress(plan, here / "study"), here / "study", (None,), sys.argv[2:]))
"""


@pytest.mark.faults
def test_after_a_kill_the_job_in_flight_is_gone_and_done_again_and_no_other(
    plan: Plan, tmp_path: Path
) -> None:
    """SIGKILL while a training runs: its process ends with the study's; the ledger's torn line is no line."""
    folder, notes = tmp_path / "study", tmp_path / "notes"
    notes.mkdir()
    (notes / "hang-training-full-seed1").touch()
    words = [sys.executable, "-c", KILLED, str(tmp_path), sys.executable, str(PROGRAM_FILE), str(notes)]
    process = subprocess.Popen(words)
    while not any(line[:2] == ["training", "full-seed1"] for line in _lines(notes)):
        assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.wait()
    [child] = [int(line[3]) for line in starts(notes) if line[:2] == ["training", "full-seed1"]]
    while _alive(child):
        pass
    with (folder / "jobs.jsonl").open("ab") as file:
        file.write(b'{"job": "training full-se')
    (notes / "hang-training-full-seed1").unlink()
    assert session(plan, folder, notes).count("done") == 13
    again = Counter(tuple(line[:2]) for line in starts(notes))
    assert {key: count for key, count in again.items() if count > 1} == {("training", "full-seed1"): 2}


def _lines(notes: Path) -> list[list[str]]:
    return starts(notes) if (notes / "starts").exists() else []


def _alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


def test_a_folder_is_one_process_s(plan: Plan, tmp_path: Path) -> None:
    with StudyFolder(tmp_path / "study"), pytest.raises(UserError, match="another evalharness is writing"):
        session(plan, tmp_path / "study", tmp_path / "notes")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").touch()
    with pytest.raises(UserError, match="is not empty"), StudyFolder(tmp_path / "other"):
        pass
