"""What the fuzzer found and what a name can stand for beside a plain file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from command_line import evalharness

from evalharness.base.errors import UserError
from evalharness.base.locks import hold_lock
from evalharness.config import make_config
from evalharness.records.lines import LineFile


def test_a_lock_whose_name_is_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".lock")
    with pytest.raises(OSError, match="No such device"):
        hold_lock(tmp_path / ".lock", "taken")


def test_lines_that_are_no_plain_file_are_named(tmp_path: Path) -> None:
    (tmp_path / "lines.jsonl").symlink_to("/dev/zero")
    with pytest.raises(UserError, match=r"lines\.jsonl .*plain file"):
        LineFile(tmp_path / "lines.jsonl").drop_torn_line()


def test_links_in_a_circle_are_a_bad_file_like_any_other(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "a.csv").symlink_to("a.csv")
    done = evalharness(environment, "judge", "agreement", tmp_path / "a.csv", tmp_path / "b.csv")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("option", ["model", "tasks", "system"])
def test_a_null_character_is_refused_by_name(option: str) -> None:
    with pytest.raises(UserError, match=f"--{option} .*null"):
        make_config({"model": "oracle", option: "a\0b"})


def test_a_message_repeats_a_bad_value_in_part_and_on_one_line() -> None:
    with pytest.raises(UserError) as raised:
        make_config({"model": "oracle", "temperature": "\n\x1b" + "a" * 5000})
    assert len(str(raised.value)) < 600
    assert str(raised.value).isprintable()
