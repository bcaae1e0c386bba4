"""`evalharness run` from the command line, with real worker processes and a real chat server."""

from __future__ import annotations

import asyncio
import json
import random
import re
import signal
import subprocess
import sys
from pathlib import Path

import chat_server as cs
import psutil
import pytest
from chat_server import ChatServer
from command_line import assert_same_results, command, evalharness, run_compass, start

from evalharness.records.store import read_episodes

pytestmark = pytest.mark.smoke


def summary_of(folder: Path) -> dict[str, object]:
    result: dict[str, object] = json.loads((folder / "summary.json").read_text())
    return result


def test_the_oracle_solves_every_task_and_the_table_says_so(
    environment: dict[str, str], tmp_path: Path
) -> None:
    done = run_compass(environment, tmp_path / "run", "--model", "oracle", "--json", tmp_path / "out.json")
    assert done.returncode == 0, done.stderr
    assert "Compass" in done.stdout
    assert "100.0 % [83.9, 100.0]" in done.stdout
    assert str(tmp_path / "run") in done.stdout
    summary = summary_of(tmp_path / "run")
    del summary["made_from"]  # of the file alone: what it was made from
    assert json.loads((tmp_path / "out.json").read_text()) == summary
    shown = evalharness(environment, "show", tmp_path / "run")
    assert "100.0 [83.9, 100.0]" in shown.stdout


def test_same_options_same_results_whatever_the_concurrency(
    environment: dict[str, str], tmp_path: Path
) -> None:
    for name, concurrency in (("a", 1), ("b", 16)):
        done = run_compass(environment, tmp_path / name, "--model", "random", "--concurrency", concurrency)
        assert done.returncode == 0, done.stderr
    assert_same_results(tmp_path / "a", tmp_path / "b")


def test_a_replay_plays_the_same_episodes(environment: dict[str, str], tmp_path: Path) -> None:
    run_compass(environment, tmp_path / "a", "--model", "random")
    done = run_compass(environment, tmp_path / "b", "--model", f"replay:{tmp_path / 'a'}")
    assert done.returncode == 0, done.stderr
    assert_same_results(tmp_path / "a", tmp_path / "b")


def test_the_same_command_does_nothing_twice(environment: dict[str, str], tmp_path: Path) -> None:
    run_compass(environment, tmp_path / "run", "--model", "random")
    before = (tmp_path / "run" / "episodes.jsonl").read_bytes()
    done = run_compass(environment, tmp_path / "run", "--model", "random")
    assert done.returncode == 0
    assert (tmp_path / "run" / "episodes.jsonl").read_bytes() == before


def test_a_changed_configuration_is_refused(environment: dict[str, str], tmp_path: Path) -> None:
    run_compass(environment, tmp_path / "run", "--model", "random")
    before = sorted((p.name, p.read_bytes()) for p in (tmp_path / "run").iterdir())
    done = run_compass(environment, tmp_path / "run", "--model", "random", "--seed", 1)
    assert done.returncode == 2
    assert "--seed: 0 there, 1 now" in done.stderr
    assert before == sorted((p.name, p.read_bytes()) for p in (tmp_path / "run").iterdir())


