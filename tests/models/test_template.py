"""Chat templates: what they refuse, what they are handed, and whether they begin the reasoning."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import chat_server as cs
import pytest
from against_server import asking, evaluated
from chat_server import ChatServer, completion
from empty_checkpoint import make_empty_checkpoint

from evalharness.base.errors import UserError
from evalharness.config import make_config
from evalharness.envs import specs
from evalharness.models.base import RequestForm
from evalharness.models.endpoint import ChatEndpoint, Sampling
from evalharness.models.resolve import prepare
from evalharness.protocol.tools import TOOL
from evalharness.records.store import read_episodes, read_manifest

MESSAGES = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]


def codes(text: str) -> list[int]:
    return [ord(letter) for letter in text]


def text_of(tokens: list[int]) -> str:
    return "".join(map(chr, tokens))


def plain(request: dict[str, Any]) -> str:
    return "".join(f"<{m['role']}>{m['content']}\n" for m in request["messages"]) + "<assistant>"


@pytest.mark.parametrize(
    "message",
    [
        "Conversation roles must alternate user/assistant/user/assistant/...",
        "System role not supported",
        "après un message utilisateur",
    ],
)
async def test_a_template_that_refuses_a_system_message_in_any_words_works(message: str) -> None:
    def refuse(request: dict[str, Any]) -> cs.Fault | None:
        return cs.status(400, message) if request["messages"][0]["role"] == "system" else None

    async with ChatServer(choose_fault=refuse).running() as server, asking(server.url) as endpoint:
        await endpoint.chat(MESSAGES, seed=1)
    assert server.requests[-1]["messages"] == [{"role": "user", "content": "s\n\nu"}]
    assert endpoint.left_out == set()
    assert endpoint.facts()["system_in_first_message"]


async def test_what_no_change_of_ours_helps_is_told_in_the_servers_words() -> None:
    async with ChatServer(choose_fault=lambda request: cs.status(400, "nothing works")).running() as server:
        endpoint = ChatEndpoint(server.url, "toy", sampling=Sampling())
        with pytest.raises(UserError, match="nothing works"):
            await endpoint.start()
        await endpoint.close()
    assert len(server.requests) == 4


async def test_a_run_by_tool_calls_is_examined_as_it_is_played() -> None:
    seen: list[dict[str, Any]] = []

    def tokenize(request: dict[str, Any]) -> list[int]:
        seen.append(request)
        return codes(plain(request))

    async with (
        ChatServer(tokenize=tokenize, detokenize=text_of).running() as server,
        asking(server.url, turn_form=RequestForm(tools=True)) as endpoint,
    ):
        assert endpoint.opens_reasoning is False
    assert [request["tools"] for request in seen] == [[TOOL]]


async def test_a_server_without_tokenizer_route_says_nothing() -> None:
    async with ChatServer().running() as server, asking(server.url) as endpoint:
        assert endpoint.opens_reasoning is None


async def test_arguments_of_the_template_go_with_every_request_and_reasoning_stays_where_wanted(
    clean_home: Path, tmp_path: Path
) -> None:
    """A whole run."""
    seen: list[dict[str, Any]] = []

    def tokenize(request: dict[str, Any]) -> list[int]:
        seen.append(request)
        return codes(plain(request))

    server = ChatServer(
        answer=lambda request: "<think>\nhm\n</think>\n\nThought: t\nAction: turn left", tokenize=tokenize
    )
    async with server.running():
        await evaluated(
            server, tmp_path / "run", tasks="babyai:0", max_turns=2,
            chat_template_kwargs={"enable_thinking": False}, history_thinking="keep",
        )  # fmt: skip
    assert all(
        request["chat_template_kwargs"] == {"enable_thinking": False} for request in [*server.requests, *seen]
    )
    assert server.requests[-1]["messages"][2]["content"] == (
        "<think>\nhm\n</think>\n\nThought: t\nAction: turn left"
    )
    manifest = read_manifest(tmp_path / "run").to_json()
    assert manifest["identity"]["config"]["history_thinking"] == "keep"
    assert manifest["identity"]["config"]["chat_template_kwargs"] == '{"enable_thinking": false}'


def test_the_same_arguments_in_other_words_are_the_same_run() -> None:
    one = make_config({"model": "m", "chat_template_kwargs": '{"b": 1, "a": 2}'})
    two = make_config({"model": "m", "chat_template_kwargs": {"a": 2, "b": 1}})
    assert one.identity() == two.identity()
    assert one.policy.template_kwargs == {"a": 2, "b": 1}
    for wrong in ("{", "[1]", "3"):
        with pytest.raises(UserError, match="--chat-template-kwargs"):
            make_config({"model": "m", "chat_template_kwargs": wrong})


def test_a_template_file_counts_by_its_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from evalharness.models import own_servers

    monkeypatch.setattr(own_servers, "find_server", lambda explicit: None)
    monkeypatch.setattr(own_servers, "place_replicas", lambda *given, **named: [])
    checkpoint = make_empty_checkpoint(tmp_path / "model")
    file, copy = tmp_path / "a.jinja", tmp_path / "b.jinja"
    file.write_text("{{ messages }}")
    copy.write_text("{{ messages }}")

    def identity(**options: Any) -> Any:
        config = make_config({"model": str(checkpoint), **options})
        return config.identity(), prepare(config.policy, specs(), lambda text: None).identity

    assert identity(chat_template=file) == identity(chat_template=copy)
    assert identity(chat_template=file) != identity()
    with pytest.raises(UserError, match="No such file"):
        identity(chat_template=tmp_path / "no.jinja")
    with pytest.raises(UserError, match="--chat-template"):
        identity(chat_template=file, vllm_args="--chat-template x")
    with pytest.raises(UserError, match="server"):
        make_config({"model": "http://h/v1", "model_name": "m", "chat_template": file})


def test_reasoning_that_the_prompt_has_begun_is_told_when_it_is_cut_off() -> None:
    def cut(request: dict[str, Any]) -> dict[str, Any]:
        return completion("I go on and on. Action: look", finish_reason="length")

    async def reply() -> Any:
        server = ChatServer(
            answer=cut, tokenize=lambda request: codes(plain(request) + "<think>\n"), detokenize=text_of
        )
        async with server.running(), asking(server.url) as endpoint:
            return await endpoint.chat(MESSAGES, seed=1)

    found = asyncio.run(reply())
    assert (found.text, found.reasoning) == ("", "I go on and on. Action: look")


async def test_reasoning_told_apart_is_stored_apart(clean_home: Path, tmp_path: Path) -> None:
    def answer(request: dict[str, Any]) -> dict[str, Any]:
        told = completion("Thought: t\nAction: turn left")
        told["choices"][0]["message"]["reasoning_content"] = "I could act.\nAction: drop"
        told["usage"]["completion_tokens_details"] = {"reasoning_tokens": 5}
        return told

    server = ChatServer(answer=answer)
    async with server.running():
        outcome = await evaluated(server, tmp_path / "run", tasks="babyai:0", max_turns=2)
    [episode] = read_episodes(tmp_path / "run")
    turn = episode.turns[0]
    assert (turn.reply, turn.thought, turn.action) == ("Thought: t\nAction: turn left", "t", "turn left")
    assert (turn.reasoning, turn.reasoning_tokens) == ("I could act.\nAction: drop", 5)
    assert server.requests[-1]["messages"][2]["content"] == "Thought: t\nAction: turn left"
    assert outcome.summary.tokens.reasoning == 10
    line = json.loads((tmp_path / "run" / "episodes.jsonl").read_text())
    assert line["turns"][0]["reasoning"].startswith("I could")
