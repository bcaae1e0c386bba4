"""What cannot be meant is refused with one clear line and status 2, before anything is played or written."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import subprocess
from pathlib import Path

import chat_server as cs
import pytest
from chat_server import ChatServer
from command_line import command, evalharness, run_compass, start

from evalharness.cli import main
from evalharness.envs import specs
from evalharness.protocol.prompt import load_prompt, prompts_folder
from evalharness.records.store import read_manifest

ORACLE = ["run", "--model", "oracle", "--suite", "open", "--tasks", "babyai:0", "--max-turns", "1"]


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The one line that was said."""
    assert main(arguments) == 2
    told = capsys.readouterr()
    assert told.out == ""
    [line] = told.err.splitlines()
    return line


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--max-turns", "10001"], "--max-turns 10001"),
        (["-o", ""], "--output "),
        (["-o", "/"], "manifest.json"),
        (["-o", "x" * 300], "File name too long"),
        (["-o", "file"], "file is"),
        (["-o", "full"], "'thesis.tex'"),
        (["--json", "absent/out.json"], "--json absent/out.json"),
        (["--json", "full"], "cannot write --json full: Is a directory"),
    ],
)
def test_options_that_cannot_be_meant(
    options: list[str],
    message: str,
    clean_home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("x")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("x")
    before = sorted(tmp_path.rglob("*"))
    assert message in refused([*ORACLE, *options], capsys)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_configuration_file_is_held_to_the_same(
    clean_home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run.yaml").write_text('model: oracle\nsuite: open\noutput: ""\ntemperature: -1\n')
    line = refused(["run", "--config", str(tmp_path / "run.yaml")], capsys)
    assert "--output " in line
    assert "--temperature -1" in line


@pytest.mark.parametrize("option", ["--json", "--csv"])
def test_a_study_finds_out_before_it_plays(
    option: str, clean_home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = ["sweep", "--model", "oracle", "--suite", "open", "--tasks", "babyai:0"]
    line = refused([*study, "-o", str(tmp_path / "s"), option, str(tmp_path / "no" / "x")], capsys)
    assert f"cannot write {option}" in line
    assert not (tmp_path / "s").exists()
    (tmp_path / "notes.txt").write_text("x")
    assert "study.json" in refused([*study, "-o", str(tmp_path)], capsys)


def test_a_file_that_can_be_written_is_left_as_it_is(clean_home: Path, tmp_path: Path) -> None:
    """Found out before the run, and nothing is lost or left behind when that is refused."""
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text("kept")
    for target in (old, new):
        assert main([*ORACLE, "--tasks", "nowhere", "--json", str(target)]) == 2
    assert old.read_text() == "kept"
    assert not new.exists()


def test_a_folder_that_a_killed_run_left_is_taken(clean_home: Path, tmp_path: Path) -> None:
    """Killed before its manifest was written: the lock, the logs of servers and workers, half a file."""
    (tmp_path / "run").mkdir()
    for name in (".lock", "server.log", "server-2.log", "workers.log", ".manifest.json.47.tmp"):
        (tmp_path / "run" / name).touch()
    assert main([*ORACLE, "-o", str(tmp_path / "run")]) == 0


@pytest.mark.parametrize(
    ("name", "found"),
    [("babyai.yml", "'babyai.yml'"), ("BabyAI.yaml", "'BabyAI.yaml'"), (None, "nothing")],
)
def test_a_prompts_folder_without_a_played_family_is_refused(
    name: str | None, found: str, clean_home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "prompts"
    folder.mkdir()
    if name:
        (folder / name).write_text((prompts_folder() / "babyai.yaml").read_text())
    line = refused([*ORACLE, "--prompts", str(folder), "-o", str(tmp_path / "run")], capsys)
    assert f"no babyai.yaml; the folder has: {found}" in line
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_every_played_family_needs_its_prompt(
    clean_home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "babyai.yaml").write_text((prompts_folder() / "babyai.yaml").read_text())
    assert main([*ORACLE, "--prompts", str(tmp_path), "-o", str(tmp_path / "run")]) == 0
    capsys.readouterr()
    line = refused([*ORACLE, "--tasks", "babyai:0,pddl:0", "--prompts", str(tmp_path)], capsys)
    assert "no pddl.yaml; the folder has: 'babyai.yaml'" in line


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("{actions}", "anything", "instruction lacks {actions}"),
        ("{actions}", "{actions} {nope}", "{nope} in instruction"),
        ("You control", "You {actions} control", "{actions} in system"),
        ("{actions}", "{action}", "{action} in instruction"),
    ],
)
def test_a_prompt_whose_placeholders_are_wrong_is_refused(
    old: str, new: str, message: str, clean_home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (prompts_folder() / "babyai.yaml").read_text()
    (tmp_path / "babyai.yaml").write_text(text.replace(old, new, 1))
    line = refused([*ORACLE, "--prompts", str(tmp_path), "-o", str(tmp_path / "run")], capsys)
    assert message in line
    assert not (tmp_path / "run").exists()


def test_a_variant_needs_its_list_of_actions_too(
    clean_home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (prompts_folder() / "pddl.yaml").read_text()
    head, _, tail = text.rpartition("{actions}")
    (tmp_path / "pddl.yaml").write_text(head + "anything" + tail)
    line = refused([*ORACLE, "--tasks", "pddl:0", "--prompts", str(tmp_path)], capsys)
    assert "variants." in line
    assert "lacks {actions}" in line


def test_prose_may_mention_the_slots_of_actions_and_braces_of_its_own(tmp_path: Path) -> None:
    text = (prompts_folder() / "babyai.yaml").read_text()
    (tmp_path / "babyai.yaml").write_text(text.replace("{actions}", '{actions} {object} {"a": {}}', 1))
    load_prompt(specs()["babyai"], tmp_path)


@pytest.mark.slow
def test_samples_without_chance_are_told(
    clean_home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*ORACLE, "--samples", "3", "-o", str(tmp_path / "a")]) == 0
    assert "--samples 3 at temperature 0" in capsys.readouterr().err
    walk = ["random" if word == "oracle" else word for word in ORACLE]
    assert main([*walk, "--samples", "2", "-o", str(tmp_path / "b")]) == 0
    assert "--samples" not in capsys.readouterr().err


def _obey_permissions() -> None:
    """Before exec: a process of root without the capabilities that pass over permissions; others have none."""
    if os.geteuid() == 0:
        for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
            ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP


@pytest.mark.parametrize("below", [".", "agentboard", "agentboard/pddl"])
@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "--model", "oracle", "--tasks", "pddl:0", "--data"],
        ["doctor", "--data"],
        ["data", "verify", "--data"],
    ],
    ids=["run", "doctor", "data verify"],
)
def test_an_unreadable_data_folder(
    environment: dict[str, str], tmp_path: Path, arguments: list[str], below: str
) -> None:
    data = tmp_path / "data"
    (data / "agentboard" / "pddl").mkdir(parents=True)
    (data / below).chmod(0)
    done = subprocess.run(
        command(*arguments, data),
        env=environment,
        capture_output=True,
        text=True,
        preexec_fn=_obey_permissions,
        check=False,
    )
    (data / below).chmod(0o755)
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert f"data folder {data}: cannot read {data / below}: Permission denied" in line
    assert done.stdout == ""


