"""The data folder: what is imported is what was published, however the person has it, and nothing else gets in."""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import textwrap
import zipfile
from pathlib import Path

import pytest

from evalharness.cli import main
from evalharness.data import check, data_folder, published
from evalharness.data.importer import import_published
from evalharness.data.table import Literals, PublishedFamily, Tasks
from evalharness.errors import UserError

LABELS = b'{"id": 0}\n{"id": 1}\n'
GAME = b"\x05a story file"
DOMAIN = b"(define (domain toy))"


def family(**changes: object) -> PublishedFamily:
    """A small family with everything a real one has: labels, files in folders, a second name, unknown hashes."""
    files: dict[str, str | None] = {
        "labels.jsonl": hashlib.sha256(LABELS).hexdigest(),
        "official.jsonl": None,
        "roms/toy.z5": hashlib.sha256(GAME).hexdigest(),
        "toy.pddl": hashlib.sha256(DOMAIN).hexdigest(),
    }
    known = {
        "family": "toyworld",
        "folder": "toy",
        "tasks": Tasks(count=2, any_of=["official.jsonl", "labels.jsonl"]),
        "also_found_as": {"roms/": "game-suite/"},
        "downloads": (),
        "literals": {},
        "files": files,
        "source": Path("unused"),
    }
    return PublishedFamily(**{**known, **changes})  # type: ignore[arg-type]


OURS = {"toy/labels.jsonl": LABELS, "toy/roms/toy.z5": GAME, "toy/toy.pddl": DOMAIN}
OFFICIAL = {
    "toy/labels.jsonl": LABELS,
    "toy/machine-master/game-suite/toy.z5": GAME,
    "x/engine/toy/toy.pddl": DOMAIN,
}


def write_tree(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def write_archive(path: Path, files: dict[str, bytes]) -> Path:
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in files.items():
                archive.writestr(name, content)
        return path
    with tarfile.open(path, "w" if path.suffix == ".tar" else "w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return path


def bring(source: Path, data: Path, *, link: bool = False, toy: PublishedFamily | None = None) -> int:
    """Import the toy family and return how many files were taken."""
    toy = toy or family()
    return import_published(source, data, {toy.family: toy}, link=link)[toy.family].imported


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
    with pytest.raises(UserError, match="cannot read the constants goals"):
        bring(have, tmp_path / "data", toy=toy)


def test_nothing_to_import_says_what_was_expected(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=r"toy/official\.jsonl"):
        bring(tmp_path / "empty", tmp_path / "data")
    with pytest.raises(UserError, match="does not exist"):
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
    from test_data import bring
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
            cwd=Path(__file__).parent,
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


# -- archives that mean harm


def refused(archive: Path, tmp_path: Path) -> str:
    """The message of the refusal; nothing may have appeared anywhere."""
    before = set(tmp_path.rglob("*"))
    with pytest.raises(UserError) as error:
        bring(archive, tmp_path / "sub" / "data")
    new = {
        path for path in set(tmp_path.rglob("*")) - before if tmp_path / "sub" not in (path, *path.parents)
    }
    assert not new
    assert not check(family(), tmp_path / "sub" / "data").ok
    return str(error.value)


@pytest.mark.parametrize("suffix", ["a.tar.gz", "a.zip"])
@pytest.mark.parametrize(
    "name", ["../toy/labels.jsonl", "/toy/labels.jsonl", "x/../../toy/labels.jsonl", "..\\evil"]
)
def test_a_member_that_leaves_the_archive_refuses_it(tmp_path: Path, suffix: str, name: str) -> None:
    archive = write_archive(tmp_path / suffix, {name: LABELS, **OURS})
    assert "points outside" in refused(archive, tmp_path)


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE]
)
def test_links_and_devices_are_never_taken(tmp_path: Path, kind: bytes) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(LABELS)
    archive = tmp_path / "a.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        member = tarfile.TarInfo("toy/labels.jsonl")
        member.type = kind
        member.linkname = str(secret)
        tar.addfile(member)
        member = tarfile.TarInfo("toy")
        member.type = tarfile.SYMTYPE
        member.linkname = "/"
        tar.addfile(member)
        member = tarfile.TarInfo("toy/toy.pddl")
        member.size = len(DOMAIN)
        tar.addfile(member, io.BytesIO(DOMAIN))
    assert bring(archive, tmp_path / "data") == 1
    assert [path.name for path in (tmp_path / "data" / "agentboard" / "toy").iterdir()] == ["toy.pddl"]


