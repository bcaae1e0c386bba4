"""What a person reads who mistypes an endpoint, its key or a model's name; and when the account is used up."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path

import chat_server as cs
import pytest
from chat_server import ChatServer
from command_line import run_compass

from evalharness.base.errors import UserError
from evalharness.base.settings import key_hint, openai_hint
from evalharness.config import PolicyConfig, endpoint_url, make_part
from evalharness.models.api_key import read_key


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("http://h:8000", "http://h:8000/v1"),
        ("http://h:8000/", "http://h:8000/v1"),
        ("https://h/v1/chat/completions", "https://h/v1"),
        ("https://h/api/v1/models/", "https://h/api/v1"),
        ("http://h/v1", "http://h/v1"),
        ("http://h/openai", "http://h/openai"),
        ("ckpt/chat/completions", "ckpt/chat/completions"),
    ],
)
def test_an_address_is_made_whole_and_a_line_says_so(
    given: str, meant: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("evalharness"), "propagate", True)
    with caplog.at_level("INFO", logger="evalharness"):
        assert endpoint_url(given) == meant
    assert (meant in caplog.text) == (given != meant)


@pytest.mark.parametrize(
    "key", ["sk-proj-0123456789", "hf_AbCdEf0123456789", "AKIA0123456789ABCDEF", "0123abcd"]
)
def test_what_looks_like_a_key_is_not_shown(key: str) -> None:
    with pytest.raises(UserError, match="a key") as refused:
        read_key("--api-key-env", key)
    assert key not in str(refused.value)


def test_a_key_is_what_a_header_can_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("K2", "sk-1\r\n")  # as of a file with the line ends of Windows
    assert read_key("--api-key-env", "K2") == "sk-1"
    monkeypatch.setenv("K2", "sk\r\nX: 1")
    with pytest.raises(UserError, match="HTTP headers cannot") as refused:
        read_key("--api-key-env", "K2")
    assert "sk" not in str(refused.value)


def test_a_url_with_a_password_beside_a_key_is_refused() -> None:
    with pytest.raises(UserError, match="password") as refused:
        make_part(PolicyConfig, {"model": "http://u:secret@h/v1", "model_name": "m", "api_key_env": "K2"})
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "MY_KEY", "TOKEN", "K2"])
def test_a_variable_that_is_not_set_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(name, raising=False)
    with pytest.raises(UserError, match=f"{name}: "):
        read_key("--api-key-env", name)


def test_the_variables_of_openai_are_named_where_they_are_set_and_unused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    assert openai_hint("gpt-5") == key_hint() == ""
    monkeypatch.setenv("OPENAI_BASE_URL", "https://h/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    said = openai_hint("gpt-5")
    assert '--model "$OPENAI_BASE_URL" --model-name gpt-5 --api-key-env OPENAI_API_KEY' in said
    assert "--api-key-env OPENAI_API_KEY" in key_hint()
    assert "sk-1" not in said + key_hint()


def test_a_mistyped_policy_and_a_missing_model(environment: dict[str, str], tmp_path: Path) -> None:
    done = run_compass(environment, tmp_path / "run", "--model", "orcale")
    assert done.returncode == 2
    assert "'oracle'?" in done.stderr
    with_url = {**environment, "OPENAI_BASE_URL": "https://h/v1"}
    assert "OPENAI_BASE_URL" in run_compass(with_url, tmp_path / "run").stderr


async def test_a_server_that_wants_a_key_and_the_key_that_is_at_hand(
    environment: dict[str, str], tmp_path: Path
) -> None:
    no = cs.status(401, "No key, no answer.")
    async with ChatServer(list_fault=no, choose_fault=lambda request: no).running() as server:
        done = await asyncio.to_thread(
            run_compass, {**environment, "OPENAI_API_KEY": "sk-1"}, tmp_path / "run",
            "--model", server.url.removesuffix("/v1"), "--model-name", "toy",
        )  # fmt: skip
    assert done.returncode == 2
    assert server.url in done.stderr
    assert "No key, no answer." in done.stderr
    assert "--api-key-env OPENAI_API_KEY" in done.stderr


QUOTA = {"message": "You exceeded your current quota.", "type": "insufficient_quota", "code": None}


def refuse(code: int) -> cs.Fault:
    async def fault(request: cs.web.Request) -> cs.web.StreamResponse:
        return cs.web.json_response({"error": QUOTA}, status=code)

    return fault


@pytest.mark.parametrize("code", [401, 402, 403, 429])
async def test_an_account_that_is_refused_ends_the_run_at_once_with_the_servers_words(
    environment: dict[str, str], tmp_path: Path, code: int
) -> None:
    """One request more than those in flight; finished episodes are kept, and the table is written."""
    server = ChatServer()
    server.choose_fault = lambda request: refuse(code) if len(server.requests) > 8 else None
    async with server.running():
        done = await asyncio.to_thread(
            run_compass, environment, tmp_path / "run", "--model", server.url, "--model-name", "toy",
            "--max-turns", 2, "--concurrency", 1,
        )  # fmt: skip
    assert done.returncode == 3
    assert QUOTA["message"] in done.stderr
    assert f"HTTP {code}" in done.stderr
    assert len(server.requests) == 9
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["turns"] > 0
