"""A server that other machines can reach answers nobody without its key."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

from evalharness.models.serving.arguments import _GUARD, LOOPBACK, server_arguments, server_environment
from evalharness.models.serving.find import ServerCommand

COMMAND = ServerCommand(("vllm", "serve"), "PATH", Path("/usr/bin/vllm"), "gpu", "0.32.0", None)


async def status(path: str, *, key: str | None = None, method: str = "GET") -> int:
    """What the guard in front of an application that always says 200 answers."""

    async def application(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def receive() -> None:
        return None

    guard = runpy.run_path(str(_GUARD / "evalharness_guard.py"))["RequireKey"](application)
    headers = [] if key is None else [(b"authorization", f"Bearer {key}".encode())]
    await guard({"type": "http", "method": method, "path": path, "headers": headers}, receive, send)
    return int(sent[0]["status"])


@pytest.mark.parametrize(
    "path",
    ["/v1/chat/completions", "/invocations", "/tokenize", "/collective_rpc", "/", "/health/../invocations"],
)
async def test_everything_but_the_state_wants_the_key(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_API_KEY", "secret")
    assert await status(path, method="POST") == 401
    assert await status(path, key="secre", method="POST") == 401
    assert await status(path, key="secret", method="POST") == 200
    assert await status("/health") == await status("/metrics") == 200
    assert await status("/health", method="POST") == 401


def test_the_key_is_never_on_the_command_line() -> None:
    host = {"host": "192.0.2.1"}
    argv = server_arguments(COMMAND, model="m", served_name="m", port=1, max_model_len=None, **host)
    assert "evalharness_guard.RequireKey" in argv
    env = server_environment(COMMAND, local_model=True, base={"VLLM_API_KEY": "the user's"}, api_key="ours")
    assert env["VLLM_API_KEY"] == "ours"
    assert env["PYTHONPATH"] == str(_GUARD)
    assert not any("ours" in word for word in argv)
    alone = server_arguments(COMMAND, model="m", served_name="m", port=1, max_model_len=None)
    assert LOOPBACK in alone
    assert "--middleware" not in alone
    assert "VLLM_API_KEY" not in server_environment(COMMAND, local_model=True, base={"VLLM_API_KEY": "x"})
