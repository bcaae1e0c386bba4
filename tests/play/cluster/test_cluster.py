"""Workers on a real Ray cluster of three nodes, each with processes of its own."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.metadata
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil
import pytest
from chat_server import ChatServer
from command_line import EXAMPLE, assert_same_results, command, run_compass, start
from hostile_folder import make_hostile_folder
from ray_cluster import AUTHENTICATION, Node, RayCluster, ray_cluster

from evalharness.play.cluster.connect import stage
from tests.faults.runs import answer, assert_equal_runs, errors, options

pytestmark = pytest.mark.slow(400)


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    with ray_cluster((1, 1, 1)) as running:
        yield running


@pytest.fixture
def variables(environment: dict[str, str]) -> dict[str, str]:
    return environment | AUTHENTICATION


async def until_at_work(nodes: list[Node], ended: asyncio.Task[tuple[bytes, bytes]]) -> list[psutil.Process]:
    """The workers of these nodes, as soon as each has one."""
    while True:
        assert not ended.done(), ended.result()[1].decode()
        found = [node.workers() for node in nodes]
        if all(found):
            return [worker for listed in found for worker in listed]
        await asyncio.sleep(0.05)


def test_results_are_those_of_this_machine_and_environments_reach_the_nodes(
    variables: dict[str, str], tmp_path: Path, cluster: RayCluster
) -> None:
    """Compass is installed here and on no node: it gets there through Ray's runtime environment."""
    arguments = ("--model", "random", "--tasks", "compass,pddl:0-5", "--max-turns", 8)
    here = run_compass(variables, tmp_path / "here", *arguments)
    assert here.returncode == 0, here.stderr
    there = run_compass(variables, tmp_path / "there", *arguments, "--cluster", cluster.address)
    assert there.returncode == 0, there.stderr
    assert_same_results(tmp_path / "here", tmp_path / "there")
    assert not errors(tmp_path / "there")


async def test_a_killed_harness_leaves_no_worker_and_the_run_goes_on_without_the_cluster(
    variables: dict[str, str], tmp_path: Path, cluster: RayCluster
) -> None:
    async with ChatServer(answer=answer, latency=0.05).running() as server:
        arguments = options(server, "--samples", 3, "--concurrency", 6, "--workers", "compass=3")
        process = await start(
            variables, "run", "--suite", "open", "--tasks", "compass", "-o", tmp_path / "cut", *arguments,
            "--cluster", cluster.address,
        )  # fmt: skip
        ended = asyncio.create_task(process.communicate())
        workers = await until_at_work(cluster.nodes[:1], ended)
        await server.after(10)
        process.kill()
        await ended
        assert not psutil.wait_procs(workers, timeout=60)[1]
        done = await asyncio.to_thread(run_compass, variables, tmp_path / "cut", *arguments)
        assert done.returncode == 0, done.stderr
        done = await asyncio.to_thread(run_compass, variables, tmp_path / "whole", *arguments)
    assert_equal_runs(tmp_path / "whole", tmp_path / "cut")


async def test_an_agent_from_outside_plays_on_a_cluster_and_goes_on_after_a_kill(
    variables: dict[str, str], tmp_path: Path, cluster: RayCluster
) -> None:
    agent = tmp_path / "my_agent.py"
    agent.write_text(
        "import json, os, time, urllib.request\n"
        "def post(path, **body):\n"
        "    token = {'Authorization': 'Bearer ' + os.environ['EVALHARNESS_AGENT_TOKEN']}\n"
        "    url = os.environ['EVALHARNESS_AGENT_URL'] + path\n"
        "    with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), token)) as answer:\n"
        "        return json.load(answer)\n"
        "seen = post('/reset')\n"
        "while not seen['done']:\n"
        "    time.sleep(0.1)  # so that the kill comes in the middle\n"
        "    seen = post('/step', action={'text': 'turn right'})\n"
    )
    arguments = (
        "run", "--suite", "open", "--tasks", "compass", "--max-turns", 4, "-o", tmp_path / "run", "--concurrency", 2,
        "--agent", "external", "--agent-option", "name=mine", "--agent-command", f"{sys.executable} {agent}",
        "--cluster", cluster.address,
    )  # fmt: skip
    process = await start(variables, *arguments)
    ended = asyncio.create_task(process.communicate())
    while not ((kept := tmp_path / "run" / "episodes.jsonl").exists() and kept.stat().st_size):
        assert not ended.done(), ended.result()[1].decode()
        await asyncio.sleep(0.02)
    process.kill()
    await ended
    process = await start(variables, *arguments)
    _, stderr = await process.communicate()
    assert process.returncode == 0, stderr.decode()
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())["families"]["compass"]
    assert summary["episodes"] == summary["selected"]
    process = await start(variables, "verify", tmp_path / "run")
    assert (await process.communicate(), process.returncode)[1] == 0


def test_the_same_through_the_client_of_ray(
    variables: dict[str, str], tmp_path: Path, cluster: RayCluster
) -> None:
    pytest.importorskip("grpc", reason="ray:// needs gRPC: pip install 'ray[client]'")
    arguments = ("--model", "random", "--limit", 6)
    assert run_compass(variables, tmp_path / "here", *arguments).returncode == 0
    done = run_compass(variables, tmp_path / "there", *arguments, "--cluster", cluster.client)
    assert done.returncode == 0, done.stderr
    assert_same_results(tmp_path / "here", tmp_path / "there")


