"""A real vLLM that cannot start fails at once, with the line that says why and what to do, leaving no process."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from pathlib import Path

import pytest

from evalharness.models.serving import managed
from evalharness.models.serving.find import find_server
from evalharness.models.serving.managed import ManagedServer, ServerStartError

from .processes import tagged

pytestmark = [pytest.mark.vllm, pytest.mark.slow]


@pytest.mark.parametrize(
    ("architecture", "extra", "reason", "remedy"),
    [
        ("FooForCausalLM", [], "Model architectures ['FooForCausalLM'] are not supported", "newer"),
        ("LlamaForCausalLM", ["--no-such-flag"], "unrecognized arguments: --no-such-flag", "--vllm-args"),
    ],
)
async def test_the_reason_and_the_remedy_are_told(
    architecture: str, extra: list[str], reason: str, remedy: str, tiny_checkpoint: Path, tmp_path: Path
) -> None:
    model = tmp_path / "model"
    shutil.copytree(tiny_checkpoint, model)
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps(config | {"architectures": [architecture]}))
    name = f"tiny-that-fails-{os.getpid()}"
    log = tmp_path / "server.log"
    with pytest.raises(ServerStartError) as caught:
        await ManagedServer(
            command=find_server(None), model=model, served_name=name, log_path=log, extra_args=extra
        ).start()
    message = str(caught.value)
    assert reason in message
    assert remedy in message
    assert str(log) in message
    assert "Traceback" not in message
    assert not tagged(name)


async def test_a_context_limit_that_only_vllm_knows_is_learnt_from_its_refusal(
    tiny_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second start is left as soon as vLLM has taken the limit, and leaves nothing."""
    # As for a hub id whose configuration is not in the cache yet.
    monkeypatch.setattr(managed, "model_context_length", lambda _: None)
    name = f"tiny-of-unknown-length-{os.getpid()}"
    log = tmp_path / "server.log"
    server = ManagedServer(command=find_server(None), model=tiny_checkpoint, served_name=name, log_path=log)
    starting = asyncio.create_task(server.start())
    while "Using max model len 4096" not in (log.read_text() if log.exists() else ""):
        assert not starting.done(), await starting
        await asyncio.sleep(0.1)
    assert server.argv[server.argv.index("--max-model-len") + 1] == "4096"
    assert "User-specified max_model_len (8192)" in log.read_text()
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert not tagged(name)


async def test_a_start_that_takes_too_long_is_given_up(
    tiny_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(managed, "START_TIMEOUT", {"cpu": 1.0, "gpu": 1.0})
    name = f"tiny-too-slow-{os.getpid()}"
    with pytest.raises(ServerStartError, match="not ready"):
        await ManagedServer(
            command=find_server(None), model=tiny_checkpoint, served_name=name, log_path=tmp_path / "log"
        ).start()
    assert not tagged(name)


async def test_a_model_without_a_chat_template_is_refused_before_the_start(
    tiny_checkpoint: Path, tmp_path: Path
) -> None:
    model = tmp_path / "model"
    shutil.copytree(tiny_checkpoint, model)
    (model / "chat_template.jinja").unlink()
    server = ManagedServer(
        command=find_server(None), model=model, served_name="x", log_path=tmp_path / "server.log"
    )
    with pytest.raises(Exception, match="--chat-template FILE"):
        await server.start()
    assert not (tmp_path / "server.log").exists()
