"""The data folder: what is imported is what was published, however the person has it, and nothing else gets in."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from toy_data import DOMAIN, GAME, LABELS, OFFICIAL, OURS, bring, family, write_archive, write_tree

from evalharness.base.errors import UserError
from evalharness.base.paths import data_folder
from evalharness.cli import main
from evalharness.data import check, published
from evalharness.data.table import Literals

# -- where it is


def test_data_folder_is_named_by_the_environment_or_lies_in_the_home(
    clean_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert data_folder() == clean_home / "evalharness" / "data"
    monkeypatch.setenv("EVALHARNESS_DATA", "~/elsewhere")
    assert data_folder() == clean_home / "elsewhere"
    monkeypatch.delenv("EVALHARNESS_DATA")
    monkeypatch.delenv("EVALHARNESS_HOME")
    assert str(data_folder()).startswith(str(clean_home))


def test_path_prints_the_folder(clean_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "path"]) == 0
    assert capsys.readouterr().out.strip() == str(clean_home / "evalharness" / "data")


# -- the table


def test_tables_cover_the_published_task_counts() -> None:
    counts = {name: table.tasks.count for name, table in published().items()}
    assert counts == {"alfworld": 134, "babyai": 112, "jericho": 20, "pddl": 60, "sciworld": 90}
    files = published()["alfworld"].files
    assert sum(name.endswith("/game.tw-pddl") for name in files) == 134
    assert sum(name.startswith("roms/") for name in published()["jericho"].files) == 20
    for table in published().values():
        for name, digest in table.files.items():
            assert not name.startswith("/")
            assert ".." not in name.split("/")
            assert digest is None or len(bytes.fromhex(digest)) == 32
        assert set(table.tasks.any_of) <= set(table.files)
        assert table.downloads


# -- import


@pytest.mark.parametrize("layout", [OURS, OFFICIAL], ids=["ours", "official"])
@pytest.mark.parametrize("form", ["folder", "family folder", "nested", "a.tar.gz", "a.tgz", "a.tar", "a.zip"])
def test_every_form_of_the_data_imports_to_the_same_folder(
    tmp_path: Path, layout: dict[str, bytes], form: str
) -> None:
    if "." in form:
        source = write_archive(tmp_path / form, layout)
    elif form == "family folder" and layout is OURS:
        source = write_tree(tmp_path / "have", layout) / "toy"
    elif form == "nested":
        source = write_tree(tmp_path / "have" / "deep" / "down", layout).parents[1]
    else:
        source = write_tree(tmp_path / "have", layout)
    data = tmp_path / "data"
    assert bring(source, data) == 3
    root = data / "agentboard" / "toy"
    assert {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()} == {
        "labels.jsonl",
        "roms/toy.z5",
        "toy.pddl",
    }
    assert check(family(), data).state == "complete"
    assert bring(source, data) == 0  # nothing to do twice


def test_an_archive_in_the_family_folder_is_unpacked(tmp_path: Path) -> None:
    have = write_tree(tmp_path / "have", {"toy/labels.jsonl": LABELS, "toy/toy.pddl": DOMAIN})
    write_archive(have / "toy" / "games.tar.gz", {"toy/roms/toy.z5": GAME})
    assert bring(have, tmp_path / "data") == 3


def test_two_sources_complete_each_other(tmp_path: Path) -> None:
    data = tmp_path / "data"
    bring(write_tree(tmp_path / "labels", {"toy/labels.jsonl": LABELS}), data)
    assert check(family(), data).state == "partial"
    assert check(family(), data).missing == ("roms/toy.z5", "toy.pddl")
    bring(write_tree(tmp_path / "games", {"toy/toy.pddl": DOMAIN, "game-suite/toy.z5": GAME}), data)
    assert check(family(), data).state == "complete"


def test_a_changed_file_is_named_and_a_right_one_beats_it(tmp_path: Path) -> None:
    data = tmp_path / "data"
    bring(write_tree(tmp_path / "wrong", {**OURS, "toy/toy.pddl": b"(define)"}), data)
    assert check(family(), data).state == "changed"
    assert check(family(), data).changed == ("toy.pddl",)
    assert bring(write_tree(tmp_path / "right", OURS), data) == 1
    assert check(family(), data).state == "complete"
    assert bring(tmp_path / "wrong", data) == 0  # a wrong file never replaces a right one
    assert check(family(), data).state == "complete"


def test_the_right_one_of_several_candidates_is_taken(tmp_path: Path) -> None:
    have = write_tree(tmp_path / "have", OURS)
    write_tree(have, {"a/toy/toy.pddl": b"another library's", "z/toy/toy.pddl": b"and another"})
    bring(have, tmp_path / "data")
    assert check(family(), tmp_path / "data").state == "complete"


def test_a_label_file_of_unknown_hash_is_checked_by_its_number_of_tasks(tmp_path: Path) -> None:
    data = tmp_path / "data"
    games = {"toy/roms/toy.z5": GAME, "toy/toy.pddl": DOMAIN}
    bring(write_tree(tmp_path / "short", {**games, "toy/official.jsonl": b'{"id": 0}\n'}), data)
    assert check(family(), data).changed == ("official.jsonl",)
    bring(write_tree(tmp_path / "whole", {**games, "toy/official.jsonl": LABELS + b"\n"}), data)
    assert check(family(), data).state == "complete"
    assert check(family(), data).unverified == ("official.jsonl",)


def test_links_point_into_the_source(tmp_path: Path) -> None:
    data = tmp_path / "data"
    have = write_tree(tmp_path / "have", OURS)
    bring(have, data, link=True)
    link = data / "agentboard" / "toy" / "roms" / "toy.z5"
    assert link.is_symlink()
    assert link.resolve() == (have / "toy" / "roms" / "toy.z5").resolve()
    assert check(family(), data).state == "complete"
    (have / "toy" / "toy.pddl").unlink()
    assert check(family(), data).missing == ("toy.pddl",)
    with pytest.raises(UserError, match="without --link"):
        bring(write_archive(tmp_path / "a.zip", OURS), data, link=True)


def test_what_else_lies_in_the_family_folder_survives_an_import(tmp_path: Path) -> None:
    data = tmp_path / "data"
    write_tree(data, {"agentboard/toy/notes.txt": b"mine"})
    bring(write_tree(tmp_path / "have", OURS), data)
    assert (data / "agentboard" / "toy" / "notes.txt").read_bytes() == b"mine"


SOURCE_CODE = """
import os
open("executed", "w").close()
goals = {"toy": "win", "other": "also win"}
openings = {"toy": "You are here."}
settings = {"not": os.getcwd()}
"""


def test_constants_in_source_code_are_read_and_the_code_never_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    toy = family(
        files={**family().files, "texts.json": None},
        literals={"texts.json": Literals(found_in="engine/toy_env.py", names=["goals", "openings"])},
    )
    data = tmp_path / "data"
    have = write_tree(tmp_path / "have", {**OURS, "engine/toy_env.py": SOURCE_CODE.encode()})
    assert bring(have, data, toy=toy) == 4
    texts = json.loads((data / "agentboard" / "toy" / "texts.json").read_bytes())
    assert texts == {"goals": {"toy": "win", "other": "also win"}, "openings": {"toy": "You are here."}}
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize("code", ["goals = (", "goals = open('x')", "x = 1", "goals = " + "(" * 5000, "\0"])
def test_source_code_that_holds_no_such_constant_is_one_clear_line(tmp_path: Path, code: str) -> None:
    toy = family(
        files={"texts.json": None},
        literals={"texts.json": Literals(found_in="engine/toy_env.py", names=["goals"])},
    )
    have = write_tree(tmp_path / "have", {"engine/toy_env.py": code.encode()})
    with pytest.raises(UserError, match="goals"):
        bring(have, tmp_path / "data", toy=toy)


def test_nothing_to_import_says_what_was_expected(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=r"toy/official\.jsonl"):
        bring(tmp_path / "empty", tmp_path / "data")
    with pytest.raises(UserError, match="nowhere"):
        bring(tmp_path / "nowhere", tmp_path / "data")
    assert not (tmp_path / "data" / "agentboard").exists()


def test_a_folder_linked_to_itself_ends(tmp_path: Path) -> None:
    have = write_tree(tmp_path / "have", OURS)
    (have / "toy" / "again").symlink_to(have)
    assert bring(have, tmp_path / "data") == 3


def test_the_data_folder_is_not_imported_into_itself(tmp_path: Path) -> None:
    have = write_tree(tmp_path, OURS)
    assert bring(have, tmp_path / "data") == 3
    assert bring(have, tmp_path / "data") == 0


def test_only_one_import_at_a_time(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    with (data / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(UserError, match="another import"):
            bring(write_tree(tmp_path / "have", OURS), data)
    assert bring(tmp_path / "have", data) == 3


KILLED_AT_A_RENAME = textwrap.dedent(
    """
    import os, sys
    from pathlib import Path
    from toy_data import bring
    left = int(sys.argv[3])
    def count(event, arguments):
        global left
        if event == "os.rename":
            left -= 1
            if left < 0:
                os._exit(9)
    sys.addaudithook(count)
    bring(Path(sys.argv[1]), Path(sys.argv[2]))
    """
)


@pytest.mark.slow
def test_an_import_killed_at_any_rename_is_finished_by_the_next(tmp_path: Path) -> None:
    """The old state stays whole until the new one is in place; the process really dies, before each rename in turn."""
    old = {**OURS, "toy/toy.pddl": b"(old)", "toy/roms/toy.z5": b"old"}
    renames = 0
    for renames in range(20):
        data = tmp_path / f"data{renames}"
        bring(write_tree(tmp_path / "old", old), data)
        have = write_tree(tmp_path / "have", OURS)
        ended = subprocess.run(
            [sys.executable, "-c", KILLED_AT_A_RENAME, str(have), str(data), str(renames)],
            cwd=Path(__file__).parents[1] / "support",
            timeout=60,
            check=False,
        )
        root = data / "agentboard" / "toy"
        assert not root.exists() or check(family(), data).state in ("changed", "complete")
        if ended.returncode == 0:
            break
        assert ended.returncode == 9
        bring(have, data)
        assert check(family(), data).state == "complete"
        assert sorted(path.name for path in data.iterdir()) == [".lock", "agentboard"]
    assert renames == 4  # two staged files, the old folder away, the new one in


# -- the command, on the real data


@pytest.mark.data
def test_the_published_data_verifies(published_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "verify", "--data", str(published_data), "--json", "-"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["ok"]
    assert {name: found["tasks"] for name, found in result["families"].items()} == {
        "alfworld": 134,
        "babyai": 112,
        "jericho": 20,
        "pddl": 60,
        "sciworld": 90,
    }


@pytest.mark.data
def test_a_changed_published_file_is_flagged_with_its_name(
    published_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    have = tmp_path / "have"
    shutil.copytree(published_data / "agentboard" / "babyai", have / "babyai")
    labels = have / "babyai" / "test.jsonl"
    labels.write_bytes(labels.read_bytes().replace(b"red", b"blue", 1))
    data = ["--data", str(tmp_path / "data")]
    assert main(["data", "import", str(have), *data]) == 1
    assert main(["data", "verify", "babyai", *data]) == 1
    out = capsys.readouterr().out
    assert "changed: test.jsonl" in out
    assert "not comparable" in out


def test_status_of_an_empty_home_names_the_mending_commands(
    clean_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["data", "status"]) == 0
    out = capsys.readouterr().out
    assert "absent" in out
    assert "evalharness data import DIR" in out
    assert "evalharness data fetch alfworld babyai" in out
    assert main(["data", "verify"]) == 1
    assert list(clean_home.iterdir()) == []  # looking creates nothing


def test_an_unknown_family_is_a_bad_request(clean_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "verify", "atari"]) == 2
    assert "unknown family atari; known: alfworld" in capsys.readouterr().err


# -- the rule of tests/conftest.py


@pytest.mark.slow
@pytest.mark.parametrize(("ci", "there", "status"), [("1", True, 1), ("1", False, 0), ("", True, 0)])
def test_ci_fails_when_the_data_is_there_but_data_tests_were_skipped(
    tmp_path: Path, ci: str, there: bool, status: int
) -> None:
    shutil.copy(Path(__file__).parents[1] / "conftest.py", tmp_path)
    (tmp_path / "test_it.py").write_text(
        "import pytest\n@pytest.mark.data\ndef test_a():\n    pytest.skip('lazy')\ndef test_b(): pass\n"
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = data: needs data\n")
    source = tmp_path / "source"
    if there:
        (source / "agentboard").mkdir(parents=True)
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        env={
            **os.environ,
            "CI": ci,
            "EVALHARNESS_TEST_DATA": str(source),
            "PYTHONPATH": str(Path(__file__).parents[1] / "support"),
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == status, ended.stdout + ended.stderr
    assert ("test_it.py::test_a" in ended.stdout) == bool(status)
