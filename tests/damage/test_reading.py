"""What is read from files that others wrote: `evalharness.base.reading`, `evalharness.base.yaml_lines`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import yaml

from evalharness.base.errors import UserError
from evalharness.base.reading import DEEPEST, LARGEST, open_file, parse_json, read_bytes, read_text
from evalharness.base.yaml_lines import parse_yaml, read_yaml, syntax_problem
from evalharness.training.datasets.conversation import write_data


@pytest.mark.parametrize(
    "text",
    ["NaN", "[Infinity]", '{"a": -Infinity}', "1e999", "9" * 400, "-" + "9" * 309, "9" * 5000, "[" * 100_000, "",
     b"\xff"],
    ids=lambda text: str(text)[:20],
)  # fmt: skip
def test_what_nothing_can_be_computed_with_is_no_json(text: str | bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_json(text)


def test_json_of_any_other_kind_is_read_as_it_is() -> None:
    values = [0, -1, 10**300, 1.5, 1e308, "9" * 400, "", None, True, {"a": {"b": []}}, "\U0001f600", "\u2028"]
    for value in (*values, values):
        assert parse_json(json.dumps(value)) == value
        assert parse_json(json.dumps(value, ensure_ascii=False).encode()) == value
    assert parse_json(b"\xef\xbb\xbf[1]") == [1]


def test_nesting_has_a_limit_and_width_has_none() -> None:
    assert parse_json("[" * DEEPEST + "]" * DEEPEST)
    with pytest.raises(ValueError, match="nested too deep"):
        parse_json("[" * (DEEPEST + 1) + "]" * (DEEPEST + 1))
    wide = [{"a": [1]}] * 1000
    assert parse_json(json.dumps(wide)) == wide


def test_half_a_surrogate_pair_becomes_letters() -> None:
    assert parse_json(r'{"\udfff": ["a\ud800", "\ud83d\ude00"]}') == {r"\udfff": [r"a\ud800", "\U0001f600"]}
    assert parse_yaml('"\\ud800"') == r"\ud800"


def test_what_is_no_plain_file_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "device").symlink_to("/dev/zero")
    for name, why in (("pipe", "not a plain file"), ("device", "not a plain file"), (".", "Is a directory")):
        for read in (open_file, read_bytes, read_text, read_yaml):
            with pytest.raises(OSError, match=why):
                read(tmp_path / name)


def test_a_file_beyond_all_limits_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "large").open("wb") as file:
        file.truncate(2 << 30)
    open_file(tmp_path / "large").close()
    with pytest.raises(OSError, match="1 GiB"):
        read_bytes(tmp_path / "large")
    with (tmp_path / "large").open("wb") as file:
        file.truncate(LARGEST + 1)
    with pytest.raises(OSError, match="256 GiB"):
        open_file(tmp_path / "large")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a: &x [*x]", "line 1, column 8: the alias 'x'"),
        ("a: 1\nb: " + "[" * 5000, "line 2, column 103: nested"),
        ("a: 2024-99-99", "line 1, column 4: no value: month must be in 1..12"),
        ("a: .inf", "line 1, column 4: no value"),
        ("a: " + "9" * 400, "line 1, column 4: a number"),
        ("a: !!timestamp x", "tag:yaml.org,2002:timestamp"),
        (
            "a: &a [x, x, x, x, x, x, x, x, x]\n"
            + "".join(f"{n}: &{n} [{', '.join([f'*{m}'] * 7)}]\n" for m, n in ("ab", "bc", "cd", "de", "ef")),
            "100,000 values",
        ),
    ],
    ids=lambda text: str(text)[:20],
)  # fmt: skip
def test_yaml_that_is_an_attack_or_a_slip_is_one_line(text: str, why: str) -> None:
    with pytest.raises(yaml.YAMLError) as caught:
        parse_yaml(text)
    assert why in syntax_problem(caught.value)


def test_aliases_of_a_person_are_read() -> None:
    assert parse_yaml("a: &a {x: 1}\nb: {<<: *a, y: 2}\nc: [*a, *a]") == {
        "a": {"x": 1},
        "b": {"x": 1, "y": 2},
        "c": [{"x": 1}, {"x": 1}],
    }


def test_data_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    """As on a read-only file system: what would have been left behind cannot be removed either."""
    with pytest.raises(UserError, match=r"cannot write .*: File name too long"):
        write_data(tmp_path / ("a" * 250), [], {})
