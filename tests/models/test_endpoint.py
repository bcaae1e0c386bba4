"""The chat client against a real server that answers, refuses and breaks."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import chat_server as cs
import pytest
from against_server import asking, evaluated
from chat_server import ChatServer
from hypothesis import given
from hypothesis import strategies as st

from evalharness.base.errors import UserError
from evalharness.cli import main
from evalharness.config import RunConfig, endpoint_url
from evalharness.envs.base import Task
from evalharness.models.base import RequestForm
from evalharness.models.completion import (
    ErrorInsteadError,
    RequestRefusedError,
    TryFailedError,
    read_completion,
    refuses_response_format,
    retry_after,
)
from evalharness.models.endpoint import ChatEndpoint, EndpointError, Sampling, merge_system, request_seed
from evalharness.models.replicas import Replica, Replicas
from evalharness.records.store import read_manifest

MESSAGES = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]


async def ask(
    server: ChatServer, *faults: cs.Fault, tries: int = 3, timeout: float = 20.0
) -> tuple[str, list[str]]:
    """The text of one reply and the reasons of the tries that failed."""
    async with asking(server.url, tries=tries, timeout=timeout) as endpoint:
        server.faults = list(faults)
        reply = await endpoint.chat(MESSAGES, seed=5)
        return reply.text, [failed.error for failed in reply.failed_tries]


async def test_a_reply_with_its_counts() -> None:
    async with (
        ChatServer().running() as server,
        asking(server.url, sampling=Sampling(temperature=0.5, max_tokens=9), api_key="secret") as endpoint,
    ):
        reply = await endpoint.chat(MESSAGES, seed=5)
    assert (reply.text, reply.prompt_tokens, reply.completion_tokens) == (
        "Thought: t\nAction: turn left",
        11,
        7,
    )
    request = server.requests[-1]
    assert {k: request[k] for k in ("model", "temperature", "top_p", "max_tokens", "seed", "stop")} == {
        "model": "toy", "temperature": 0.5, "top_p": 1.0, "max_tokens": 9, "seed": 5, "stop": ["\nObservation:"],
    }  # fmt: skip
    assert server.headers[-1]["Authorization"] == "Bearer secret"
    assert endpoint.max_model_len == 4096


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(cs.status(500), id="500"),
        pytest.param(cs.status(503), id="503"),
        pytest.param(cs.status(429, headers={"Retry-After": "0"}), id="429"),
        pytest.param(cs.body("{not json"), id="invalid JSON"),
        pytest.param(cs.body('{"choices": []}'), id="empty choices"),
        pytest.param(cs.body("<html>", "text/html"), id="wrong content type"),
        pytest.param(cs.body("[]"), id="no object"),
        pytest.param(cs.body('{"choices":[{"message":{"content":[1]}}]}'), id="content is no text"),
        pytest.param(cs.close_in_the_middle, id="closes in the middle"),
        pytest.param(cs.ten_megabytes, id="10 MB"),
    ],
)
async def test_a_passing_fault_is_tried_again_with_the_same_request(fault: cs.Fault) -> None:
    async with ChatServer().running() as server:
        text, reasons = await ask(server, fault)
    assert text == "Thought: t\nAction: turn left"
    assert len(reasons) == 1
    assert server.requests[-1] == server.requests[-2]


@pytest.mark.slow
async def test_a_stalled_answer_runs_into_the_deadline_and_is_tried_again() -> None:
    async with ChatServer().running() as server:
        text, reasons = await ask(server, cs.stall, timeout=1.0)
    assert text == "Thought: t\nAction: turn left"
    assert "Timeout" in reasons[0]


@pytest.mark.slow
async def test_every_failed_try_is_recorded_with_its_kind() -> None:
    faults = [cs.status(429, headers={"Retry-After": "0"}), cs.status(500, "boom"), cs.body("{")]
    async with ChatServer().running() as server, asking(server.url) as endpoint:
        server.faults = [*faults, cs.close_in_the_middle]
        reply = await endpoint.chat(MESSAGES, seed=5)
    assert [failed.kind for failed in reply.failed_tries] == ["busy", "server_error", "invalid", "truncated"]
    assert reply.failed_tries[1].error == "HTTP 500: boom"
    assert all(failed.seconds >= 0 and failed.waited >= 0 for failed in reply.failed_tries)


async def test_a_busy_server_is_asked_for_as_long_as_the_call_may_last() -> None:
    """429 says that the server lives: more refusals than `tries` are survived."""
    busy = cs.status(429, headers={"Retry-After": "0"})
    async with ChatServer().running() as server:
        text, reasons = await ask(server, *[busy] * 12, tries=2)
    assert (text, len(reasons)) == ("Thought: t\nAction: turn left", 12)


async def test_a_server_that_asks_for_more_time_than_there_is_is_given_up_at_once() -> None:
    async with ChatServer().running() as server:
        with pytest.raises(EndpointError, match=r"\d{4} s more"):
            await ask(server, cs.status(429, "slow down", {"Retry-After": "3999"}))


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7.0),
        # The server's clock is years behind ours.
        ({"Retry-After": "Tue, 05 Mar 2019 10:00:09 GMT", "Date": "Tue, 05 Mar 2019 10:00:00 GMT"}, 9.0),
        ({"Retry-After": "Tue, 05 Mar 2019 09:00:00 GMT", "Date": "Tue, 05 Mar 2019 10:00:00 GMT"}, 0.0),
        ({"Retry-After": "-3"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "9" * 400}, None),
        ({"Retry-After": "soon", "Date": "x"}, None),
        ({}, None),
    ],
)
def test_how_long_a_server_asks_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["choices", "message", "content", "usage", "x"]), inner, max_size=3
            )
        ),
        max_leaves=12,
    )
)
def test_whatever_json_comes_is_a_reply_or_a_failed_try(value: object) -> None:
    try:
        fields = read_completion(json.dumps(value).encode())
    except TryFailedError:
        return
    assert isinstance(fields["text"], str)


@pytest.mark.parametrize("raw", [b"[" * 1_000_000, b'{"choices":' * 100_000, b"\xff\xfe", b"", b"9" * 5000])
def test_bytes_made_to_break_a_parser_are_a_failed_try(raw: bytes) -> None:
    with pytest.raises(TryFailedError, match="chat completion"):
        read_completion(raw)


@pytest.mark.parametrize("finish_reason", ["abort", "error"])
def test_a_reply_that_the_server_broke_off_is_a_failed_try(finish_reason: str) -> None:
    body = cs.completion("Thought: I", finish_reason=finish_reason)
    with pytest.raises(TryFailedError, match=finish_reason):
        read_completion(json.dumps(body).encode())


@pytest.mark.parametrize("count", ["1e400", "-1", "99999999999999999999", "true", '"7"', "7.5", "null"])
def test_a_count_that_is_none_is_not_recorded(count: str) -> None:
    raw = f'{{"choices":[{{"message":{{"content":"x"}}}}],"usage":{{"prompt_tokens":{count}}}}}'
    assert read_completion(raw.encode())["prompt_tokens"] is None


@pytest.mark.slow
async def test_tries_are_bounded() -> None:
    async with ChatServer().running() as server:
        with pytest.raises(EndpointError, match="HTTP 500: no, 3 tries"):
            await ask(server, *[cs.status(500)] * 9)


async def test_a_refused_request_is_the_users_to_mend() -> None:
    async with ChatServer().running() as server:
        with pytest.raises(UserError, match="HTTP 400"):
            await ask(server, cs.status(400, "top_k is not allowed"))


@pytest.mark.parametrize(
    ("code", "phrase"),
    [(204, "No Content"), (206, "Partial Content"), (304, "Not Modified"), (299, "unknown")],
)
async def test_an_answer_that_is_neither_reply_nor_refusal_is_named(code: int, phrase: str) -> None:
    async def fault(request: cs.web.Request) -> cs.web.StreamResponse:
        return cs.web.Response(status=code)

    async with ChatServer().running() as server:
        with pytest.raises(UserError, match=rf"HTTP {code} \({phrase}\)"):
            await ask(server, fault)


async def test_a_request_of_another_form() -> None:
    """Outside an environment a conversation has its own stop sequences, schema and length, and seeds by its key."""
    schema = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}}
    async with ChatServer().running() as server:
        endpoint = ChatEndpoint(server.url, "toy", sampling=Sampling(max_tokens=99, seed=3))
        await endpoint.start()
        replicas = Replicas([Replica("one", endpoint)])
        plain, held = RequestForm(), RequestForm(("x",), schema, max_tokens=5, temperature=0.7)
        await replicas.conversation("key", 1, plain).reply(MESSAGES, turn=2)
        await replicas.conversation("key", 1, held).reply(MESSAGES, turn=2)
        server.faults = [cs.status(400, "no response_format here")]
        with pytest.raises(RequestRefusedError) as refused:
            await replicas.conversation("key", 1, held).reply(MESSAGES, turn=2)
        await replicas.close()
    first, second = server.requests[-3:-1]
    assert first["seed"] == second["seed"] == request_seed(3, "key", 1, 2)
    assert (first["temperature"], second["temperature"]) == (0.0, 0.7)
    assert (first["stop"], first["max_tokens"], first.get("response_format")) == ([], 99, None)
    assert (second["stop"], second["max_tokens"], second["response_format"]) == (["x"], 5, schema)
    assert (refused.value.status, refused.value.reason) == (400, "no response_format here")
    assert refuses_response_format(refused.value.reason)
    assert not refuses_response_format("top_k is not allowed")


async def test_nobody_there() -> None:
    endpoint = ChatEndpoint("http://127.0.0.1:9/v1", "toy", sampling=Sampling())
    with pytest.raises(UserError, match=r"no answer"):
        await endpoint.start()
    await endpoint.close()


async def test_a_name_that_chat_refuses_too_is_wrong_and_the_right_ones_are_listed() -> None:
    refuses = cs.status(404, "no such model")
    async with ChatServer(model="other", choose_fault=lambda request: refuses).running() as server:
        with pytest.raises(UserError, match=r"'toy'.*other.*no such model"):
            async with asking(server.url):
                pass


@pytest.mark.parametrize("list_fault", [None, cs.status(403, "not for you")])
async def test_a_name_that_only_chat_knows_is_played_and_known_by_its_url(
    clean_home: Path, tmp_path: Path, list_fault: cs.Fault | None, caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(logging.getLogger("evalharness"), "propagate", True)
    async with ChatServer(model="toy-8b", list_fault=list_fault).running() as server:
        outcome = await evaluated(server, tmp_path / "run", tasks="babyai:0", max_turns=1)
    assert outcome.exit_status == 0
    model = read_manifest(tmp_path / "run").identity.model
    assert (model["url"], model.get("served")) == (server.url, None)
    assert ("not for you" if list_fault else "toy-8b") in caplog.text


@pytest.mark.parametrize(
    ("message", "text", "reasoning"),
    [
        (
            {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Maybe "}, {"type": "text", "text":
                "not."}]}, {"type": "text", "text": "Action: "}, {"type": "text", "text": "look"}]},
            "Action: look", "Maybe not.",
        ),
        ({"content": [{"type": "thinking", "thinking": "Hm."}, {"type": "output_text", "text": "a"}]}, "a", "Hm."),
        ({"content": "a", "reasoning_details": [{"type": "reasoning.text", "text": "Hm."}]}, "a", "Hm."),
        ({"content": None, "refusal": "I will not."}, "I will not.", ""),
        ({"content": ["a", "b"], "reasoning": "Hm."}, "ab", "Hm."),
        ({"content": [{"type": "summary", "text": "Hm."}, {"type": "text", "text": "a"}]}, "a", "Hm."),
        ({"content": {"type": "text", "text": "a"}, "reasoning": {"content": "Hm."}}, "a", "Hm."),
        ({"content": []}, "", ""),
    ],
)  # fmt: skip
def test_content_in_parts_is_text_and_reasoning(message: dict[str, Any], text: str, reasoning: str) -> None:
    fields = read_completion(json.dumps({"choices": [{"message": message}]}).encode())
    assert (fields["text"], fields["reasoning"]) == (text, reasoning)


@pytest.mark.parametrize(
    "answer",
    [
        {"choices": [{"index": 0, "finish_reason": "content_filter"}]},
        {"choices": [{"index": 0, "finish_reason": "content_filter: PROHIBITED_CONTENT"}]},
        {"choices": [], "promptFeedback": {"blockReason": "SAFETY"}},
    ],
)
def test_a_filter_that_leaves_no_message_is_told_by_its_reason(answer: dict[str, Any]) -> None:
    with pytest.raises(ErrorInsteadError) as raised:
        read_completion(json.dumps(answer).encode())
    assert raised.value.server_error.is_filtered


def test_an_error_in_the_middle_of_a_stream_is_no_reply() -> None:
    parts = [
        {"choices": [{"delta": {"content": "Thought: "}}]},
        {"error": {"message": "prompt is too long", "code": "context_length_exceeded"}},
    ]
    with pytest.raises(ErrorInsteadError) as raised:
        read_completion(b"".join(b"data: " + json.dumps(part).encode() + b"\n\n" for part in parts))
    assert raised.value.server_error.is_context_full


async def test_a_server_that_only_streams_is_asked_for_a_stream() -> None:
    def choose(request: dict[str, Any]) -> cs.Fault:
        if not request.get("stream"):
            return cs.status(400, "This model only supports streaming, set stream to true")
        if "stream_options" in request:
            return cs.status(400, "Unknown parameter: stream_options")
        return cs.streamed("Thought: t\nAction: look")

    async with ChatServer(choose_fault=choose).running() as server, asking(server.url) as endpoint:
        reply = await endpoint.chat(MESSAGES, seed=0)
        assert (reply.text, reply.prompt_tokens, reply.failed_tries) == ("Thought: t\nAction: look", 11, ())
        assert (endpoint.facts()["stream"], endpoint.facts()["left_out"]) == (True, ["stream_options"])


def test_a_stream_that_was_not_asked_for_is_joined() -> None:
    def call(**part: str) -> dict[str, Any]:
        return {"tool_calls": [{"index": 0, "id": "c", "function": part}]}

    deltas = [{"reasoning": "H"}, {"reasoning": "m"}, {"content": "a"}, {"content": "b"}]
    calls = [call(name="act", arguments='{"command": '), call(arguments='"look"}')]
    chunks = [{"model": "m", "choices": [{"delta": delta}]} for delta in [*deltas, *calls]]
    end = [{"choices": [{"delta": {}, "finish_reason": "stop", "stop_reason": None}]}]
    raw = b": hello\n\n" + b"".join(
        b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks + end
    )
    fields = read_completion(raw)
    assert (fields["text"], fields["reasoning"], fields["finish_reason"]) == ("ab", "Hm", "stop")
    assert (fields["calls"][0].command(), fields["tells_stop"], fields["source"]) == (
        "look", True, {"answered_by": "m"},
    )  # fmt: skip
    with pytest.raises(TryFailedError, match="stream ended before"):
        read_completion(raw[: raw.index(b'data: {"choices')])


@pytest.mark.parametrize(("no_proxy", "answers"), [("", True), ("model.invalid", False)])
async def test_the_proxy_of_the_environment_is_asked(
    monkeypatch: pytest.MonkeyPatch, no_proxy: str, answers: bool
) -> None:
    async with ChatServer().running() as server:
        monkeypatch.setenv("HTTP_PROXY", server.url.removesuffix("/v1"))
        monkeypatch.setenv("NO_PROXY", no_proxy)
        endpoint = ChatEndpoint("http://model.invalid/v1", "toy", sampling=Sampling())
        with nullcontext() if answers else pytest.raises(UserError, match=r"no answer"):
            await endpoint.start()
        await endpoint.close()
        monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
        async with asking(server.url):  # this machine's own servers need none
            pass
    assert len(server.requests) == 1 + answers


async def test_a_header_of_the_user_goes_with_every_request_and_into_no_record(
    clean_home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where the server repeats it in an error, and where the flag is mistyped."""
    server = ChatServer(list_fault=cs.status(403, "k3y-0f-mine is not for lists"))
    async with server.running():
        flags = [
            "run",
            "--model",
            server.url,
            "--model-name",
            "toy",
            "--suite",
            "open",
            "--tasks",
            "babyai:0",
        ]
        flags += ["--max-turns", "1", "-o", str(tmp_path / "run"), "--header"]
        assert await asyncio.to_thread(main, [*flags, "api-key: k3y-0f-mine"]) == 0
        assert await asyncio.to_thread(main, [*flags, "api-key k3y-0f-mine"]) == 2
    assert {headers.get("api-key") for headers in server.headers} == {"k3y-0f-mine"}
    said = capsys.readouterr()
    written = [path.read_text(errors="replace") for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert not any("k3y-0f-mine" in text for text in (*written, said.out, said.err))


@pytest.mark.parametrize("path", ["", "/v1/chat/completions"])
async def test_the_query_of_an_address_goes_with_every_request(path: str) -> None:
    async with ChatServer().running() as server:
        address = endpoint_url(f"{server.url.removesuffix('/v1')}{path}?api-version=2024-10-21")
        async with asking(address):
            pass
    assert {query["api-version"] for query in server.queries} == {"2024-10-21"}


async def test_a_template_without_system_role_gets_it_in_the_first_user_message() -> None:
    async with ChatServer().running() as server:
        server.faults = [cs.status(400, "System role not supported")]
        async with asking(server.url) as endpoint:
            await endpoint.chat(MESSAGES, seed=0)
    assert server.requests[-1]["messages"] == [{"role": "user", "content": "s\n\nu"}]


def test_merging_leaves_other_conversations_alone() -> None:
    assert merge_system(MESSAGES[1:]) == MESSAGES[1:]


def test_request_seeds_differ_by_turn_and_sample_and_never_by_order() -> None:
    seeds = [request_seed(0, "a/b/1", sample, turn) for sample in range(10) for turn in range(30)]
    assert len(set(seeds)) == 300
    assert seeds[0] == request_seed(0, "a/b/1", 0, 0)
    assert all(0 <= seed < 2**31 for seed in seeds)


async def test_half_a_surrogate_pair_does_not_reach_the_store() -> None:
    async with ChatServer().running() as server:
        text, _ = await ask(server, cs.body('{"choices":[{"message":{"content":"a\\ud800b"}}]}'))
    assert text == "a?b"


async def test_the_requests_of_an_episode_carry_one_key_and_other_episodes_another() -> None:
    """A router that goes by the session keeps an episode on the server whose cache knows it."""
    task = Task(id="toy/open/000", family="toy", suite="open", index=0, goal="g", difficulty="easy", kind="k")
    async with ChatServer().running() as server:
        for header in ("X-Session-ID", "X-Flow", ""):
            endpoint = ChatEndpoint(server.url, "toy", sampling=Sampling(), session_header=header)
            await endpoint.start()
            group = Replicas([Replica("one", endpoint)])
            server.headers.clear()
            for sample in (0, 1):
                player = group.player(task, sample, None)  # type: ignore[arg-type]
                for turn in (1, 2):
                    await player.reply(MESSAGES, turn=turn)
            await endpoint.close()
            keys = [headers.get(header or "X-Session-ID") for headers in server.headers]
            if not header:
                assert keys == [None] * 4
                continue
            assert keys[0] == keys[1] != keys[2] == keys[3]
            assert all(keys)


async def test_the_turns_of_a_run_carry_the_key_of_their_episode(clean_home: Path, tmp_path: Path) -> None:
    async with ChatServer().running() as server:
        await evaluated(server, tmp_path / "run", tasks="babyai:0-1", max_turns=3)
    told = [headers.get("X-Session-ID") for headers in server.headers]
    assert told[0] is None  # the first request of all belongs to no episode
    assert sorted(Counter(told[1:]).values()) == [3, 3]


def test_a_name_that_is_no_header_is_refused() -> None:
    with pytest.raises(UserError, match="HTTP header"):
        RunConfig.of(model="oracle", session_header="X: y\r\nHost")
