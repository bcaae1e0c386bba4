"""The Inform 6 Library comes from a package; without it a person learns what to do."""

from pathlib import Path

import pytest

from evalharness.cli import main
from evalharness.envs.base import InvalidTaskError
from evalharness.envs.jericho.open.compiler import VARIABLE, find_library


def test_without_the_library_another_suite_seed_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], clean_home: Path
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    # a seed of this test alone: a suite that another test of this process has made is in memory
    assert main(["show", "--tasks", "jericho", "--suite", "open", "--suite-seed", "90417"]) == 2
    complaint = capsys.readouterr().err
    assert "apt-get install inform6-library" in complaint
    assert "--suite-seed 0" in complaint


def test_another_release_of_the_library_is_refused_by_its_hash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("english.h", "grammar.h", "linklpa.h", "parser.h", "verblib.h", "version.h"):
        (tmp_path / name).write_text("Constant LibRelease 6.13;")
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    with pytest.raises(InvalidTaskError, match=r"english\.h .*6\.12\.6"):
        find_library()
