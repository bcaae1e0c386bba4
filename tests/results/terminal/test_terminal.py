"""What the commands print: at 80 columns, without colour, into a pipe; completion."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from command_line import command, in_a_terminal
from made_runs import make_run

from evalharness.cli import main

SOLVED, NOTHING = (True, 1.0), (False, 0.0)
SIZES = {"alfworld": 134, "babyai": 112, "sciworld": 90, "pddl": 60, "jericho": 20}


@pytest.fixture(scope="module")
def whole_suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two runs of every task, their names as long as people give them."""
    folder = tmp_path_factory.mktemp("runs")
    for name, outcome in (("a", NOTHING), ("b", SOLVED)):
        long = f"llama-3-8b-agentrefine-lr2e-5-epoch-3-{name}"
        make_run(folder / name, {family: [outcome] * n for family, n in SIZES.items()}, name=long)
    return folder


@pytest.fixture
def runs(whole_suite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(whole_suite)


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The command that shows one trajectory."""
    monkeypatch.chdir(tmp_path)
    make_run(Path("b"), {"babyai": [SOLVED]})
    return ["show", "b", "babyai/agentboard/000"]


COMMANDS = [
    ("show", "b"),
    ("show", "b", "babyai/agentboard/003"),
    ("compare", "a", "b"),
    ("leaderboard", "b"),
    ("show", "--suite", "open", "--tasks"),
    ("show", "--suite", "open", "--tasks", "pddl:0-3"),
]


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_output_fits_80_columns_without_escapes(
    arguments: tuple[str, ...],
    runs: None,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 3
    commands_to_copy = [line for line in lines if line.startswith("look: ")]
    assert max(map(len, (line for line in lines if line not in commands_to_copy))) <= 80
    assert not any("\x1b" in line or line != line.rstrip() or "…" in line for line in lines)


@pytest.mark.slow
def test_in_a_pipe_a_row_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long: what greps for a task gets all of it."""
    monkeypatch.delenv("COLUMNS", raising=False)
    assert main(["show", "--tasks", "pddl:0-9", "--suite", "open"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 11
    assert max(map(len, lines)) > 100
    assert all(line.startswith("pddl/open/") for line in lines[1:])


@pytest.mark.parametrize(("variable", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_a_terminal_can_ask_for_no_colour(variable: str, value: str, small: list[str]) -> None:
    """On a real terminal: `NO_COLOR` leaves weight only, a dumb one gets nothing but text."""
    output = in_a_terminal(small, {variable: value})
    codes = set(re.findall(r"\x1b\[([\d;]*)m", output))
    assert codes <= ({"0", "1", "2", "3"} if variable == "NO_COLOR" else set())
    assert "Observation a room" in re.sub(r"\x1b\[[\d;]*m", "", output)
    assert re.search(r"\x1b\[[\d;]*3[0-7]m", in_a_terminal(small, {}))


def test_a_terminal_of_another_encoding_does_not_end_a_command(small: list[str]) -> None:
    done = subprocess.run(
        command(*small),
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=True,
    )
    assert b"\\u2500 turn 1" in done.stdout