def test_an_unreadable_file_of_the_data(environment: dict[str, str], tmp_path: Path) -> None:
    family = tmp_path / "data" / "agentboard" / "pddl"
    family.mkdir(parents=True)
    (family / "test.jsonl").touch(mode=0)
    for arguments in (["data", "verify"], ["show", "--tasks", "pddl", "--suite", "agentboard"]):
        done = subprocess.run(
            command(*arguments, "--data", tmp_path / "data"),
            env=environment,
            capture_output=True,
            text=True,
            preexec_fn=_obey_permissions,
            check=False,
        )
        assert done.returncode == 2
        [line] = done.stderr.splitlines()
        assert str(family / "test.jsonl") in line
        assert "Permission denied" in line


@pytest.mark.parametrize("unreadable", ["prompts", "prompts/babyai.yaml"])
def test_unreadable_prompts(environment: dict[str, str], tmp_path: Path, unreadable: str) -> None:
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "babyai.yaml").write_text("x")
    (tmp_path / unreadable).chmod(0)
    done = subprocess.run(
        command(*ORACLE, "--prompts", tmp_path / "prompts", "-o", tmp_path / "run"),
        env=environment,
        capture_output=True,
        text=True,
        preexec_fn=_obey_permissions,
        check=False,
    )
    (tmp_path / unreadable).chmod(0o755)
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert str(tmp_path / "prompts") in line
    assert "Permission denied" in line
    assert not (tmp_path / "run").exists()


