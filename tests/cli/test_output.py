"""Where a command writes: what was asked for to standard output, everything else to standard error."""

from __future__ import annotations

import errno
import json
import os
import subprocess
from pathlib import Path

import pytest
from command_line import command
from made_runs import make_run

from evalharness import __version__
from evalharness.cli import main
from evalharness.envs import specs


@pytest.fixture
def run(tmp_path: Path, clean_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """In the current folder."""
    monkeypatch.chdir(tmp_path)
    make_run(tmp_path / "RUN", {"babyai": [(True, 1.0), (False, 0.25)]})
    return Path("RUN")


@pytest.mark.parametrize(
    "words",
    [
        ["show", "--tasks", "--suite", "open"],
        ["show", "--tasks", "babyai:0-1", "--suite", "open"],
        ["data", "perturbations", "list"],
        ["data", "perturbations", "show", "babyai", "verbs"],
        ["show", "RUN"],
        ["show", "--behaviour", "RUN"],
        ["compare", "RUN", "RUN"],
        ["show", "."],
        ["leaderboard"],
        ["data", "status"],
    ],
    ids=" ".join,
)
def test_json_is_alone_on_standard_output_and_in_a_file_the_same(
    words: list[str], run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "--json", "-"]) == 0
    shown = capsys.readouterr()
    value = json.loads(shown.out)
    assert value
    assert main([*words, "--json", "found.json"]) == 0
    assert json.loads(Path("found.json").read_text()) == value
    assert capsys.readouterr().out, "people read a table"


@pytest.mark.parametrize("words", [["show", "--behaviour", "RUN"], ["compare", "RUN", "RUN"]], ids=" ".join)
def test_csv_has_one_row_of_names_and_as_many_columns_everywhere(
    words: list[str], run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import pandas as pd

    assert main([*words, "--csv", "found.csv"]) == 0
    frame = pd.read_csv("found.csv")
    assert len(frame) > 1
    assert not frame.columns.duplicated().any()
    assert not any(name.startswith("Unnamed") for name in frame.columns)


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("/dev/null/x.json", os.strerror(errno.ENOTDIR)),
        ("nowhere/x.json", os.strerror(errno.ENOENT)),
        ("/dev/full", os.strerror(errno.ENOSPC)),
    ],
)
def test_a_file_that_cannot_be_written_is_named(
    target: str, reason: str, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", str(run), "--json", target]) == 2
    assert f"cannot write --json {target}: {reason}" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["data", "perturbations", "list"],
        ["data", "perturbations", "list", "--json", "-"],
    ],
    ids=" ".join,
)
def test_a_full_disk_behind_standard_output_is_no_traceback(
    words: list[str], environment: dict[str, str]
) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command(*words), env=environment, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 2
    assert os.strerror(errno.ENOSPC) in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_with_debug_an_error_has_its_traceback(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without it, the person at the terminal reads the reason alone."""
    assert main(["show", "nowhere"]) == 2
    assert "Traceback" not in capsys.readouterr().err
    assert main(["--debug", "show", "nowhere"]) == 2
    said = capsys.readouterr().err
    assert "Traceback (most recent call last)" in said
    assert "nowhere" in said.rstrip().splitlines()[-1]


def test_the_version_is_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert (ended.value.code, capsys.readouterr().out) == (0, f"evalharness {__version__}\n")


def test_tasks_lists_every_family_with_the_number_of_its_tasks(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", "--tasks", "--suite", "open", "--json", "-"]) == 0
    listed = {row["family"]: row["tasks"] for row in json.loads(capsys.readouterr().out)["families"]}
    assert listed == {family: spec.suites.expected["open"] for family, spec in specs().items()}
    assert main(["show", "--tasks", "--suite", "agentboard", "--json", "-"]) == 0
    rows = json.loads(capsys.readouterr().out)["families"]
    assert {row["tasks"] for row in rows} == {0}, "nothing is imported"
    assert any("evalharness data" in row["note"] for row in rows), "the note says how to get it"


@pytest.mark.slow
def test_a_reader_that_has_had_enough_is_no_error(run: Path, environment: dict[str, str]) -> None:
    """`evalharness show --tasks all | head -1`; here the reader has gone before the first line."""
    ends = os.pipe()
    process = subprocess.Popen(
        command("show", "--tasks", "all", "--suite", "open"),
        env=environment, stdout=ends[1], stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    for end in ends:
        os.close(end)
    assert process.stderr is not None
    with process.stderr:
        assert process.stderr.read() == ""
    assert process.wait(60) == 0
