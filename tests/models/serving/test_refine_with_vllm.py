"""Scripts and trajectories from a real vLLM, held to their schemas. What a tiny random model writes never passes: that
is the result."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from chat_server import ChatServer
from command_line import evalharness, read_records
from scripted_model import answer, persona

from evalharness.training.synthesis.synthesis_store import CALLS, list_all_finished

from .shared_vllm import SharedVllm

pytestmark = [pytest.mark.vllm, pytest.mark.slow]


def read_finished(folder: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """(passed, rejected) as records."""
    passed, rejected = list_all_finished(folder)
    return [line.read() for line in passed], [line.read() for line in rejected]


def options(shared: SharedVllm, out: Path) -> tuple[object, ...]:
    return ("--model", shared.base_url, "--model-name", "toy", "--max-tokens", 64, "--calls", 2, "-o", out)


def test_a_tiny_model_writes_no_script_and_that_is_shown_as_such(
    environment: dict[str, str], shared_vllm: SharedVllm, tmp_path: Path
) -> None:
    out = tmp_path / "scripts"
    words = ("refine", "scripts", "-n", 3, *options(shared_vllm, out))
    done = evalharness(environment, *words)
    assert done.returncode == 0, done.stderr
    passed, rejected = read_finished(out)
    assert (len(passed), len(rejected)) == (0, 3)
    assert {tuple(record["signals"]) for record in rejected} == {("JSON", "JSON")}
    assert "0 of 3 personas passed (0.0 %)" in done.stdout
    calls = list(read_records(out / CALLS))
    assert len(calls) == 6
    # Held to the schema by the server, even a random model begins with a brace.
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["sessions"][0]["structured_output"] is True
    assert all(call["reply"].lstrip().startswith("{") for call in calls)
    assert {call["finish_reason"] for call in calls} == {"length"}
    assert all(call["completion_tokens"] == 64 for call in calls)
    # No script, no trajectory: said plainly.
    none = evalharness(
        environment,
        "refine",
        "trajectories",
        "--scripts",
        out,
        "--model",
        shared_vllm.checkpoint,
        "-o",
        tmp_path / "t",
    )
    assert none.returncode == 2
    assert "script" in none.stderr


async def test_a_tiny_model_plays_no_script_to_its_end(
    environment: dict[str, str], shared_vllm: SharedVllm, tmp_path: Path
) -> None:
    personas = tmp_path / "personas.jsonl"
    personas.write_text("".join(json.dumps({"persona": persona("none", f"OK/{i}")}) + "\n" for i in range(2)))
    scripts, out = tmp_path / "scripts", tmp_path / "trajectories"
    async with ChatServer(answer=answer).running() as server:
        done = await asyncio.to_thread(
            evalharness, environment, "refine", "scripts", "--personas", personas, "-n", 2,
            "--model", server.url, "--model-name", "toy", "-o", scripts,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    words = ("refine", "trajectories", "--scripts", scripts, *options(shared_vllm, out))
    done = await asyncio.to_thread(evalharness, environment, *words)
    assert done.returncode == 0, done.stderr
    _, rejected = read_finished(out)
    # The script took one of two calls. Cut off, or an empty list: what it is does not matter, it is none that passes.
    assert [len(record["signals"]) for record in rejected] == [1, 1]
    assert not any("OK" in record["signals"] for record in rejected)
    assert "0 of 2 personas passed (0.0 %)" in done.stdout
    replies = [call["reply"] for call in read_records(out / CALLS)]
    # A random model likes all sorts of white space between the brace and the key.
    assert ["".join(reply.split())[:14] for reply in replies] == ['{"trajectory":'] * 2
    assert (out / "data.jsonl").read_bytes() == b""
