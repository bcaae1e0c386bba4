"""Append-only JSON lines: what a kill leaves of them, and what is damage."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalharness.base.errors import UserError
from evalharness.base.reading import read_object
from evalharness.records.lines import LineFile, StoreError, locate_lines, read_lines

VALUES = [{"a": 1}, {"b": "é\u202e\u2028"}, {"c": [None, 2.5]}]


def write(path: Path) -> bytes:
    file = LineFile(path)
    for value in VALUES:
        file.append(value)
    file.close()
    return path.read_bytes()


def read(path: Path) -> list[dict[str, object]]:
    return list(read_lines(path, "it is made anew", read_object))


def test_a_file_cut_at_any_byte_reads_as_its_whole_lines_and_goes_on_behind_them(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    raw = write(path)
    for cut in range(len(raw) + 1):
        path.write_bytes(raw[:cut])
        whole = VALUES[: raw[: cut + 1].count(b"\n")]  # a line that lacks only its end is whole
        assert read(path) == whole
        file = LineFile(path)
        file.drop_torn_line()
        file.append({"last": True})
        file.close()
        assert read(path) == [*whole, {"last": True}]


def test_every_line_is_found_again_at_its_offset(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    raw = write(path)
    for number, offset, value in locate_lines(path, "", read_object):
        assert read_object(raw[offset:].splitlines()[0]) == value == VALUES[number - 1]


@pytest.mark.parametrize(
    ("damaged", "said"),
    [
        (
            b'{"a": 1}\n{"a": \n{"a": 2}\n',
            "line 2 .*; .*the same command",
        ),
        (b'{"a": 1}\n{"a"\n', "line 2"),
        (b'{"b": 1}\n{"a": 1}\n', r"line 1 .*'a'"),
    ],
)
def test_a_finished_line_that_is_no_record_is_named(tmp_path: Path, damaged: bytes, said: str) -> None:
    """Also where it is the last: an interruption leaves no line end."""
    path = tmp_path / "lines.jsonl"
    path.write_bytes(damaged)
    with pytest.raises(UserError, match=said):
        list(read_lines(path, "it is made anew", lambda line: read_object(line)["a"]))


@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_a_file_that_is_no_longer_the_one_in_the_folder_takes_no_line(tmp_path: Path, how: str) -> None:
    path = tmp_path / "lines.jsonl"
    file = LineFile(path)
    file.append({"a": 1})
    path.rename(tmp_path / "old")
    if how == "replaced":
        path.write_bytes((tmp_path / "old").read_bytes())
    with pytest.raises(StoreError, match=f"was {how} "):
        file.append({"a": 2})
    file.close()
    assert read(tmp_path / "old") == [{"a": 1}]
    assert read(path) == ([{"a": 1}] if how == "replaced" else [])
