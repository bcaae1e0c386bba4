"""Several servers of one model: episodes stay with theirs, and move when it dies."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import chat_server as cs
import pytest
from chat_server import ChatServer
from command_line import assert_same_results, run_compass
from empty_checkpoint import make_empty_checkpoint
from fake_vllm import make_fake_vllm

from evalharness.base.errors import UserError
from evalharness.models.endpoint import ChatEndpoint
from evalharness.models.replicas import ModelGoneError, Replica, Replicas
from evalharness.models.sampling import Sampling
from evalharness.models.serving.find import ServerCommand
from evalharness.models.serving.managed import ManagedServer, ServerStartError
from evalharness.models.serving.placement import gpus_of_one, place_on_gpus, visible_gpus
from evalharness.records.store import read_episodes


def conversations(server: ChatServer) -> list[str]:
    """The first observation and goal of every request but the probe: what tells episodes apart here."""
    return [
        request["messages"][1]["content"] for request in server.requests if len(request["messages"]) >= 2
    ][1:]


def answer(request: dict[str, Any]) -> str:
    return "Action: turn left" if len(request["messages"]) % 4 else "Action: turn up"


async def test_two_endpoints_share_the_episodes_and_each_episode_stays_with_its_own(
    environment: dict[str, str], tmp_path: Path
) -> None:
    async with (
        ChatServer(answer=answer, latency=0.02).running() as one,
        ChatServer(answer=answer, latency=0.02).running() as two,
    ):
        done = await asyncio.to_thread(
            run_compass, environment, tmp_path / "both", "--model", one.url, "--model", two.url,
            "--model-name", "toy", "--max-turns", 4, "--concurrency", 4,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        shares = [len(conversations(server)) for server in (one, two)]
        alone = await asyncio.to_thread(
            run_compass, environment, tmp_path / "one", "--model", one.url, "--model-name", "toy",
            "--max-turns", 4,
        )  # fmt: skip
        assert alone.returncode == 0, alone.stderr
    assert min(shares) > 0.25 * sum(shares)
    seeds = [{request["seed"] for request in server.requests} for server in (one, two)]
    for server, own in zip((one, two), seeds, strict=True):
        # The second turn of an episode is asked where the first one was: both end with the same prefix.
        assert own, server.url
    assert_same_results(tmp_path / "both", tmp_path / "one")


async def test_the_episodes_of_a_dead_endpoint_move_to_the_other(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """One of two servers answers 500 from its twelfth request on; no episode is lost, none is played again."""
    one, two = ChatServer(answer=answer, latency=0.01), ChatServer(answer=answer, latency=0.01)
    asked = 0

    def dying(request: dict[str, Any]) -> str:
        nonlocal asked
        asked += 1
        if asked == 12:
            two.faults = [cs.status(500)] * 10_000
        return answer(request)

    two.answer = dying
    async with one.running(), two.running():
        done = await asyncio.to_thread(
            run_compass, environment, tmp_path / "run", "--model", one.url, "--model", two.url,
            "--model-name", "toy", "--max-turns", 4, "--concurrency", 4,
        )  # fmt: skip
        whole = await asyncio.to_thread(
            run_compass, environment, tmp_path / "whole", "--model", one.url, "--model-name", "toy",
            "--max-turns", 4,
        )  # fmt: skip
    assert (done.returncode, whole.returncode) == (0, 0), done.stderr
    assert len(list(read_episodes(tmp_path / "run"))) == 20
    assert not (tmp_path / "run" / "errors.jsonl").exists()
    events = json.loads((tmp_path / "run" / "summary.json").read_text())["performance"]["events"]
    assert two.url in events[0]["event"]
    assert "is down" in events[0]["event"]
    assert_same_results(tmp_path / "run", tmp_path / "whole")


def managed(tmp_path: Path, program: Path) -> ManagedServer:
    command = ServerCommand((str(program), "serve"), "--vllm", program, "cpu", None, None, model_flag=())
    return ManagedServer(
        command=command, model=make_empty_checkpoint(tmp_path / "model"), served_name="toy",
        log_path=tmp_path / "server.log", environment={"FAKE_VLLM_LOG": str(tmp_path / "starts")},
    )  # fmt: skip


async def test_whatever_keeps_a_server_from_starting_again_ends_the_wait_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full() -> Path:
        raise OSError("No space left on device")

    server = managed(tmp_path, make_fake_vllm(tmp_path / "bin"))
    await server.start()
    monkeypatch.setattr("evalharness.models.serving.managed._socket_folder", full)
    group = Replicas([Replica("one", ChatEndpoint(server.base_url, "toy", sampling=Sampling()), server)])
    group.replicas[0].up = False
    waiting = asyncio.create_task(group.choose(None))
    await server.kill()
    with pytest.raises(ModelGoneError, match="No space left"):
        await asyncio.wait_for(waiting, 60)
    await group.close()


@pytest.mark.parametrize("refused", ["mkdtemp", "gettempdir"])
async def test_a_full_disk_at_the_first_start_is_no_traceback(
    refused: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: Any, **more: Any) -> str:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    server = managed(tmp_path, make_fake_vllm(tmp_path / "bin"))
    monkeypatch.setattr(tempfile, refused, full)
    with pytest.raises(ServerStartError, match=r"No space left.* TMPDIR"):
        await server.start()


async def test_a_server_that_does_not_list_its_model_is_no_traceback(tmp_path: Path) -> None:
    program = make_fake_vllm(tmp_path / "bin")
    program.write_text(program.read_text().replace('"max_model_len"', '"other"'))
    with pytest.raises(ServerStartError, match="model"):
        await managed(tmp_path, program).start()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--model", "http://127.0.0.1:9/v1", "--model", "oracle"), "oracle"),
        (("--model", "oracle", "--replicas", "2"), "--replicas"),
        (("--model", "http://127.0.0.1:9/v1", "--replicas", "2"), "--replicas"),
    ],
)
def test_what_cannot_be_doubled_is_said(
    environment: dict[str, str], tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    done = run_compass(environment, tmp_path / "run", *arguments)
    assert done.returncode == 2
    assert message in done.stderr


def test_gpu_sets_do_not_overlap_and_follow_the_parallel_sizes() -> None:
    gpus = ["0", "1", "2", "3", "4", "5", "6", "7"]
    assert gpus_of_one(["--tensor-parallel-size", "2", "--pipeline_parallel_size=2"]) == 4
    assert gpus_of_one(["-tp", "2"]) == 2
    assert gpus_of_one(["--max-model-len", "4096"]) == 1
    assert gpus_of_one(["-tp", "0"]) == 1  # vLLM says what is wrong with it
    assert [v["CUDA_VISIBLE_DEVICES"] for v in place_on_gpus(4, 2, gpus)] == ["0,1", "2,3", "4,5", "6,7"]
    assert place_on_gpus(1, 8, []) == [{}]
    with pytest.raises(UserError, match=r"4 GPUs .*2 each.* 3 .*at most 1 "):
        place_on_gpus(2, 2, gpus[:3])


def test_the_users_choice_of_gpus_is_kept() -> None:
    assert visible_gpus({"CUDA_VISIBLE_DEVICES": "3, 5"}) == ["3", "5"]
    assert visible_gpus({"CUDA_VISIBLE_DEVICES": ""}) == []


@pytest.mark.parametrize(
    ("chosen", "seen"),
    [("0,1", ["0", "1"]), ("0,-1,1", ["0"]), ("-1", []), ("", []), ("GPU-5, 2", ["GPU-5", "2"])],
)
def test_what_cuda_does_not_see_is_no_gpu(chosen: str, seen: list[str]) -> None:
    assert visible_gpus({"CUDA_VISIBLE_DEVICES": chosen}) == seen