async def test_a_server_for_which_everything_is_too_long(environment: dict[str, str], tmp_path: Path) -> None:
    too_long = cs.status(400, "This model's maximum context length is 4 tokens")
    async with ChatServer(choose_fault=lambda request: too_long).running() as server:
        done = await asyncio.to_thread(
            run_compass, environment, tmp_path / "run", "--model", server.url, "--model-name", "toy"
        )
    assert done.returncode == 2
    assert "maximum context length is 4 tokens" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()


async def test_a_server_that_is_always_too_busy_is_given_up_with_its_words(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """From the start, and from the fifth request on: a quota that is used up also looks like this."""
    server = ChatServer(choose_fault=lambda request: cs.status(429, "quota used up"))
    options = ("--model", server.url, "--model-name", "toy", "--timeout", 1, "--max-turns", 3)
    async with server.running():
        options = ("--model", server.url, *options[2:])
        done = await asyncio.to_thread(run_compass, environment, tmp_path / "run", *options)
        assert done.returncode == 3
        assert "HTTP 429: quota used up" in done.stderr  # while it goes on
        assert "quota used up, " in done.stderr.splitlines()[-1]
        assert not (tmp_path / "run").exists()
        server.requests.clear()
        server.choose_fault = lambda request: (
            cs.status(429, "quota used up") if len(server.requests) > 4 else None
        )
        done = await asyncio.to_thread(run_compass, environment, tmp_path / "run", *options)
    assert done.returncode == 3
    assert "quota used up" in done.stderr


async def test_an_endpoint_that_serves_one_model_needs_no_name(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """The name is in the manifest, as if it had been given."""
    async with ChatServer(model="only/one").running() as server:
        options = ("--model", server.url, "--max-turns", 2, "--limit", 1)
        done = await asyncio.to_thread(run_compass, environment, tmp_path / "run", *options)
    assert done.returncode == 0, done.stderr
    assert read_manifest(tmp_path / "run").model_name == "only/one"


async def test_an_endpoint_that_does_not_say_which_needs_a_name(
    environment: dict[str, str], tmp_path: Path
) -> None:
    async with ChatServer(list_fault=cs.status(404)).running() as server:
        done = await asyncio.to_thread(run_compass, environment, tmp_path / "run", "--model", server.url)
    assert done.returncode == 2
    assert "--model-name NAME" in done.stderr
    two = cs.body('{"data": [{"id": "b"}, {"id": "a"}]}')
    async with ChatServer(list_fault=two).running() as server:
        done = await asyncio.to_thread(run_compass, environment, tmp_path / "run", "--model", server.url)
    assert done.returncode == 2
    assert "2 models: a, b" in done.stderr
    assert not (tmp_path / "run").exists()


async def test_a_farewell_names_only_a_folder_that_is_there(
    environment: dict[str, str], tmp_path: Path
) -> None:
    busy = cs.status(429, "slow down")
    async with ChatServer(choose_fault=lambda request: busy).running() as server:
        process = await start(
            environment, "run", "--suite", "open", "--tasks", "compass", "-o", tmp_path / "run",
            "--model", server.url, "--model-name", "toy",
        )  # fmt: skip
        await server.after(2)
        process.send_signal(signal.SIGINT)
        _, stderr = await process.communicate()
    assert process.returncode == 130
    assert b"stopped; nothing had been played yet" in stderr
    assert b"kept in" not in stderr
    assert not (tmp_path / "run").exists()


def test_the_command_line_says_it_too(environment: dict[str, str], tmp_path: Path) -> None:
    """One of these in a process of its own, as a person starts it."""
    done = evalharness(environment, *ORACLE, "-o", "x" * 300)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
