"""Runs are found in folders and in archives; an archive can do nothing but hold the files of runs."""

from __future__ import annotations

import json
import stat
import zipfile
from pathlib import Path

import pytest
from made_runs import make_run, zip_of

from evalharness.base.errors import UserError
from evalharness.cli import main
from evalharness.data import source
from evalharness.runs.find_runs import find_runs

SOLVED, HALF = (True, 1.0), (False, 0.5)


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    (tmp_path / "scratch").mkdir()
    return tmp_path / "scratch"


def test_a_leaderboard_takes_folders_of_runs_and_zips_by_their_names(tmp_path: Path) -> None:
    make_run(tmp_path / "mine" / "beta", {"babyai": [HALF]}, name="beta")
    theirs = zip_of(make_run(tmp_path / "run", {"babyai": [SOLVED]}, name="alpha"), tmp_path / "theirs.zip")
    target = tmp_path / "board.json"
    table = ["leaderboard", "--no-published", "--json", str(target), "--held-in", f"{theirs}=babyai"]
    assert main([*table, str(tmp_path / "mine"), str(theirs)]) == 0
    rows = json.loads(target.read_text())["rows"]
    assert [(row["name"], row["folder"], row["held_in"]) for row in rows] == [
        ("beta", str(tmp_path / "mine" / "beta"), []),
        ("alpha", f"{theirs}/alpha", ["babyai"]),
    ]


def test_only_plain_files_of_runs_are_unpacked(tmp_path: Path, scratch: Path) -> None:
    link = zipfile.ZipInfo("alpha/episodes.jsonl")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("alpha/manifest.json", b"{}")
        archive.writestr("alpha/evil.py", b"raise SystemExit")
        archive.writestr(link, "/etc/passwd")
    assert list(find_runs(tmp_path / "a.zip", scratch)) == [tmp_path / "a.zip" / "alpha"]
    assert [path.name for path in scratch.rglob("*") if path.is_file()] == ["manifest.json"]


def test_a_path_that_leads_out_and_a_bomb_refuse_the_archive(
    tmp_path: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(tmp_path / "run", {"babyai": [SOLVED]})
    with pytest.raises(UserError, match="points outside"):
        find_runs(zip_of(run, tmp_path / "out.zip", {"../manifest.json": b"{}"}), scratch)
    monkeypatch.setattr(source, "MAX_FREE_BYTES", 2**20)
    with pytest.raises(UserError, match="size"):
        find_runs(zip_of(run, tmp_path / "bomb.zip", {"b/manifest.json": b" " * 2**22}), scratch)


def test_the_archives_of_a_folder_are_places_of_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sent = tmp_path / "sent"
    sent.mkdir()
    zip_of(make_run(tmp_path / "run", {"babyai": [SOLVED]}, name="alpha"), sent / "alpha.zip")
    (sent / "bad.zip").write_bytes(b"no archive")
    target = tmp_path / "board.json"
    assert main(["leaderboard", "--no-published", "--json", str(target), str(sent)]) == 2
    assert "bad.zip" in capsys.readouterr().err
    assert main(["verify", str(sent)]) == 2
    said = capsys.readouterr()
    assert "bad.zip" in said.err
    assert "alpha.zip/alpha" in said.out + said.err  # the others are looked at all the same
    (sent / "bad.zip").unlink()
    assert main(["leaderboard", "--no-published", "--json", str(target), str(sent)]) == 0
    [row] = json.loads(target.read_text())["rows"]
    assert row["folder"] == f"{sent}/alpha.zip/alpha"