def test_a_symbolic_link_in_a_zip_is_never_taken(tmp_path: Path) -> None:
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w") as file:
        link = zipfile.ZipInfo("toy/labels.jsonl")
        link.external_attr = 0o120777 << 16
        file.writestr(link, "/etc/passwd")
        file.writestr("toy/toy.pddl", DOMAIN)
    assert bring(archive, tmp_path / "data") == 1


class Zeros(io.BytesIO):
    """So many zero bytes, without holding them."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.left = size

    def read(self, size: int | None = -1) -> bytes:
        block = bytes(min(size or 0, self.left))
        self.left -= len(block)
        return block


def test_a_bomb_is_refused(tmp_path: Path) -> None:
    """A member of 64 MiB of zeros in an archive of 300 KB: past the limit of one file."""
    archive = tmp_path / "a.tar.gz"
    with tarfile.open(archive, "w:gz", compresslevel=1) as tar:
        member = tarfile.TarInfo("toy/labels.jsonl")
        member.size = 64 * 2**20
        tar.addfile(member, Zeros(member.size))
    assert "is refused" in refused(archive, tmp_path)


def test_a_bomb_in_a_tar_header_is_refused(tmp_path: Path) -> None:
    """An extended header is read into memory whole by any tar reader, so its size has a limit of its own."""
    archive = tmp_path / "a.tar.gz"
    with tarfile.open(archive, "w:gz", compresslevel=1, format=tarfile.GNU_FORMAT) as tar:
        member = tarfile.TarInfo("header")
        member.type = tarfile.GNUTYPE_LONGNAME
        member.size = 64 * 2**20
        tar.addfile(member, Zeros(member.size))
    assert "far more" in refused(archive, tmp_path)


def test_a_zip_that_declares_too_much_is_refused(tmp_path: Path) -> None:
    archive = write_archive(tmp_path / "a.zip", OURS)
    content = bytearray(archive.read_bytes())
    entry = content.index(b"PK\x01\x02")  # the central directory's first record
    content[entry + 24 : entry + 28] = (0xFFFFFFF0).to_bytes(4, "little")
    archive.write_bytes(content)
    assert "far more" in refused(archive, tmp_path)


@pytest.mark.parametrize("suffix", ["a.tar.gz", "a.tar", "a.zip"])
@pytest.mark.parametrize("kind", ["cut", "flipped", "html", "empty"])
def test_a_damaged_archive_is_one_clear_line(tmp_path: Path, suffix: str, kind: str) -> None:
    noise = {f"toy/noise{i}": hashlib.sha256(bytes([i])).digest() * 40 for i in range(40)}
    archive = write_archive(tmp_path / suffix, {**noise, **OURS})
    content = archive.read_bytes()
    at = content.find(b"toy/labels.jsonl") + 20 if suffix == "a.zip" else 150  # contents; the first header
    archive.write_bytes(
        {
            "cut": content[: len(content) // 2],
            "flipped": content[:at] + bytes(255 - byte for byte in content[at : at + 8]) + content[at + 8 :],
            "html": b"<html>Sign in to download</html>",
            "empty": b"",
        }[kind]
    )
    assert str(archive) in refused(archive, tmp_path)


def test_member_names_are_escaped_in_messages(tmp_path: Path) -> None:
    archive = write_archive(tmp_path / "a.zip", {"../\x1b[2Jgone": b""})
    assert "\x1b" not in refused(archive, tmp_path)


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


@pytest.mark.parametrize(("ci", "there", "status"), [("1", True, 1), ("1", False, 0), ("", True, 0)])
def test_ci_fails_when_the_data_is_there_but_data_tests_were_skipped(
    tmp_path: Path, ci: str, there: bool, status: int
) -> None:
    shutil.copy(Path(__file__).parent / "conftest.py", tmp_path)
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
            "PYTHONPATH": str(Path(__file__).parent),
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == status, ended.stdout + ended.stderr
    assert ("test_it.py::test_a" in ended.stdout) == bool(status)
