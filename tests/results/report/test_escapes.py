"""Nothing that a server, a model, a file or the command line says can steer the terminal."""

from __future__ import annotations

import ast
import os
import pty
import re
import subprocess
from pathlib import Path

import chat_server as cs
import pytest
from chat_server import ChatServer
from command_line import command, evalharness, start
from made_runs import make_run

from evalharness.base.terminal import make_console
from evalharness.cli import main

TITLE = "\x1b]0;owned\x07"
"""Names a terminal's window. No table or live view of ours sends it."""
PACKAGE = Path(__file__).parents[3] / "evalharness"
SCRIPTS = {
    "models/serving/convert_gguf.py",
    "training/datasets/make_tokens.py",
    "models/serving/merge_lora.py",
    "training/tune/trainer/events.py",
}
"""Run in processes of their own for a program to read, or print nothing but text of ours."""


@pytest.mark.slow
def test_only_one_module_prints() -> None:
    """A console of rich's own, or `print`, would obey what it is given."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        name = str(path.relative_to(PACKAGE))
        if name == "base/terminal.py" or name in SCRIPTS:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                found += [f"{name}:{node.lineno}"] if node.func.id in ("print", "Console") else []
    assert found == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("show", f"no{TITLE}run"),
        ("compare", f"no{TITLE}run", "other"),
        ("run", "--model", f"no{TITLE}model", "--suite", "open"),
        ("run", "--model", "oracle", "--suite", "open", "--tasks", f"no{TITLE}family"),
        ("run", "--model", "oracle", "--config", f"no{TITLE}file"),
        ("leaderboard", "--sort", f"no{TITLE}column"),
        ("show", "run", f"--no{TITLE}option"),
        (f"no{TITLE}command",),
        ("--debug", "show", f"no{TITLE}run"),
        ("show", "--suite", "open", "--tasks", f"no{TITLE}task"),
    ],
    ids=lambda arguments: " ".join(arguments).replace(TITLE, ""),
)
def test_messages_show_escapes_and_do_not_send_them(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        status: object = main(arguments)
    except SystemExit as end:
        status = end.code
    told = capsys.readouterr()
    assert status == 2
    assert "\x1b" not in told.out + told.err
    assert "owned" in told.err


def test_names_of_folders_are_shown_and_not_obeyed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = Path(f"run[bold]{TITLE}")
    for name in (folder, Path("plain")):
        make_run(name, {"babyai": [(True, 1.0), (False, 0.2)]}, name=f"model{TITLE}", suite="open")
    for arguments in (
        ["compare", "plain", folder],
        ["show", folder],
        ["leaderboard", "--no-published", folder],
        ["export", folder, "--format", "openai-chat"],
        ["report", folder, "-o", f"page{TITLE}.html"],
    ):
        assert main(list(map(str, arguments))) == 0
        told = capsys.readouterr()
        assert "\x1b" not in told.out + told.err
    assert main(["compare", "plain", str(folder)]) == 0
    assert "run[bold]\\x1b]0;owned\\x07" in capsys.readouterr().out


def test_a_terminal_gets_styles_and_no_escapes_of_others(tmp_path: Path, environment: dict[str, str]) -> None:
    """On a real terminal, the live view of a run included."""
    arguments = ["run", "--model", "oracle", "--suite", "open", "--tasks", "compass:0-3"]
    master, slave = pty.openpty()
    process = subprocess.Popen(
        command(*arguments, "-o", tmp_path / f"run{TITLE}"),
        env={**environment, "TERM": "xterm-256color"}, stdin=slave, stdout=slave, stderr=slave,
    )  # fmt: skip
    os.close(slave)
    output = b""
    try:
        while chunk := os.read(master, 65536):
            output += chunk
    except OSError:  # the other side has closed
        pass
    os.close(master)
    assert process.wait(60) == 0, output
    assert b"\x1b[1m" in output
    assert b"\x1b]" not in output
    assert b"\\x1b]0;owned" in output


async def test_a_server_cannot_write_to_the_terminal(tmp_path: Path, environment: dict[str, str]) -> None:
    async with ChatServer(
        model="toy", choose_fault=lambda request: cs.status(400, f"no{TITLE}way")
    ).running() as server:
        process = await start(
            environment, "run", "--suite", "open", "--tasks", "compass:0", "--model", server.url, "--model-name", "toy",
            "-o", tmp_path / "run",
        )  # fmt: skip
        _, told = await process.communicate()
    assert b"\x1b" not in told
    assert b"owned" in told


def test_csv_is_escaped_on_a_terminal_and_in_a_pipe(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_run(tmp_path / "run", {"babyai": [(True, 1.0)]}, name=f"model{TITLE}")
    for terminal in (True, False):
        with monkeypatch.context() as patch:
            patch.setattr("sys.stdout.isatty", lambda terminal=terminal: terminal, raising=False)
            assert main(["leaderboard", str(folder), "--format", "csv"]) == 0
        told = capsys.readouterr().out
        assert "\x1b" not in told
        assert "model\\x1b]0;owned" in told


def test_live_views_keep_their_own_control_sequences(capsys: pytest.CaptureFixture[str]) -> None:
    """Escaping leaves alone what rich itself sends to move the cursor."""
    from rich.control import Control

    console = make_console()
    console.print(f"a{TITLE}b")
    assert "a\\x1b]0;owned" in capsys.readouterr().out
    assert [segment.text for segment in console.render(Control.home())] == ["\x1b[H"]


def test_a_port_that_is_none_is_one_line(tmp_path: Path, environment: dict[str, str]) -> None:
    make_run(tmp_path / "run", {"babyai": [(True, 1.0)]})
    for port in (99999, -1):
        done = evalharness(environment, "judge", "label", tmp_path / "run", "--port", port)
        assert done.returncode == 2
        assert re.search(rf"--port\b.*{port}.*65535", done.stderr.splitlines()[-1])
