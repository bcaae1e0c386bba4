"""A folder from elsewhere names an open suite that is not here: nothing is made unless the user agrees, and nothing of
it stays."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from made_runs import make_run
from small_suites import first_tasks, freeze

from evalharness.base.errors import UserError
from evalharness.checks.verify import verify
from evalharness.checks.verify.remembered import content_key, remember
from evalharness.cli import main
from evalharness.envs import specs
from evalharness.suites.temporary import TemporarySuites
from evalharness.training.datasets.overlap import PlayedTasks

SEED = 5


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on the suite of another seed, played in another home."""
    folder = tmp_path_factory.mktemp("foreign")
    options = ["--suite", "open", "--suite-seed", str(SEED), "--tasks", "alfworld:0-1", "--max-turns", "2"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVALHARNESS_HOME", str(folder / "home"))
        assert main(["run", "--model", "random", *options, "-o", str(folder / "run")]) == 0
    return folder / "run"


@pytest.fixture
def scratch(clean_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary folders are made."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return folder


def suites_left(scratch: Path, home: Path) -> list[Path]:
    kept = home / "evalharness" / "suites"
    return [*scratch.glob("evalharness-suites-*"), *(kept.rglob("*") if kept.exists() else ())]


@pytest.mark.slow
def test_without_a_terminal_it_is_refused_with_the_name_of_the_flag(
    foreign: Path, scratch: Path, clean_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", str(foreign)]) == 2
    said = capsys.readouterr().err
    assert f"the open suite of seed {SEED}, which is not on this machine" in said
    assert "--make-suites 10" in said
    with pytest.raises(UserError, match=f"suite build --suite-seed {SEED}"):
        verify(foreign)
    assert suites_left(scratch, clean_home) == []


@pytest.mark.slow
def test_it_is_made_on_request_and_removed(
    foreign: Path, scratch: Path, clean_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", str(foreign), "--make-suites", "5"]) == 0
    assert "verified; 2 episodes" in capsys.readouterr().out
    assert suites_left(scratch, clean_home) == []


@pytest.mark.slow
def test_time_that_is_over_ends_the_making_and_leaves_nothing(
    foreign: Path, scratch: Path, clean_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", str(foreign), "--make-suites", "0.001"]) == 2
    assert "took too long; allow more time with --make-suites" in capsys.readouterr().err
    assert suites_left(scratch, clean_home) == []


@pytest.mark.slow
def test_all_suites_of_a_command_share_its_time(scratch: Path, tmp_path: Path) -> None:
    suites = TemporarySuites(tmp_path, lambda seed: None, seconds=0.05)
    for seed in (SEED, SEED + 1):
        with pytest.raises(UserError, match=f"seed {seed} took too long"):
            suites.tasks(specs()["babyai"], "open", None, seed)
    assert list(tmp_path.rglob("*.jsonl")) == []


@pytest.mark.slow
@pytest.mark.parametrize("answer", ["n", "y"])
def test_at_a_terminal_it_asks(foreign: Path, scratch: Path, clean_home: Path, answer: str) -> None:
    ours, theirs = os.openpty()
    os.write(ours, f"{answer}\n".encode())
    done = subprocess.run(
        [sys.executable, "-m", "evalharness", "verify", str(foreign)],
        stdin=theirs,
        capture_output=True,
        text=True,
        check=False,
    )
    os.close(ours)
    os.close(theirs)
    assert "[y/N]" in done.stderr
    assert done.returncode == (0 if answer == "y" else 2), done.stderr
    assert suites_left(scratch, clean_home) == []


@pytest.mark.slow
def test_a_leaderboard_leaves_out_what_would_have_to_be_made(
    foreign: Path, scratch: Path, clean_home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    submit = ["leaderboard", "submit", str(foreign), "-o", str(tmp_path / "s"), "--no-verify"]
    assert main(submit) == 0
    table = ["leaderboard", "--no-published", "--verify", "--from", str(tmp_path / "s")]
    assert main(table) == 2
    said = capsys.readouterr().err
    assert "left out: random (s/runs/run): the run was played on the open suite of seed 5" in said
    assert "--make-suites 10" in said
    assert main([*table, "--make-suites", "5"]) == 0
    said = capsys.readouterr().out
    assert "random§ [verified]" in said
    assert "§ only stated, no replay shows it: model, prompts, token limit" in said
    assert suites_left(scratch, clean_home) == []


def test_submissions_on_another_suite_are_left_out_before_anything_is_made_for_them(
    scratch: Path, clean_home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first run decides; a stranger's seed neither costs time nor keeps others from the table."""
    runs = [
        make_run(tmp_path / f"run{seed}", {"pddl": [(True, 1.0)]}, suite="open", suite_seed=seed)
        for seed in (0, 1, 2)
    ]
    for run in runs[1:]:
        assert (
            main(["leaderboard", "submit", str(run), "-o", str(tmp_path / "s" / run.name), "--no-verify"])
            == 0
        )
    remember(runs[0], content_key(runs[0]))
    table = ["leaderboard", str(runs[0]), "--no-published", "--verify", "--make-suites", "1"]
    assert main([*table, "--from", str(tmp_path / "s")]) == 0
    said = capsys.readouterr().err
    assert said.count("left out: ") == 2
    assert "differ in suite (open and open, seed 1); one table holds runs of one protocol only" in said
    assert "making the open suite" not in said


@pytest.mark.parametrize("minutes", ["0", "-1"])
def test_a_time_that_is_none_is_refused(
    tmp_path: Path, minutes: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "manifest.json").write_text("{}")
    assert main(["verify", str(tmp_path), "--make-suites", minutes]) == 2
    assert "give minutes, more than 0" in capsys.readouterr().err


def test_no_other_command_makes_a_suite_that_a_file_names(
    clean_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    make_run(Path("RUN"), {"alfworld": [(False, 0.0)]}, suite="open", suite_seed=SEED)
    Path("RUN.yaml").write_text(f"model: random\nsuite: open\nsuite_seed: {SEED}\ntasks: alfworld\n")
    for command in (
        ["refine", "correct", "RUN", "-o", "made.jsonl"],
        ["run", "--config", "RUN.yaml", "--dry-run"],
    ):
        assert main(command) == 2
        assert f"suite build --suite-seed {SEED}" in capsys.readouterr().err
    assert not (clean_home / "evalharness" / "suites").exists()
    # The command names its own suite, which is here; the folder's manifest all families of that seed.
    freeze("pddl", SEED, first_tasks("pddl", SEED, 1))
    options = ["--model", "random", "--suite", "open", "--suite-seed", str(SEED), "--tasks", "pddl"]
    assert main(["run", *options, "-o", "RUN"]) == 2
    assert "holds a run of another" in capsys.readouterr().err
    assert [path.stem for path in (clean_home / "evalharness" / "suites").rglob("*.jsonl")] == ["pddl"]


def test_tasks_of_a_run_are_not_looked_for_in_a_suite_that_was_never_made(clean_home: Path) -> None:
    with pytest.raises(UserError, match=f"suite build --suite-seed {SEED}"):
        PlayedTasks(None).forms("alfworld", "open", SEED, "hash")
