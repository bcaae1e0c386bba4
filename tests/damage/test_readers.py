"""Every command that reads a file is among those that are given damaged files."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import pytest

from evalharness.cli import main, make_parser
from evalharness.cli.parser import CommandParser, children
from tests.damage.readers import READERS, command_of, commands_that_read

UNREAD = {
    "data fetch": "it downloads; what it finds in the folder is read as by `data verify`",
    "doctor": "it plays a turn of every family; it reads the data folder as `tasks` does",
}
"""Commands that take a folder, and have no reader."""


def test_every_command_that_may_read_a_file_has_a_reader() -> None:
    read = {command_of(reader.arguments) for reader in READERS.values()}
    assert commands_that_read().keys() - read == UNREAD.keys()


def test_every_option_that_may_name_a_file_is_in_a_reader() -> None:
    """Of some command: an option is read by the same code everywhere."""
    options = {name for names in commands_that_read().values() for name in names if name.startswith("--")}
    given = {word for reader in READERS.values() for word in reader.arguments}
    assert options - given == set()


def _numbers(parser: CommandParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        if action.type is not None and action.metavar and _takes(action, "1") and not _takes(action, "x"):
            yield action
    for child in children(parser).values():
        yield from _numbers(child)


def _takes(action: argparse.Action, text: str) -> bool:
    try:
        action.type(text)  # type: ignore[misc, operator]
    except (argparse.ArgumentTypeError, ValueError):
        return False
    return True


@pytest.mark.parametrize("text", ["9" * 400, "9" * 5000, "1e308", "-1e308", "nan", "inf", "9" * 14])
def test_no_number_of_an_option_is_too_large_to_compute_with(text: str) -> None:
    numbers = list(_numbers(make_parser()))
    assert len(numbers) > 120
    assert not [action.dest for action in numbers if _takes(action, text)]


@pytest.mark.parametrize(
    "command",
    ["label run --port 99999", "refine mix a:1e308 b:1e308 -o c", "refine mix a -n " + "9" * 400 + " -o c"],
)
def test_a_number_out_of_bounds_is_refused_in_one_line(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        status = main(command.split())
    except SystemExit as end:
        status = int(str(end.code))
    assert status == 2
    assert len(capsys.readouterr().err) < 1000
