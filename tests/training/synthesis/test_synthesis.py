"""The whole line against a real server on loopback: a model that makes each mistake once, and one that breaks."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
from pathlib import Path
from typing import Any

import chat_server as cs
import pytest
from aiohttp import web
from chat_server import ChatServer
from rich.console import Console
from scripted_model import answer, persona, script_for

from evalharness.cli import main
from evalharness.models.endpoint import request_seed
from evalharness.models.work import watch_work
from evalharness.training.datasets.conversation import BrokenLine, read_data
from evalharness.training.synthesis.synthesis import SynthesisProgress

from .synthesis_commands import (
    ALL,
    make_scripts,
    manifest,
    read_finished,
    refine,
    signals,
    summary,
    write_personas,
)


async def test_each_mistake_is_made_once_and_corrected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every script mistake with every trajectory mistake; a persona whose calls run out is rejected with its signal."""
    async with ChatServer(answer=answer).running() as server:
        scripts = await make_scripts(server, tmp_path, ALL)
        out = tmp_path / "trajectories"
        await refine(server, "trajectories", "--scripts", scripts, "-o", out)
    assert signals(scripts) == {
        f"{script}/{mistake}": ["OK"] if script == "none" else [script, "OK"] for script, mistake in ALL
    }
    expected = {"OK": ["OK"], "ends with the player": ["UNFINISHED", "OK"]}
    assert signals(out) == {
        f"{script}/{mistake}": expected.get(mistake, [mistake, "OK"]) for script, mistake in ALL
    }
    counts = summary(scripts)
    assert counts["passed_at_call"] == {"1": 8, "2": 24}
    assert counts["signals_by_call"]["1"] == {"EXPRESSION": 8, "JSON": 8, "KEYS": 8, "OK": 8}
    assert counts["calls"] == 56
    assert counts["tokens"] == {"prompt": 32 * 11 + 24 * 13, "completion": 56 * 7}
    assert summary(out)["passed_at_call"] == {"2": 1, "3": 3 + 7, "4": 21}
    broken: list[BrokenLine] = []
    conversations = list(read_data(out / "data.jsonl", broken))
    assert (len(conversations), broken) == (32, [])
    assert {conversation.source for conversation in conversations} == {"trajectories"}
    assert len({conversation.task_hash for conversation in conversations}) == 32
    assert summary(out)["data"]["error_turns"] == 2 * 32
    printed = capsys.readouterr()
    assert "32 of 32 personas passed (100.0 %)" in printed.out
    assert "scripts 32/32 · passed 32 (8 at call 1, 24 at call 2) · 0 at work | 56 calls" in printed.err
    assert manifest(out)["identity"]["errors"] == "some"


async def test_what_never_passes_is_kept_with_its_signal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")

    def stubborn(request: dict[str, Any]) -> str:
        """Never finishes a trajectory; its second script is always one."""
        text = answer(request)
        return text.replace("Task Succeed", "Done") if '"trajectory"' in text[:20] else text

    kinds = [("none", "OK"), ("KEYS", "ACTION"), ("JSON", "TOO_FEW")]
    async with ChatServer(answer=stubborn).running() as server:
        scripts = await make_scripts(server, tmp_path, kinds)
        out = tmp_path / "trajectories"
        await refine(server, "trajectories", "--scripts", scripts, "-o", out)
    assert signals(out) == {
        "none/OK": ["UNFINISHED"] * 3,
        "KEYS/ACTION": ["ACTION", "UNFINISHED"],
        "JSON/TOO_FEW": ["UNFINISHED"] * 2,
    }
    passed, rejected = read_finished(out)
    assert not passed
    assert [len(record["turns"]) for record in rejected] == [28, 28, 28]
    assert summary(out)["rejected"] == {"UNFINISHED": 3}
    assert summary(out)["data"]["samples"] == 0
    assert "UNFINISHED " in capsys.readouterr().out