async def test_a_client_whose_process_on_the_head_did_not_start_joins_again(
    variables: dict[str, str], tmp_path: Path, cluster: RayCluster
) -> None:
    """The first one is killed. On a busy head it is given up, which Ray calls an "Initialization failure" just so."""
    pytest.importorskip("grpc", reason="ray:// needs gRPC: pip install 'ray[client]'")
    process = await start(
        variables, "run", "--suite", "open", "--tasks", "compass", "--model", "random", "--limit", 4,
        "-o", tmp_path / "run", "--cluster", cluster.client,
    )  # fmt: skip
    ended = asyncio.create_task(process.communicate())
    while not (found := [p for p in with_argument("--mode=specific-server") if p in cluster.processes()]):
        assert not ended.done(), ended.result()[1].decode()
        await asyncio.sleep(0.05)
    found[0].kill()
    _, stderr = await ended
    assert process.returncode == 0, stderr.decode()
    # On a busy machine a step may take longer than this environment's few seconds; it is tried again.
    assert [
        error for error in errors(tmp_path / "run") if "did not answer 'step'" not in error["error"]
    ] == []


def with_argument(word: str) -> list[psutil.Process]:
    return [p for p in psutil.process_iter(["cmdline"]) if word in (p.info["cmdline"] or [])]


def test_a_ray_of_our_own_is_gone_with_the_run_and_imports_nothing_from_the_current_folder(
    environment: dict[str, str], tmp_path: Path
) -> None:
    here = run_compass(environment, tmp_path / "here", "--model", "random", "--limit", 4)
    assert here.returncode == 0, here.stderr
    folder = make_hostile_folder(tmp_path / "folder")
    done = folder.command(
        environment, "run", "--suite", "open", "--tasks", "compass", "--model", "random", "--limit", 4, "-o",
        tmp_path / "local", "--cluster", "local",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert folder.executed() == {}
    assert_same_results(tmp_path / "here", tmp_path / "local")
    assert not raylets(environment)


def raylets(environment: Mapping[str, str]) -> list[psutil.Process]:
    """Those that commands with these variables have started; other tests have some, too."""
    found = []
    for process in psutil.process_iter(["name"]):
        with contextlib.suppress(psutil.Error):
            if (
                process.info["name"] == "raylet"
                and process.environ().get("COMPASS_FAULTS") == environment["COMPASS_FAULTS"]
            ):
                found.append(process)
    return found


async def test_a_node_that_dies_costs_nothing(
    variables: dict[str, str], tmp_path: Path, cluster: RayCluster
) -> None:
    """All processes of a node are killed while episodes are played there. The last test: the node stays dead."""
    async with ChatServer(answer=answer, latency=0.05).running() as server:
        arguments = options(server, "--samples", 6, "--concurrency", 12, "--workers", "compass=6")
        process = await start(
            variables, "run", "--suite", "open", "--tasks", "compass", "-o", tmp_path / "broken", *arguments,
            "--cluster", cluster.address, "--attempts", 6,
        )  # fmt: skip
        ended = asyncio.create_task(process.communicate())
        doomed = cluster.nodes[-1]
        workers = await until_at_work([doomed], ended)
        await server.after(20)
        doomed.kill()
        assert not psutil.wait_procs(workers, timeout=60)[1]
        _, stderr = await ended
        assert process.returncode == 0, stderr.decode()
        done = await asyncio.to_thread(run_compass, variables, tmp_path / "whole", *arguments)
        assert done.returncode == 0, done.stderr
    assert_equal_runs(tmp_path / "whole", tmp_path / "broken")
    failures = errors(tmp_path / "broken")
    assert failures
    assert {failure["kind"] for failure in failures} == {"WorkerError"}
    assert not any(failure["final"] for failure in failures)


def test_what_is_sent_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The packages and the metadata by which environments are found, of third parties too."""
    monkeypatch.syspath_prepend(str(EXAMPLE))
    sent = {Path(path).name for path in stage(tmp_path)}
    harness = f"evalharness-{importlib.metadata.version('evalharness')}.dist-info"
    assert sent == {"compass", "compass-1.0.dist-info", "evalharness", harness}
    assert (tmp_path / "evalharness" / "envs" / "pddl" / "open" / "open_suite.jsonl").stat().st_size
    points = importlib.metadata.distributions(path=[str(tmp_path)])
    found = {
        point.name for dist in points for point in dist.entry_points.select(group="evalharness.environments")
    }
    assert {"compass", "pddl", "sciworld"} <= found
    assert not list(tmp_path.rglob("__pycache__"))


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("127.0.0.1:9", "127.0.0.1:9"),
        ("ray://127.0.0.1:9", "127.0.0.1:9"),
        ("somewhere", "ray://HOST:10001, HOST:6379"),
        ("ray://host:99999999", "host:99999999"),
    ],
)
def test_a_cluster_that_is_not_there_is_told_at_once(
    environment: dict[str, str], tmp_path: Path, address: str, message: str
) -> None:
    done = run_compass(environment, tmp_path / "run", "--model", "random", "--cluster", address)
    assert done.returncode == 2
    assert message in done.stderr
    assert not (tmp_path / "run").exists()


def test_without_ray_the_command_to_get_it_is_told(environment: dict[str, str], tmp_path: Path) -> None:
    hidden = "import sys; sys.modules['ray'] = None; sys.argv[0] = 'evalharness'\n"
    code = hidden + "from evalharness.cli import main; sys.exit(main(sys.argv[1:]))"
    arguments = command(
        "run", "--suite", "open", "--tasks", "compass", "--model", "random", "--cluster", "auto"
    )[3:]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments, "-o", str(tmp_path / "run")],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "pip install 'evalharness[ray]'" in done.stderr
    assert not (tmp_path / "run").exists()
