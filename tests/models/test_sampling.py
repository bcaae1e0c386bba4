"""Every request says its whole sampling; what a server refuses is left out once and noted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import chat_server as cs
import pytest
from against_server import asking, evaluated
from chat_server import ChatServer

from evalharness.base.errors import UserError
from evalharness.config import SAMPLING, RunConfig, make_config
from evalharness.models.endpoint import ChatEndpoint
from evalharness.models.sampling import Sampling
from evalharness.records.store import read_manifest

WHOLE = {
    "temperature": 0.0, "top_p": 1.0, "top_k": -1, "min_p": 0.0, "presence_penalty": 0.0, "frequency_penalty": 0.0,
    "repetition_penalty": 1.0,
}  # fmt: skip
MESSAGES = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]


async def started(server: ChatServer, sampling: Sampling) -> ChatEndpoint:
    endpoint = ChatEndpoint(server.url, "toy", sampling=sampling)
    await endpoint.start()
    await endpoint.chat(MESSAGES, seed=5)
    await endpoint.close()
    return endpoint


def refuses(message: str, *fields: str) -> Any:
    """400 for requests with one of `fields`; `{}` in the message is the field."""

    def fault(request: dict[str, Any]) -> cs.Fault | None:
        found = next((field for field in fields if field in request), None)
        return None if found is None else cs.status(400, message.format(found))

    return fault


async def test_a_request_says_all_of_it_neutral_values_too() -> None:
    async with ChatServer().running() as server:
        endpoint = await started(server, Sampling())
    assert {name: server.requests[-1][name] for name in SAMPLING} == WHOLE
    assert endpoint.facts() == {
        "sampling": WHOLE,
        "left_out": [],
        "system_in_first_message": False,
        "tells_stop": True,
    }


@pytest.mark.parametrize(
    "message", ["Unrecognized request argument supplied: {}", "extra inputs are not permitted"]
)
async def test_what_a_server_refuses_is_left_out_from_the_start_on(message: str) -> None:
    server = ChatServer(choose_fault=refuses(message, "top_k", "min_p", "repetition_penalty"))
    async with server.running():
        endpoint = await started(server, Sampling())
    assert endpoint.left_out == {"top_k", "min_p", "repetition_penalty"}
    assert set(SAMPLING) - server.requests[-1].keys() == endpoint.left_out
    assert server.requests[-1]["messages"] == MESSAGES
    assert "top_k" not in endpoint.facts()["sampling"]


async def test_a_seed_may_be_refused() -> None:
    async with ChatServer(choose_fault=refuses("Unknown field {}", "seed")).running() as server:
        endpoint = await started(server, Sampling())
    assert endpoint.left_out == {"seed"}


async def test_what_was_asked_for_is_never_left_out() -> None:
    async with ChatServer(choose_fault=refuses("{} is not supported", "top_k")).running() as server:
        endpoint = ChatEndpoint(server.url, "toy", sampling=Sampling(top_k=20))
        with pytest.raises(UserError, match="top_k"):
            await endpoint.start()
        await endpoint.close()


async def test_greedy_is_never_left_out() -> None:
    """A server that takes temperature 1 alone would play as something else than asked."""
    message = "Unsupported value: {} does not support 0"
    async with ChatServer(choose_fault=refuses(message, "temperature")).running() as server:
        endpoint = ChatEndpoint(server.url, "toy", sampling=Sampling())
        with pytest.raises(
            UserError, match=r"temperature does not support 0.*; with --temperature 1 the field"
        ):
            await endpoint.start()
        await endpoint.close()
        usual = await started(server, Sampling(temperature=1.0))
    assert usual.left_out == {"temperature"}


async def test_a_server_that_takes_another_field_for_the_limit_of_tokens_gets_that() -> None:
    message = (
        "Unsupported parameter: '{}' is not supported with this model. Use 'max_completion_tokens' instead."
    )
    async with ChatServer(choose_fault=refuses(message, "max_tokens")).running() as server:
        endpoint = await started(server, Sampling(max_tokens=77))
        request = server.requests[-1]
    assert "max_tokens" not in request
    assert request["max_completion_tokens"] == 77
    assert endpoint.facts()["token_limit_field"] == "max_completion_tokens"


async def test_stop_sequences_may_be_refused() -> None:
    message = "Unsupported parameter: '{}' is not supported with this model."
    async with ChatServer(choose_fault=refuses(message, "stop")).running() as server:
        endpoint = await started(server, Sampling())
    assert endpoint.left_out == {"stop"}


async def test_further_fields_are_in_every_request_and_never_in_place_of_ours() -> None:
    async with ChatServer().running() as server:
        fields = {"reasoning_effort": "low", "seed": 99}
        async with asking(server.url, extra_fields=fields) as endpoint:
            await endpoint.chat(MESSAGES, seed=3)
    assert [request["reasoning_effort"] for request in server.requests] == ["low", "low"]
    assert server.requests[-1]["seed"] == 3


async def test_the_manifest_tells_how_the_server_was_asked(clean_home: Path, tmp_path: Path) -> None:
    server = ChatServer(choose_fault=refuses("what is {}?", "min_p"))
    async with server.running():
        await evaluated(server, tmp_path / "run", tasks="babyai:0", max_turns=1)
    [asked] = read_manifest(tmp_path / "run").sessions[0].requests
    assert asked["left_out"] == ["min_p"]
    assert asked["sampling"]["repetition_penalty"] == 1.0


def test_a_file_fills_in_what_is_not_given_itself(tmp_path: Path) -> None:
    file = tmp_path / "generation_config.json"
    file.write_text(
        json.dumps({"transformers_version": "5", "eos_token_id": 2, "temperature": 0.6, "top_k": 20})
    )
    config = make_config({"model": "http://h/v1", "sampling": str(file), "temperature": 0.9})
    assert (config.policy.temperature, config.policy.top_k) == (0.9, 20)
    given = make_config({"model": "http://h/v1", "temperature": 0.9, "top_k": 20})
    assert config.identity() == given.identity()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("temprature: 1\ntop_p: 0.5", "'temprature'"),
        ("[]", "temperature, top_p"),
        ("{", "line 1, column 2"),
        ("top_k: many", "--top-k many"),
        (None, r"sampling\.yaml.*model"),
    ],
)
def test_a_file_that_says_something_else_is_refused(
    tmp_path: Path, content: str | None, message: str
) -> None:
    file = tmp_path / "sampling.yaml"
    if content is not None:
        file.write_text(content)
    with pytest.raises(UserError, match=message):
        make_config({"model": "http://h/v1", "sampling": str(file)})


def test_the_models_own_recommendation_is_another_run() -> None:
    own = make_config({"model": "org/model", "sampling": "model", "top_p": 0.9})
    assert own.policy.sampling_fields() == {**dict.fromkeys(WHOLE), "top_p": 0.9}
    assert own.identity()["sampling"] == "model"
    assert own.identity()["temperature"] is None
    assert own.identity() != make_config({"model": "org/model", "top_p": 0.9}).identity()


async def test_what_is_left_to_the_server_is_not_in_the_request() -> None:
    async with ChatServer().running() as server:
        await started(server, Sampling(**dict.fromkeys(WHOLE)))  # type: ignore[arg-type]
    assert not server.requests[-1].keys() & set(SAMPLING)


def test_scripted_runs_are_what_they_were() -> None:
    """No field of an earlier version's identity is gone, none is added."""
    assert RunConfig.of(model="oracle").identity() == {
        "model": "oracle", "model_name": None, "tasks": "all", "suite": "agentboard", "suite_seed": 0, "limit": None,
        "samples": 1, "max_turns": 30, "temperature": 0.0, "top_p": 1.0, "max_tokens": 256, "seed": 0, "perturb": None,
        "vllm_args": "",
    }  # fmt: skip
