"""One real vLLM, for a checkpoint that recommends to never say a token twice: it decodes as asked all the same."""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from evalharness.policy.endpoint import ChatEndpoint
from evalharness.policy.sampling import Sampling
from evalharness.server.find import find_server
from evalharness.server.managed import ManagedServer

pytestmark = [pytest.mark.vllm, pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]
MESSAGES = [{"role": "user", "content": "What do you see? Say it again and again."}]


@pytest.fixture(scope="module")
def penalised(tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("penalised") / "model"
    shutil.copytree(tiny_checkpoint, folder)
    file = folder / "generation_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"repetition_penalty": 5.0}))
    return folder


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(
    penalised: Path, server_python: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[ManagedServer]:
    log = tmp_path_factory.mktemp("log") / "server.log"
    command = find_server(str(server_python))
    async with ManagedServer(command=command, model=penalised, served_name="toy", log_path=log) as running:
        yield running


async def said(server: ManagedServer, **more: Any) -> str:
    request = {"model": "toy", "messages": MESSAGES, "max_tokens": 40, **more}
    async with (
        aiohttp.ClientSession() as http,
        http.post(f"{server.base_url}/chat/completions", json=request) as response,
    ):
        text: str = (await response.json())["choices"][0]["message"]["content"]
        return text


async def test_a_checkpoints_own_penalty_does_not_slip_in(server: ManagedServer) -> None:
    endpoint = ChatEndpoint(server.base_url, "toy", sampling=Sampling(max_tokens=40))
    await endpoint.start()
    ours = (await endpoint.chat(MESSAGES, seed=0)).text
    await endpoint.close()
    assert endpoint.left_out == set()
    # What the penalty would have done, so that the next line can fail.
    assert await said(server, temperature=0, repetition_penalty=5.0) != ours
    assert await said(server, temperature=0) == ours
