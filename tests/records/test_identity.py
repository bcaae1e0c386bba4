"""A run goes on with the model it began with: what an endpoint's server says of itself, and a checkpoint's hash."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import chat_server as cs
import pytest
from against_server import asking
from chat_server import ChatServer
from empty_checkpoint import make_empty_checkpoint, write_safetensors

from evalharness.base.errors import UserError
from evalharness.cli import main
from evalharness.config import RunConfig
from evalharness.envs import specs
from evalharness.models.resolve import prepare
from evalharness.models.served import read_served_model, require_one
from evalharness.records.store import MANIFEST, read_episodes, read_manifest
from evalharness.runs.evaluation import evaluate

A = {"root": "/ckpt/a", "max_model_len": 4096, "created": 1, "owned_by": "vllm"}
B = {**A, "root": "/ckpt/b"}


def options(server: ChatServer, *more: object) -> list[str]:
    arguments = (
        "run", "--model", server.url, "--model-name", "toy", "--suite", "open", "--tasks", "babyai:0-1",
        "--max-turns", 1, "--concurrency", 1,
    )  # fmt: skip
    return [str(argument) for argument in (*arguments, *more)]


async def run(server: ChatServer, *more: object) -> int:
    return await asyncio.to_thread(main, options(server, *more))


def folders_in(place: Path) -> list[Path]:
    return sorted(place.iterdir())


@pytest.mark.slow
async def test_a_finished_run_is_not_shown_for_another_model(
    clean_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    server = ChatServer(says=A)
    async with server.running():
        assert await run(server) == 0
        assert "2 of 2 episodes" not in capsys.readouterr().out
    [folder] = folders_in(tmp_path / "results")
    folder = folder.relative_to(tmp_path)
    assert read_manifest(folder).identity.model == {
        "kind": "endpoint", "name": "toy", "served": {"id": "toy", "root": "/ckpt/a", "max_model_len": 4096}
    }  # fmt: skip
    server.requests.clear()
    # The same model on another port, started later: vLLM's `created` is the time of the start or of the request.
    server.says = {**A, "created": 2}
    async with server.running():
        assert await run(server) == 0
        again = " ".join(capsys.readouterr().out.split())
        assert "2 of 2 episodes were finished" in again
        assert "-o DIR" in again
        assert server.requests == []
        server.says = B
        assert await run(server) == 2
        told = capsys.readouterr()
        assert told.out == ""
        assert f"{folder} " in told.err
        assert 'model.served.root: "/ckpt/a" there, "/ckpt/b" now' in told.err
        assert "-o DIR" in told.err
        server.says = {**A, "max_model_len": 8192}
        assert await run(server) == 2
        assert "model.served.max_model_len: 4096 there, 8192 now" in capsys.readouterr().err
    # Nobody serves another model there: what is stored is shown, and that nobody was asked is said.
    assert await run(server) == 0
    told = capsys.readouterr()
    assert "2 of 2 episodes" in " ".join(told.out.split())
    assert server.url in told.err
    assert await run(server, "--samples", 2, "-o", folder) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert f"evalharness show {folder}" in told.err
    assert folders_in(tmp_path / "results") == [tmp_path / folder]


async def test_a_finished_study_needs_no_server_and_no_name(
    clean_home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same command, and with more samples the server is missed; another model's name is another configuration."""
    server = ChatServer(says=A)
    words = ["bon", "--suite", "open", "--tasks", "babyai", "--limit", "1", "--max-turns", "2"]
    words += ["-o", str(tmp_path / "study"), "--model"]
    async with server.running():
        words.append(server.url)
        assert await asyncio.to_thread(main, [*words, "-n", "2"]) == 0
    table = capsys.readouterr().out
    assert await asyncio.to_thread(main, [*words, "-n", "2"]) == 0
    told = capsys.readouterr()
    assert table.partition("study folder")[0] in told.out
    assert "2 of 2 episodes" in told.out
    assert "stored results" in told.err
    assert await asyncio.to_thread(main, [*words, "-n", "3"]) == 2
    assert "evalharness show" in capsys.readouterr().err
    assert await asyncio.to_thread(main, [*words, "-n", "2", "--model-name", "other"]) == 2
    assert '--model-name: "toy" there, "other" now' in capsys.readouterr().err


