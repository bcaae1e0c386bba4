"""`--agent-command`: a process an episode, in whole runs."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import pytest
from command_line import evalharness, read_records, run_compass

from evalharness.base.errors import InfrastructureError, UserError
from evalharness.config import make_config
from evalharness.rl.outside.process import AgentProcess
from evalharness.rl.outside.serve import prepare_outside

EXTERNAL = {"agent": "external", "agent_option": {"name": "mine"}}
AGENT = Path(__file__).with_name("agent.py")
PAGE = Path(__file__).parents[3] / "docs" / "external-agents.md"


def play(
    environment: dict[str, str], folder: Path, how: str, *more: object
) -> subprocess.CompletedProcess[str]:
    command = shlex.join([sys.executable, str(AGENT), how, str(folder.parent)])
    return run_compass(
        environment, folder, "--agent", "external", "--agent-option", "name=mine",
        "--agent-command", command, "--limit", 1, *more,
    )  # fmt: skip


@pytest.mark.parametrize("number", ["SIGKILL", "SIGSTOP"])
async def test_a_child_that_left_and_keeps_the_output_ends_with_the_episode(
    number: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evalharness.rl.outside.process._GRACE_S", 0.2)
    monkeypatch.setattr("evalharness.rl.outside.process._OWN_END_S", 0.5)
    (tmp_path / "leaver.py").write_text(
        "import os, pathlib, signal, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    pathlib.Path('pid').write_text(str(os.getpid()))\n"
        "    time.sleep(3600)\n"
        "while not (pid := pathlib.Path('pid')).exists() or not pid.read_text():\n"
        "    time.sleep(0.01)\n"
        f"os.kill(os.getppid(), signal.{number})\n"
    )
    monkeypatch.chdir(tmp_path)
    process = await AgentProcess.start(
        [sys.executable, "leaver.py"], "it", tmp_path / "log", url="http://x", token="a token of its own"
    )
    await process.end()
    left = int((tmp_path / "pid").read_text())
    while psutil.pid_exists(left) and psutil.Process(left).status() != psutil.STATUS_ZOMBIE:
        await asyncio.sleep(0.05)
    assert "== it: exit status" in (tmp_path / "log").read_text()


def test_its_episodes_stand_under_its_name_and_the_run_verifies(
    environment: dict[str, str], tmp_path: Path
) -> None:
    done = play(environment, tmp_path / "run", "asks again", "--max-turns", 4)
    assert done.returncode == 0, done.stderr
    assert "model external:mine" in done.stdout
    assert "not measured: cost 1" in done.stdout
    (episode,) = read_records(tmp_path / "run" / "episodes.jsonl")
    assert (episode["success"], episode["outside"]) == (True, {"handed_out": 1, "cost": 1.0})
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["identity"]["model"] == {"kind": "external", "name": "external:mine"}
    assert (tmp_path / "run" / "agent.log").read_text().splitlines() == [
        "== compass/open/000, sample 0: exit status 0",
        "RUN_OVER",
    ]
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["outside"]["said_cost"] == 1.0
    verified = evalharness(environment, "verify", tmp_path / "run")
    assert verified.returncode == 0, verified.stdout + verified.stderr
    again = play(environment, tmp_path / "run", "never asks", "--max-turns", 4)
    assert again.returncode == 2  # another command is another agent
    assert "agent_command" in again.stderr or "agent-command" in again.stderr


def test_an_edited_script_does_not_continue_the_run(environment: dict[str, str], tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    script.write_text(AGENT.read_text())
    options = (
        "--agent", "external", "--agent-option", "name=mine", "--max-turns", 4,
        "--agent-command", shlex.join([sys.executable, str(script), "asks again", str(tmp_path / "run")]),
    )  # fmt: skip
    assert run_compass(environment, tmp_path / "run", *options, "--limit", 1).returncode == 0
    script.write_text(AGENT.read_text() + "\n")
    done = run_compass(environment, tmp_path / "run", *options, "--limit", 1)
    assert done.returncode == 2
    assert f"--agent.command_sha256.{script}: " in done.stderr


def fails_to_pipe() -> tuple[int, int]:
    raise OSError(errno.EMFILE, "Too many open files")


@pytest.mark.parametrize("lacks", ["a pipe", "a program"])
async def test_what_does_not_start_leaves_no_scratch_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lacks: str
) -> None:
    temporary, log = tmp_path / "temporary", tmp_path / "agent.log"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    if lacks == "a pipe":
        monkeypatch.setattr(os, "pipe", fails_to_pipe)
    with pytest.raises(InfrastructureError, match="be started"):
        await AgentProcess.start([str(tmp_path / "nothing")], "an episode", log, url="", token="")
    assert list(temporary.iterdir()) == []


def test_the_agent_of_the_documentation_plays_five_tasks(environment: dict[str, str], tmp_path: Path) -> None:
    script = tmp_path / "my_agent.py"
    script.write_text(re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)[0])
    done = run_compass(
        environment, tmp_path / "run", "--agent", "external", "--agent-option", "name=HTTP",
        "--agent-command", shlex.join([sys.executable, str(script)]), "--limit", 5, "--max-turns", 2,
    )  # fmt: skip
    log = (tmp_path / "run" / "agent.log").read_text()
    assert done.returncode == 0, done.stderr + log
    episodes = read_records(tmp_path / "run" / "episodes.jsonl")
    assert [(e["ended_by"], len(e["turns"])) for e in episodes] == [("turn_limit", 2)] * 5, log
    assert "Traceback" not in log


def test_a_process_that_ends_in_its_episode_has_failed_at_it(
    environment: dict[str, str], tmp_path: Path
) -> None:
    done = play(environment, tmp_path / "run", "exits")
    assert done.returncode == 3, done.stderr
    assert "every episode" in done.stdout
    assert f"{tmp_path / 'run'}/agent.log" in "".join(done.stdout.split())  # a table folds a long path
    (episode,) = read_records(tmp_path / "run" / "episodes.jsonl")
    assert (episode["ended_by"], episode["outside"]["stopped"]) == ("policy_stopped", "exited")
    assert evalharness(environment, "verify", tmp_path / "run").returncode == 0


def test_a_process_that_never_asks_is_no_failure_of_the_agent_and_ends_the_run(
    environment: dict[str, str], tmp_path: Path
) -> None:
    done = play(environment, tmp_path / "run", "never asks")
    assert done.returncode == 3
    assert "status 7" in done.stderr
    assert not read_records(tmp_path / "run" / "episodes.jsonl")
    (failure,) = read_records(tmp_path / "run" / "errors.jsonl")
    assert failure["kind"] == "NeverAskedError"


def test_everything_that_it_started_is_ended_and_its_output_is_kept_within_limits(
    environment: dict[str, str], tmp_path: Path
) -> None:
    assert play(environment, tmp_path / "one", "leaves a process behind").returncode == 0
    assert not psutil.pid_exists(int((tmp_path / "left.pid").read_text()))
    assert play(environment, tmp_path / "two", "floods").returncode == 0
    log = (tmp_path / "two" / "agent.log").read_text()
    assert "bytes" in log.splitlines()[0]
    assert log.endswith("last\n")
    assert "\x1b" not in log
    assert 60_000 < len(log) < 70_000


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"agent": "external"}, "--agent-option name=NAME"),
        ({"model": "external:mine"}, "give --agent external --agent-option name=NAME, and no --model"),
        ({"model": "oracle", "agent_command": "x"}, "--agent-command is for --agent external"),
        (EXTERNAL | {"model": "oracle"}, "and no --model"),
        ({"agent": "external", "agent_option": {"name": "../a"}}, "name"),
        (EXTERNAL, "--agent-command"),
        (EXTERNAL | {"agent_command": "no-such-program x"}, "'no-such-program'"),
        (EXTERNAL | {"agent_command": "python 'my"}, "No closing quotation"),
    ],
)
def test_options_that_do_not_fit_are_named_before_anything_starts(
    options: dict[str, object], said: str
) -> None:
    def start() -> None:
        config = make_config(options)
        prepare_outside(config.policy.model, config.outside)

    with pytest.raises(UserError, match=re.escape(said)):
        start()
