"""What a person sees first: the short list of commands, the options that most people use, a task by its number."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from made_runs import make_run

from evalharness.cli import main


def shown(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    """What is printed, at 80 columns."""
    capsys.readouterr()
    with suppress(SystemExit):  # as --help ends
        assert main([*map(str, words)]) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    return text


@pytest.fixture(autouse=True)
def eighty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def test_without_a_command_the_short_list_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys)
    assert "evalharness --help" in text
    assert len(text) < len(shown(capsys, "--help"))


@pytest.mark.parametrize("command", ["run", "sweep", "bon", "checkpoints"])
def test_help_begins_with_what_most_people_use(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    short, whole = shown(capsys, command, "--help"), shown(capsys, command, "--help-all")
    assert len(short) < len(whole) / 2
    assert short.count(f"\n  evalharness {command} ") == 3
    assert f"all options: evalharness {command} --help-all" in short
    options = [line.split()[0] for line in short.splitlines() if line.startswith("  -")]
    assert "--max-tokens" in options


def test_a_shortened_option_is_refused_and_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["run", "--task", "alfworld"])
    assert "--tasks?" in capsys.readouterr().err


def test_a_task_is_understood_by_its_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "run"
    make_run(run, {"babyai": [(True, 1.0), (False, 0.25)]})
    assert "babyai/agentboard/001" in shown(capsys, "show", run, 1)
    assert main(["show", str(run), "7"]) == 2
    assert "'7'" in capsys.readouterr().err
    both = tmp_path / "both"
    make_run(both, {"babyai": [(True, 1.0)], "pddl": [(True, 1.0)]})
    assert main(["show", str(both), "0"]) == 2
    assert "babyai/agentboard/000, pddl/agentboard/000" in capsys.readouterr().err
    assert "pddl/agentboard/000" in shown(capsys, "show", both, "pddl/0")
    assert main(["show", str(both), "sciworld/0"]) == 2