async def test_an_interrupted_run_does_not_go_on_with_another_model(
    clean_home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second episode's request fails for good; then another checkpoint is served at the same place."""
    folder = tmp_path / "run"
    server = ChatServer(says=A)

    def answer(request: dict[str, Any]) -> str:
        if request["max_tokens"] > 4:
            server.choose_fault = lambda request: cs.status(500, "out of memory", cs.AT_ONCE)
        return "Action: turn left"

    server.answer = answer
    async with server.running():
        assert await run(server, "-o", folder, "--tries", 1, "--timeout", 2) == 3
        assert len(list(read_episodes(folder))) == 1
        server.choose_fault, server.says = lambda request: None, B
        server.answer = lambda request: "Action: turn left"
        capsys.readouterr()
        assert await run(server, "-o", folder, "--timeout", 2) == 2
        assert '"/ckpt/a" there, "/ckpt/b" now' in capsys.readouterr().err
        assert len(list(read_episodes(folder))) == 1
        server.says = A
        assert await run(server, "-o", folder, "--timeout", 2) == 0
    assert len(list(read_episodes(folder))) == 2


@pytest.mark.slow
async def test_another_model_after_an_outage_in_the_middle_of_a_run_is_found_before_anything_is_kept() -> (
    None
):
    async with ChatServer(says=A).running() as server, asking(server.url) as endpoint:
        server.faults = [cs.hang_up]
        assert (await endpoint.chat([{"role": "user", "content": "u"}], seed=1)).failed_tries
        server.faults, server.says = [cs.hang_up], B
        await endpoint.chat([{"role": "user", "content": "u"}], seed=1)
        with pytest.raises(UserError, match=r"another model.*\n.*/ckpt/b"):
            await endpoint.confirm()


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (A, B, r"root: '/ckpt/a' at http://127.0.0.1:\d+/v1, '/ckpt/b' at http://127.0.0.1:\d+/v1"),
        (A, {}, r"root: '/ckpt/a' at \S+, None at http"),
    ],
)
async def test_endpoints_that_tell_different_models_are_refused(
    first: dict[str, Any],
    second: dict[str, Any],
    message: str,
    clean_home: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with ChatServer(says=first).running() as one, ChatServer(says=second).running() as two:
        assert await run(one, "--model", two.url, "-o", tmp_path / "run") == 2
        told = capsys.readouterr().err
        assert re.search(message, told), told
        assert one.requests == two.requests == []
    assert not (tmp_path / "run").exists()


def test_copies_of_one_model_may_have_different_dates() -> None:
    first, second = (read_served_model({"id": "m", "created": created}) for created in (5, 7))
    assert require_one({"http://a/v1": first, "http://b/v1": second}) == first


async def test_where_a_server_tells_only_a_name_its_address_counts() -> None:
    """Two checkpoints of one name on two ports are then two runs, in two folders."""
    folders, identities = [], []
    for _ in range(2):
        async with ChatServer().running() as server:
            config = RunConfig.of(model=server.url, model_name="toy")
            prepared = await asyncio.to_thread(prepare, config.policy, specs(), lambda text: None)
            assert prepared.identity["url"] == server.url
            identities.append(prepared.identity)
            folders.append(config.folder(prepared.address))
    assert identities[0] != identities[1]
    assert folders[0] != folders[1]


async def test_a_server_without_a_list_of_models_is_known_by_its_address() -> None:
    async with ChatServer(list_fault=cs.status(404)).running() as server:
        config = RunConfig.of(model=server.url + "/", model_name="toy")
        prepared = await asyncio.to_thread(prepare, config.policy, specs(), lambda text: None)
    assert prepared.identity == {"kind": "endpoint", "name": "toy", "url": server.url}


async def test_a_server_that_is_being_loaded_is_not_one_without_a_list(
    clean_home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with ChatServer(list_fault=cs.status(503, "loading model")).running() as server:
        assert await run(server, "-o", tmp_path / "run", "--timeout", 0.5) == 2
    assert "HTTP 503: loading model" in capsys.readouterr().err


@pytest.mark.slow
async def test_a_date_of_the_model_counts_and_the_time_of_the_request_does_not() -> None:
    stamps = iter(range(2_000_000_000, 2_000_000_100))

    async def of_the_request(request: cs.web.Request) -> cs.web.StreamResponse:
        return cs.web.json_response({"data": [{"id": "toy", "created": next(stamps)}]})

    found = []
    for server in (
        ChatServer(says={"created": 1_700_000_000}),
        ChatServer(says={"created": 2_000_000_000}),
        ChatServer(list_fault=of_the_request),
        ChatServer(says={"created": 1_700_000_000, "root": "/ckpt/a"}),
    ):
        async with server.running():
            config = RunConfig.of(model=server.url, model_name="toy")
            prepared = await asyncio.to_thread(prepare, config.policy, specs(), lambda text: None)
            found.append((prepared.identity["served"].get("created"), prepared.address is None))
    assert found == [(1_700_000_000, True), (2_000_000_000, True), (None, False), (None, True)]


@pytest.mark.parametrize("value", [None, 3, True, "", ["x"], {"a": 1}, 2**70, -1])
def test_noise_in_a_servers_list_is_left_out(value: object) -> None:
    noisy = dict.fromkeys(("root", "parent", "revision"), value if not isinstance(value, int) else [value])
    served = read_served_model({"id": "m", **noisy, "created": "soon", "max_model_len": str(value)})
    assert served.to_json() == {"id": "m"}


def test_other_weights_in_the_same_checkpoint_folder_are_refused(
    clean_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A managed checkpoint is known by its hash, and is hashed before anything is shown or started."""
    checkpoint, folder = make_empty_checkpoint(tmp_path / "ckpt"), tmp_path / "run"
    vllm = tmp_path / "vllm"
    vllm.write_text("#!/bin/sh\nexit 1\n")
    vllm.chmod(0o755)
    # A run of this checkpoint as it is after its end, made with the oracle's episodes.
    config = RunConfig.of(model=str(checkpoint), vllm=str(vllm), suite="open", tasks="babyai:0", max_turns=64)
    scripted = config.with_options(model="oracle", output=folder)
    evaluate(scripted)
    manifest = read_manifest(folder).to_json()
    manifest["identity"]["config"] = config.identity()
    manifest["identity"]["model"] = dict(prepare(config.policy, specs(), lambda text: None).identity)
    (folder / MANIFEST).write_text(json.dumps(manifest))
    command = [
        "run", "--model", str(checkpoint), "--vllm", str(vllm), "--suite", "open", "--tasks", "babyai:0",
        "--max-turns", "64", "-o", str(folder),
    ]  # fmt: skip
    assert main(command) == 0
    assert "1 of 1" in " ".join(capsys.readouterr().out.split())
    write_safetensors(checkpoint / "model.safetensors", b"\1" * 8)
    assert main(command) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert "model.checkpoint_sha256" in told.err
