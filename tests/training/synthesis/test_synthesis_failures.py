"""A server that fails, refuses or is too busy while personas are turned into conversations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import chat_server as cs
import pytest
from chat_server import ChatServer
from command_line import read_records
from scripted_model import answer

from .synthesis_commands import (
    ALL,
    make_scripts,
    read_finished,
    refine,
    signals,
    summary,
    write_personas,
)


@pytest.mark.slow
async def test_passing_faults_cost_no_persona(tmp_path: Path) -> None:
    """A busy server, a broken answer, one of 10 MB, a torn one: asked again, and the same comes out."""
    faults = [
        cs.status(429, headers={"Retry-After": "0"}),
        cs.body("{not json"),
        cs.ten_megabytes,
        cs.close_in_the_middle,
    ]
    async with ChatServer(answer=answer).running() as server:
        whole = await make_scripts(server, tmp_path, ALL)
        (tmp_path / "b").mkdir()
        server.requests.clear()

        def sometimes(request: dict[str, Any]) -> cs.Fault | None:
            return faults.pop() if faults and len(server.requests) % 7 == 0 else None

        server.choose_fault = sometimes
        broken = await make_scripts(server, tmp_path / "b", ALL)
    assert not faults
    assert signals(whole) == signals(broken)
    assert sum(call["tries"] for call in read_records(broken / "calls.jsonl")) == 56 + 4


async def test_a_conversation_that_the_server_refuses_is_kept_apart(tmp_path: Path) -> None:
    """A content filter stops one persona and not the others, also when it speaks first."""

    def filtered(request: dict[str, Any]) -> cs.Fault | None:
        text = request["messages"][-1]["content"]
        if "<<none/ACTION>>" in text:
            return cs.status(400, "the content filter was triggered")
        if "<<none/KEYS>>" in text:
            return cs.status(400, "maximum context length is 4096 tokens")
        return None

    kinds = [("none", "ACTION"), ("none", "KEYS"), ("none", "OK")]
    async with ChatServer(answer=answer, choose_fault=filtered, latency=0.01).running() as server:
        out = await make_scripts(server, tmp_path, kinds)
    assert signals(out) == {"none/ACTION": ["REFUSED"], "none/KEYS": ["CONTEXT"], "none/OK": ["OK"]}
    _, rejected = read_finished(out)
    assert {tuple(record["mistakes"][0]) for record in rejected} == {
        ("the content filter was triggered",),
        ("maximum context length is 4096 tokens",),
    }


async def test_what_the_server_refuses_is_kept_apart_also_when_nothing_else_is_left(tmp_path: Path) -> None:
    filtered = cs.status(400, "the content filter was triggered")
    kinds = [("none", "OK"), ("none", "KEYS")]
    path, out = write_personas(tmp_path, kinds), tmp_path / "out"
    async with ChatServer(answer=answer).running() as server:
        await refine(server, "scripts", "--personas", path, "-n", 1, "-o", out)
        server.choose_fault = lambda request: (
            filtered if "write scripts" in request["messages"][0]["content"] else None
        )
        await refine(server, "scripts", "--personas", path, "-n", 2, "-o", out)
    assert sorted(signals(out).values()) == [["OK"], ["REFUSED"]]


async def test_a_context_that_has_become_too_short_rejects_nobody(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The server was started again with less of it: the command ends with the reason, and goes on once it is back."""
    path, out = write_personas(tmp_path, ALL), tmp_path / "out"
    too_long = cs.status(400, "maximum context length is 4096 tokens")
    async with ChatServer(answer=answer).running() as server:
        await refine(server, "scripts", "--personas", path, "-n", 2, "-o", out)
        server.choose_fault = lambda request: (
            too_long if "write scripts" in request["messages"][0]["content"] else None
        )
        await refine(server, "scripts", "--personas", path, "-n", len(ALL), "-o", out, status=2)
        assert "--max-model-len 16384" in capsys.readouterr().err
        assert not (out / "rejected.jsonl").exists()
        server.choose_fault = lambda request: None
        await refine(server, "scripts", "--personas", path, "-n", len(ALL), "-o", out)
    assert summary(out)["passed"] == len(ALL)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (cs.status(400, "maximum context length is 4096 tokens"), "--max-model-len 16384"),
        (cs.status(400, "max_tokens is too large"), "max_tokens is too large"),
    ],
)
async def test_a_request_that_is_refused_to_all_ends_with_the_reason(
    fault: cs.Fault, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def scripts_only(request: dict[str, Any]) -> cs.Fault | None:
        return fault if "write scripts" in request["messages"][0]["content"] else None

    async with ChatServer(answer=answer, choose_fault=scripts_only).running() as server:
        out = await make_scripts(server, tmp_path, ALL, status=2)
    assert said in capsys.readouterr().err
    assert not (out / "rejected.jsonl").exists()


async def test_a_key_that_is_refused_ends_the_work_as_it_ends_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every other request would be refused, too: no tries are burned, and all is left for the same command."""

    def scripts_only(request: dict[str, Any]) -> cs.Fault | None:
        key = cs.status(401, "no such key")
        return key if "write scripts" in request["messages"][0]["content"] else None

    async with ChatServer(answer=answer, choose_fault=scripts_only).running() as server:
        out = await make_scripts(server, tmp_path, ALL, status=3)
    printed = capsys.readouterr().err
    assert "stopped early: " in printed
    assert f"{len(ALL)} personas" in printed
    assert not (out / "errors.jsonl").exists()


async def test_a_server_that_stops_answering_ends_the_work_and_the_same_command_continues(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with ChatServer(answer=answer).running() as server:
        server.choose_fault = lambda request: cs.status(401, "gone") if len(server.requests) > 20 else None
        out = await make_scripts(server, tmp_path, ALL, status=3)
        assert "gone" in capsys.readouterr().err
        server.choose_fault = lambda request: None
        calls = len(read_records(out / "calls.jsonl"))
        server.requests.clear()
        await make_scripts(server, tmp_path, ALL)
        assert len(server.requests) == 56 - calls + 2
    assert summary(out)["passed"] == 32


@pytest.mark.slow
async def test_a_persona_whose_infrastructure_fails_is_left_for_the_same_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Answers of 10 MB each time: the other personas go on, the exit status says that one is missing."""

    def too_much(request: dict[str, Any]) -> cs.Fault | None:
        return cs.ten_megabytes if "<<none/KEYS>>" in request["messages"][-1]["content"] else None

    kinds = [("none", "OK"), ("none", "KEYS"), ("KEYS", "OK")]
    async with ChatServer(answer=answer, choose_fault=too_much).running() as server:
        out = await make_scripts(server, tmp_path, kinds, "--tries", 1, status=3)
        printed = capsys.readouterr().err
        assert "1 personas" in printed
        (failure,) = read_records(out / "errors.jsonl")
        assert failure["final"]
        assert {one["kind"] for one in failure["tries"]} == {"too_long"}
        assert (summary(out)["passed"], summary(out)["left"]) == (2, 1)
        server.choose_fault = lambda request: None
        await make_scripts(server, tmp_path, kinds)
    assert (summary(out)["passed"], summary(out)["left"]) == (3, 0)


@pytest.mark.slow
async def test_a_server_that_is_too_busy_for_everybody_ends_the_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A quota that is used up looks like that: no tries are burned on it, and the same command continues."""

    def busy(request: dict[str, Any]) -> cs.Fault | None:
        scripts = "write scripts" in request["messages"][0]["content"]
        return cs.status(429, "quota", headers={"Retry-After": "0"}) if scripts else None

    async with ChatServer(answer=answer, choose_fault=busy).running() as server:
        out = await make_scripts(server, tmp_path, ALL, "--timeout", 1, status=3)
        printed = capsys.readouterr().err
        assert "32 personas" in printed
        server.choose_fault = lambda request: None
        await make_scripts(server, tmp_path, ALL)
    assert summary(out)["passed"] == len(ALL)