async def test_a_script_that_took_every_call_leaves_none(tmp_path: Path) -> None:
    def late(request: dict[str, Any]) -> str:
        seeds = [request_seed(0, key, 0, number) for number in (1, 2, 3)]
        return "No." if request["seed"] in seeds else json.dumps(script_for("none/OK"))

    key = "persona-" + hashlib.sha256(persona("none", "OK").encode()).hexdigest()[:12]
    async with ChatServer(answer=late).running() as server:
        scripts = await make_scripts(server, tmp_path, [("none", "OK")])
        asked = len(server.requests)
        await refine(server, "trajectories", "--scripts", scripts, "-o", tmp_path / "out")
        assert len(server.requests) == asked + 2  # the client's and the schema's probes
    assert signals(scripts) == {"none/OK": ["JSON", "JSON", "JSON", "OK"]}
    assert signals(tmp_path / "out") == {"none/OK": ["NO_CALLS"]}
    assert summary(tmp_path / "out")["rejected"] == {"NO_CALLS": 1}


async def test_the_next_call_gets_the_mistakes_and_what_was_kept(tmp_path: Path) -> None:
    async with ChatServer(answer=answer).running() as server:
        scripts = await make_scripts(server, tmp_path, [("EXPRESSION", "ACTION"), ("none", "TOO_FEW")])
        correction = [r["messages"] for r in server.requests if len(r["messages"]) == 4]
        assert len(correction) == 1
        assert correction[0][2]["content"].startswith('{"Thought"')
        assert "the verification code of 'open {container}' cannot be used" in correction[0][3]["content"]
        server.requests.clear()
        await refine(server, "trajectories", "--scripts", scripts, "-o", tmp_path / "out")
        asked = [r["messages"] for r in server.requests[2:]]
    more = [messages for messages in asked if len(messages) == 4]
    (on,) = [messages for messages in more if "Go on with turn" in messages[3]["content"]]
    assert [turn["turn"] for turn in json.loads(on[2]["content"])["trajectory"]] == list(range(7))
    assert "'fly to the moon' is none of the available actions" in on[3]["content"]
    assert "Go on with turn 7, which is the Player's" in on[3]["content"]
    (again,) = [messages for messages in more if messages is not on]
    assert "the Player erred in 1 turns; at least 2" in again[3]["content"]
    rejected = json.loads(again[2]["content"])["trajectory"]
    assert [turn["turn"] for turn in rejected] == list(range(len(rejected)))
    assert "Task Succeed" in rejected[-1]["Observation"]


async def test_structured_output_is_asked_for_and_left_out_where_the_server_has_none(tmp_path: Path) -> None:
    def refuses(request: dict[str, Any]) -> cs.Fault | None:
        return cs.status(400, "Unknown field: response_format") if "response_format" in request else None

    async with ChatServer(answer=answer).running() as server:
        with_it = await make_scripts(server, tmp_path, [("none", "OK")])
        schema = server.requests[-1]["response_format"]["json_schema"]["schema"]
        order = ["Thought", "Environment", "Goal", "Completion Conditions", "Available Actions"]
        assert schema["required"] == list(schema["properties"]) == order
        assert server.requests[-1]["stop"] == []
    assert manifest(with_it)["sessions"][0]["structured_output"] is True
    (tmp_path / "b").mkdir()
    async with ChatServer(answer=answer, choose_fault=refuses).running() as server:
        without = await make_scripts(server, tmp_path / "b", [("none", "OK"), ("KEYS", "OK")])
        assert sum("response_format" in request for request in server.requests) == 1
    facts = manifest(without)["sessions"][0]
    assert facts["structured_output"] is False
    assert facts["structured_output_refused"] == "Unknown field: response_format"
    (tmp_path / "c").mkdir()
    async with ChatServer(answer=answer, choose_fault=refuses).running() as server:
        await make_scripts(server, tmp_path / "c", [("none", "OK")], "--plain")
        assert not any("response_format" in request for request in server.requests)


async def test_nothing_is_left_to_do_twice_and_more_personas_extend(tmp_path: Path) -> None:
    kinds = [("none", "OK"), ("KEYS", "OK"), ("JSON", "OK")]
    path = write_personas(tmp_path, kinds)
    out = tmp_path / "out"
    async with ChatServer(answer=answer).running() as server:
        await refine(server, "scripts", "--personas", path, "-n", 2, "-o", out)
        first = (out / "passed.jsonl").read_bytes()
        server.requests.clear()
        await refine(server, "scripts", "--personas", path, "-n", 2, "-o", out)
        assert server.requests == []
        await refine(server, "scripts", "--personas", path, "-n", 3, "-o", out)
    assert (out / "passed.jsonl").read_bytes().startswith(first)
    assert summary(out)["finished"] == 3
    assert len(manifest(out)["sessions"]) == 2


