"""One real vLLM, for a checkpoint that recommends to never say a token twice: it decodes as asked all the same."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest

from evalharness.models.base import RequestForm
from evalharness.models.completion import read_completion
from evalharness.models.endpoint import ChatEndpoint
from evalharness.models.sampling import Sampling
from evalharness.protocol.tools import TOOL

from .shared_vllm import SharedVllm

pytestmark = [pytest.mark.vllm, pytest.mark.slow]
MESSAGES = [{"role": "user", "content": "What do you see? Say it again and again."}]


@pytest.fixture(scope="module")
def url(shared_vllm: SharedVllm) -> str:
    return shared_vllm.base_url


async def said(url: str, **more: Any) -> str:
    request = {"model": "toy", "messages": MESSAGES, "max_tokens": 40, **more}
    async with (
        aiohttp.ClientSession() as http,
        http.post(f"{url}/chat/completions", json=request) as response,
    ):
        text: str = (await response.json())["choices"][0]["message"]["content"]
        return text


async def test_a_checkpoints_own_penalty_does_not_slip_in(url: str) -> None:
    endpoint = ChatEndpoint(url, "toy", sampling=Sampling(max_tokens=40))
    await endpoint.start()
    ours = (await endpoint.chat(MESSAGES, seed=0)).text
    await endpoint.close()
    assert endpoint.left_out == set()
    # What the penalty would have done, so that the next line can fail.
    assert await said(url, temperature=0, repetition_penalty=5.0) != ours
    assert await said(url, temperature=0) == ours


async def test_a_plain_template_begins_no_reasoning(url: str) -> None:
    endpoint = ChatEndpoint(url, "toy", sampling=Sampling())
    await endpoint.start()
    await endpoint.close()
    assert endpoint.opens_reasoning is False
    assert endpoint.facts()["tells_stop"]


async def test_tool_calls_are_read(url: str) -> None:
    """The tiny model calls nothing by itself; held to the words of a call, it makes one."""
    endpoint = ChatEndpoint(url, "toy", sampling=Sampling(max_tokens=12), turn_form=RequestForm(tools=True))
    await endpoint.start()
    assert (await endpoint.chat(MESSAGES, seed=0, form=RequestForm(tools=True))).calls == ()
    await endpoint.close()
    words = '<tool_call>\n{"name": "act", "arguments": {"command": "look"}}\n</tool_call>'
    request = {
        "model": "toy", "messages": MESSAGES, "max_tokens": 200, "tools": [TOOL], "tool_choice": "auto",
        "structured_outputs": {"choice": [words]},
    }  # fmt: skip
    async with (
        aiohttp.ClientSession() as http,
        http.post(f"{url}/chat/completions", json=request) as response,
    ):
        answer = await response.read()
    assert response.status == 200, answer
    [call] = read_completion(answer)["calls"]
    assert call.command() == "look", answer
