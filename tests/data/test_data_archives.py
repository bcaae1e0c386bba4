"""Archives that mean harm, or are damaged, are refused in one clear line and leave nothing behind."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
import zipfile
from pathlib import Path

import pytest
from toy_data import DOMAIN, LABELS, OURS, bring, family, write_archive

from evalharness.base.errors import UserError
from evalharness.data import check


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
    assert "a header or the unpacked size" in refused(archive, tmp_path)


def test_a_zip_that_declares_too_much_is_refused(tmp_path: Path) -> None:
    archive = write_archive(tmp_path / "a.zip", OURS)
    content = bytearray(archive.read_bytes())
    entry = content.index(b"PK\x01\x02")  # the central directory's first record
    content[entry + 24 : entry + 28] = (0xFFFFFFF0).to_bytes(4, "little")
    archive.write_bytes(content)
    assert "250 times its size" in refused(archive, tmp_path)


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


@pytest.mark.parametrize("packed", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_a_damaged_zip_of_another_kind_is_one_clear_line(packed: int, tmp_path: Path) -> None:
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w", packed) as file:
        file.writestr("toy/labels.jsonl", hashlib.sha256(b"").digest() * 99)
    content = bytearray(archive.read_bytes())
    content[50:60] = bytes(255 - byte for byte in content[50:60])
    archive.write_bytes(content)
    assert "is damaged" in refused(archive, tmp_path)


def test_member_names_are_escaped_in_messages(tmp_path: Path) -> None:
    archive = write_archive(tmp_path / "a.zip", {"../\x1b[2Jgone": b""})
    assert "\x1b" not in refused(archive, tmp_path)


@pytest.mark.parametrize("name", ["published.zip", "published.tar.gz", "published.tar"])
def test_a_pipe_in_the_place_of_an_archive_is_refused_at_once(name: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises((UserError, OSError), match="plain file"):
        bring(tmp_path / name, tmp_path / "data")