async def test_another_configuration_is_refused_with_the_difference(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with ChatServer(answer=answer).running() as server:
        scripts = await make_scripts(server, tmp_path, [("none", "OK")])
        await make_scripts(server, tmp_path, [("none", "OK")], "--temperature", 0.5, status=2)
        assert "sampling.temperature: 1.0 there, 0.5 now" in capsys.readouterr().err
        out = tmp_path / "out"
        await refine(server, "trajectories", "--scripts", scripts, "-o", out)
        await refine(server, "trajectories", "--scripts", scripts, "-o", out, "--errors", "none", status=2)
        assert 'errors: "some" there, "none" now' in capsys.readouterr().err
        await refine(server, "trajectories", "--scripts", out, "-o", tmp_path / "x", status=2)
        assert "scripts" in capsys.readouterr().err
        await refine(server, "trajectories", "--scripts", tmp_path, "-o", tmp_path / "x", status=2)
        assert "evalharness refine scripts" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


@pytest.mark.slow
async def test_hundreds_of_conversations_are_in_flight(tmp_path: Path) -> None:
    """The server answers nobody before all 300 have asked."""
    count, asked = 300, 0
    everybody = asyncio.Event()

    async def together(request: web.Request) -> web.StreamResponse:
        nonlocal asked
        asked += 1
        if asked == count:
            everybody.set()
        await asyncio.wait_for(everybody.wait(), 120)
        return web.json_response(cs.completion(answer(await request.json())))

    def choose(request: dict[str, Any]) -> cs.Fault | None:
        return together if "write scripts" in request["messages"][0]["content"] else None

    kinds = [("none", f"OK/{number}") for number in range(count)]
    async with ChatServer(answer=answer, choose_fault=choose).running() as server:
        out = await make_scripts(server, tmp_path, kinds, "--concurrency", count)
    assert summary(out)["passed_at_call"] == {"1": count}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--model", "oracle"), "oracle"),
        (("--model", "http://127.0.0.1:9/v1"), "--model-name"),
        (("--model", "http://127.0.0.1:9/v1", "--model-name", "toy", "-n", "0"), "-n "),
        (("--model", "http://127.0.0.1:9/v1", "--model-name", "toy", "-n", "300"), "200 personas"),
        (
            ("--model", "http://127.0.0.1:9/v1", "--model-name", "toy", "--prompts", "nowhere"),
            "nowhere",
        ),
        (
            ("--model", "http://127.0.0.1:9/v1", "--model-name", "toy", "--calls", "0"),
            "--calls ",
        ),
    ],
)
def test_bad_requests(
    words: tuple[str, ...], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["refine", "scripts", "-n", "3", "-o", str(tmp_path / "out"), *words]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_live_view_says_what_goes_on() -> None:
    progress = SynthesisProgress("trajectories", 40, finished=2, calls=30, completion_tokens=900, running=7)
    record = {"signals": ["KEYS", "OK"], "calls": 3, "prompt_tokens": 10, "completion_tokens": 5}
    progress.tally.add(record)
    progress.tally.add(record | {"signals": ["JSON", "TOO_FEW"], "calls": 4})
    progress.status, progress.engine = (
        "HTTP 500: \x1b[31mno",
        lambda: "concurrency 8 (growing), 7 at the model",
    )
    out = io.StringIO()
    with watch_work(progress, Console(file=out, force_terminal=True, width=120, color_system=None)):
        pass
    shown = out.getvalue()
    counts = "trajectories 2/40 · passed 1 (1 at call 3) · rejected 1 (TOO_FEW 1) · 7 at work"
    assert counts in shown
    assert "30 calls" in shown
    assert "concurrency 8 (growing)" in shown
    assert r"HTTP 500: \x1b[31mno" in shown