async def test_kill_and_resume_until_done_equals_an_uninterrupted_run(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """SIGKILL at random requests; workers die with the harness; nothing is lost and nothing is double."""
    rng = random.Random(5)
    async with ChatServer(latency=0.01).running() as server:
        options = ("--model", server.url, "--model-name", "toy", "--max-turns", 6, "--concurrency", 3)
        whole = await asyncio.to_thread(run_compass, environment, tmp_path / "whole", *options)
        assert whole.returncode == 0, whole.stderr
        kills = 0
        while True:
            process = await start(
                environment, "run", "--suite", "open", "--tasks", "compass", "-o", tmp_path / "cut", *options
            )
            ended = asyncio.create_task(process.communicate())
            await asyncio.wait(
                {ended, asyncio.create_task(server.after(rng.randint(2, 40)))},
                return_when=asyncio.FIRST_COMPLETED,
            )
            if ended.done():
                break
            children = psutil.Process(process.pid).children(recursive=True)
            process.kill()
            await ended
            kills += 1
            assert not psutil.wait_procs(children, timeout=20)[1]
    assert process.returncode == 0
    assert kills >= 2
    keys = [(e.task_id, e.sample) for e in read_episodes(tmp_path / "cut")]
    assert len(keys) == len(set(keys)) == 20
    assert_same_results(tmp_path / "whole", tmp_path / "cut")


@pytest.mark.parametrize("kind", ["exit", "kill", "stop", "hang", "raise"])
async def test_a_broken_simulator_is_replaced_and_its_episodes_start_over(
    environment: dict[str, str], tmp_path: Path, kind: str
) -> None:
    """The process exits, is killed, is stopped, hangs, raises: results are those of an unbroken run."""
    async with ChatServer(answer=lambda request: f"Action: fault {kind}").running() as server:
        options = ("--model", server.url, "--model-name", "toy", "--max-turns", 3, "--tasks", "compass:1-2")
        done = await asyncio.to_thread(
            run_compass, environment, tmp_path / "run", *options, "--tries", 4
        )  # fmt: skip
        again = await asyncio.to_thread(run_compass, environment, tmp_path / "whole", *options)
    assert (done.returncode, again.returncode) == (0, 0), done.stderr
    errors = [json.loads(line) for line in (tmp_path / "run" / "errors.jsonl").read_text().splitlines()]
    assert {error["kind"] for error in errors} == {"WorkerError"}
    assert not any(error["final"] for error in errors)
    assert not (tmp_path / "whole" / "errors.jsonl").exists()
    assert_same_results(tmp_path / "run", tmp_path / "whole")


async def test_an_action_that_ends_every_simulator_ends_its_episode_once_with_its_progress(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """It is counted and marked; what ends a simulator only once is infrastructure, and tried again."""
    async with ChatServer(answer=lambda request: "Action: fault always exit").running() as server:
        done = await asyncio.to_thread(
            run_compass, environment, tmp_path / "run", "--model", server.url, "--model-name", "toy",
            "--tasks", "compass:1", "--tries", 2,
        )  # fmt: skip
        asked = len(server.requests)
    assert (done.returncode, asked) == (0, 2), "a look at the server, and one turn"
    summary = summary_of(tmp_path / "run")
    assert summary["simulator_halted_episodes"] == 1
    assert summary["families"]["compass"]["n"] == 1  # type: ignore[index]
    assert "1 episode was ended" in " ".join(done.stdout.split())
    [episode] = read_episodes(tmp_path / "run")
    assert (episode.ended_by, episode.success, len(episode.turns)) == ("simulator_halted", False, 1)
    assert "exit status 7" in episode.turns[0].observation
    assert not (tmp_path / "run" / "errors.jsonl").exists()
    checked = evalharness(environment, "verify", tmp_path / "run")
    assert checked.returncode == 0, checked.stdout


async def test_a_simulator_that_fails_in_every_episode_is_named_as_broken(
    environment: dict[str, str], tmp_path: Path
) -> None:
    async with ChatServer(answer=lambda request: "Action: fault always raise").running() as server:
        done = await asyncio.to_thread(
            run_compass, environment, tmp_path / "run", "--model", server.url, "--model-name", "toy",
            "--tasks", "compass:1-2",
        )  # fmt: skip
    assert done.returncode == 3
    assert "every episode of Compass" in " ".join(done.stdout.split())
    assert "RuntimeError: the needle fell off" in (tmp_path / "run" / "workers.log").read_text()


async def test_a_dead_server_ends_the_run_and_the_same_command_continues(
    environment: dict[str, str], tmp_path: Path
) -> None:
    server = ChatServer()
    options: tuple[object, ...] = (
        "--model-name",
        "toy",
        "--max-turns",
        2,
        "--concurrency",
        2,
        "--tries",
        1,
    )
    async with server.running():
        server.faults = []
        answered = 0

        def answer(request: dict[str, object]) -> str:
            nonlocal answered
            answered += 1
            if answered == 9:
                server.faults = [cs.status(500, headers=cs.AT_ONCE)] * 10_000
            return "Action: turn up"

        server.answer = answer
        done = await asyncio.to_thread(
            run_compass, environment, tmp_path / "run", "--model", server.url, *options
        )
        assert done.returncode == 3
        kept = len(list(read_episodes(tmp_path / "run")))
        assert 1 <= kept < 20
        server.faults = []
        done = await asyncio.to_thread(
            run_compass, environment, tmp_path / "run", "--model", server.url, *options
        )
    assert done.returncode == 0, done.stderr
    assert len(list(read_episodes(tmp_path / "run"))) == 20
    assert summary_of(tmp_path / "run")["families"]["compass"]["infrastructure_failures"] == 0  # type: ignore[index]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
async def test_an_interrupted_run_says_how_to_go_on(
    environment: dict[str, str], tmp_path: Path, number: signal.Signals, status: int
) -> None:
    async with ChatServer(latency=0.3).running() as server:
        process = await start(
            environment, "run", "--suite", "open", "--tasks", "compass", "-o", tmp_path / "run",
            "--model", server.url, "--model-name", "toy", "--concurrency", 2,
        )  # fmt: skip
        await server.after(5)
        children = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(number)
        _, stderr = await process.communicate()
    assert process.returncode == status
    assert re.search(rb"stopped; \d+ episodes? (is|are) kept in .*; to continue: evalharness run ", stderr)
    assert b"Traceback" not in stderr
    assert not psutil.wait_procs(children, timeout=20)[1]


async def test_the_key_is_never_written(environment: dict[str, str], tmp_path: Path) -> None:
    async with ChatServer().running() as server:
        done = await asyncio.to_thread(
            run_compass, {**environment, "MY_KEY": "sk-very-secret"}, tmp_path / "run", "--model", server.url,
            "--model-name", "toy", "--api-key-env", "MY_KEY", "--max-turns", 1,
        )  # fmt: skip
        assert server.headers[-1]["Authorization"] == "Bearer sk-very-secret"
    assert done.returncode == 0
    for path in (tmp_path / "run").iterdir():
        assert b"sk-very-secret" not in path.read_bytes()
    assert "sk-very-secret" not in done.stdout + done.stderr


async def test_a_full_context_drops_old_turns_and_says_so(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """A server that takes at most ten messages, as vLLM refuses a prompt over its limit."""
    server = ChatServer()

    async def limited(request: cs.web.Request) -> cs.web.StreamResponse:
        server.faults.append(limited)
        if len((await request.json())["messages"]) > 10:
            return await cs.status(400, "maximum context length is 10 messages")(request)
        return cs.web.json_response(cs.completion("Action: turn up"))

    async with server.running():
        server.faults = [limited]
        done = await asyncio.to_thread(
            run_compass, environment, tmp_path / "run", "--model", server.url, "--model-name", "toy",
            "--tasks", "compass:0", "--max-turns", 12,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    [episode] = read_episodes(tmp_path / "run")
    assert len(episode.turns) == 12
    assert [(trim.turn, trim.dropped) for trim in episode.trims] == [(6, 3), (9, 3), (12, 3)]
    first = server.requests[1]["messages"][:2]
    assert all(request["messages"][:2] == first for request in server.requests[1:])
    assert "context" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--model", "oracle", "--tasks", "compas"), "'compass'?"),
        (("--model", "oracle", "--tasks", "compass:90"), "0-19"),
        (("--model", "oracle", "--tasks", "compass:x"), "compass:x"),
        (("--model", "oracle", "--tasks", "compass/open/099"), "unknown task"),
        (("--model", "oracle", "--limit", "0"), "--limit 0"),
        (("--model", "oracle", "--max-turns", "0"), "--max-turns 0"),
        (("--model", "oracle", "--workers", "nowhere=2"), "unknown family 'nowhere'"),
        (("--model", "nowhere/at/all"), "nowhere/at/all"),
        (("--model", "./ckpt-that-is-not"), "ckpt-that-is-not"),
        (("--model", "http://127.0.0.1:9/v1"), "no answer"),
        (("--model", "http://127.0.0.1:9/v1", "--model-name", "x"), "no answer"),
        (
            ("--model", "http://127.0.0.1:9/v1", "--model-name", "x", "--api-key-env", "NOT_SET_X"),
            "NOT_SET_X",
        ),
        (("--model", "replay:nowhere"), "nowhere"),
        ((), "no model"),
        (("--model", "oracle", "--prompts", "/nonexistent"), "/nonexistent"),
    ],
)
def test_a_bad_request_gets_one_clear_line_and_leaves_nothing(
    environment: dict[str, str], tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    done = run_compass(environment, tmp_path / "run", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()


def test_options_may_come_from_a_file(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text("model: oracle\ntasks: compass\nsuite: open\nlimit: 3\nmax-turns: 1\n")
    done = evalharness(
        environment, "run", "--config", tmp_path / "run.yaml", "-o", tmp_path / "run", "--limit", 2
    )
    assert done.returncode == 0, done.stderr
    config = json.loads((tmp_path / "run" / "manifest.json").read_text())["identity"]["config"]
    assert (config["limit"], config["max_turns"]) == (2, 1)
    (tmp_path / "run.yaml").write_text("modle: oracle\n")
    done = evalharness(environment, "run", "--config", tmp_path / "run.yaml", "--model", "oracle")
    assert done.returncode == 2
    assert "modle" in done.stderr


def test_help_imports_nothing_heavy() -> None:
    """What makes `--help` quick: none of the libraries is imported for it."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *command("--help")[1:]],
        capture_output=True,
        text=True,
        check=True,
    )
    heavy = {"numpy", "pandas", "pyarrow", "pydantic", "aiohttp", "rich", "gymnasium", "yaml", "asyncio"}
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
    assert not heavy & imported


def test_show_escapes_what_a_model_wrote(environment: dict[str, str], tmp_path: Path) -> None:
    run_compass(environment, tmp_path / "run", "--model", "random", "--tasks", "compass:0")
    path = tmp_path / "run" / "episodes.jsonl"
    hostile = "\\u001b]0;owned\\u0007\\u202e[bold]"
    path.write_text(path.read_text().replace("Any valid action will do.", hostile))
    done = evalharness(environment, "show", tmp_path / "run", "compass/open/000")
    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    assert "\u202e" not in done.stdout
    assert "\\x1b]0;owned\\x07\\u202e[bold]" in done.stdout
