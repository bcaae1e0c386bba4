"""A secret that the process was given is in nothing that it writes."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import chat_server as cs
import pytest
from aiohttp import web

from evalharness.base.paths import write_whole
from evalharness.base.redaction import know, know_url, know_words, redact, redact_data
from evalharness.cli import main
from evalharness.records.identity import changes, digest
from evalharness.records.lines import LineFile

KEY = 'sk-"quoted"/0123456789'


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("agent --api-key K12345 --max-tokens 512", "agent --api-key (secret) --max-tokens 512"),
        ("agent --token=K12345 --tokenizer other-one", "agent --token=(secret) --tokenizer other-one"),
        ("env MY_API_KEY=K12345 agent", "env MY_API_KEY=(secret) agent"),
        ("curl -H 'Authorization: Bearer K12345'", "curl -H 'Authorization: Bearer (secret)'"),
        ("agent --model http://u:p@host/v1", "agent --model http://(secret)@host/v1"),
        ("agent --key short", "agent --key short"),
        ("http://host/v1?v=1234567&key=K12345#x", "http://host/v1?v=1234567&key=(secret)#x"),
        ('{"user": "somebody", "api_key": "K12345"}', '{"user": "somebody", "api_key": "(secret)"}'),
    ],
)
def test_a_command_is_shown_without_what_it_names_a_secret(command: str, shown: str) -> None:
    know_words(command)
    assert redact(command) == shown


def test_a_secret_is_found_however_it_is_spelled() -> None:
    know(KEY)
    know_url("http://user:p%40ssword@host/v1")
    said = [KEY, json.dumps(KEY), quote(KEY), "dXNlcjpwQHNzd29yZA==", "p%40ssword p@ssword"]
    assert redact_data(said) == ["(secret)", '"(secret)"', "(secret)", "(secret)", "(secret) (secret)"]


def test_a_run_whose_identity_held_a_secret_goes_on_with_another_one() -> None:
    know_words("agent --key first-secret")
    know_words("agent --key second-secret")
    first, second = ({"config": {"agent_command": f"agent --key {n}-secret"}} for n in ("first", "second"))
    assert digest(first) == digest(second)
    assert changes(redact_data(first), second) == []


async def _repeats_the_header(request: web.Request) -> web.StreamResponse:
    return web.json_response({"error": {"message": f"no: {request.headers['Authorization']}"}}, status=400)


def _later(request: dict[str, Any]) -> cs.Fault | None:
    return _repeats_the_header if len(request["messages"]) > 2 else None


def _written(folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    out = capsys.readouterr()
    return "".join(
        [
            out.out,
            out.err,
            *(path.read_text(errors="replace") for path in folder.rglob("*.*") if path.is_file()),
        ]
    )


def test_lines_and_whole_files_hold_no_secret(tmp_path: Path) -> None:
    know(KEY)
    LineFile(tmp_path / "errors.jsonl").append({"error": f"refused: {KEY}"})
    write_whole(tmp_path / "summary.json", json.dumps({"stopped": f"refused: {KEY}"}))
    assert json.loads((tmp_path / "errors.jsonl").read_text()) == {"error": "refused: (secret)"}
    assert json.loads((tmp_path / "summary.json").read_text()) == {"stopped": "refused: (secret)"}


@pytest.mark.slow
@pytest.mark.parametrize("owner", ["", "user:p4ssw0rd@"])
async def test_a_server_that_repeats_the_header_puts_no_key_into_the_run(
    owner: str,
    clean_home: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    async with cs.ChatServer(choose_fault=_later).running() as server:
        url = server.url.replace("//", f"//{owner}")
        command = [
            "run",
            "--model",
            url,
            "--suite",
            "open",
            "--tasks",
            "babyai:0",
            "-o",
            str(tmp_path / "run"),
        ]
        await asyncio.to_thread(main, [*command, *([] if owner else ["--api-key-env", "MY_KEY"])])
    written = _written(tmp_path / "run", capsys)
    assert "no: B" in written  # Bearer, or Basic
    assert (tmp_path / "run" / "manifest.json").exists()
    for secret in (KEY, json.dumps(KEY)[1:-1], "p4ssw0rd", "dXNlcjpwNHNzdzByZA=="):
        assert secret not in written


@pytest.mark.slow
def test_a_key_in_the_agents_command_is_in_no_file_of_the_run(
    clean_home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    agent = f"{sys.executable} -c 'import sys; print(sys.argv)' --key K-0123456789"
    main(
        [
            *("run", "--agent", "external", "--agent-option", "name=mine", "--agent-command", agent),
            *("--suite", "open", "--tasks", "babyai:0", "-o", str(tmp_path / "run")),
        ]
    )
    written = _written(tmp_path / "run", capsys)
    assert "['-c', '--key', '(secret)']" in written
    assert "K-0123456789" not in written
