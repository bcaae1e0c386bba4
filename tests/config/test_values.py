"""What each part of a configuration reads in several spellings, and what it refuses by the name of its flag."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalharness.base.errors import UserError
from evalharness.config import PolicyConfig, RunConfig, make_config, make_part
from evalharness.envs import specs

ENDPOINT = {"model": "http://h:1/v1", "model_name": "m"}


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("http://h:8000", "http://h:8000/v1"),
        ("http://h:8000/", "http://h:8000/v1"),
        ("https://h/v1/chat/completions", "https://h/v1"),
        ("https://h/v1/models/", "https://h/v1"),
        ("https://h/api/openai", "https://h/api/openai"),
    ],
)
def test_an_address_is_made_whole(given: str, read: str) -> None:
    config = make_part(PolicyConfig, {"model": given, "model_name": "m"})
    assert (config.endpoints, config.is_endpoint, config.is_ours) == ((read,), True, False)


@pytest.mark.parametrize(
    ("model", "scripted", "ours"),
    [("oracle", True, False), ("random", True, False), ("replay:RUN", True, False), ("org/x", False, True)],
)
def test_a_model_is_scripted_or_served_here_or_an_endpoint(model: str, scripted: bool, ours: bool) -> None:
    config = make_part(PolicyConfig, {"model": model})
    assert (config.is_scripted, config.is_ours, config.is_endpoint) == (scripted, ours, False)
    assert config.endpoints == ()


def test_sampling_from_a_file_counts_less_than_an_option(tmp_path: Path) -> None:
    file = tmp_path / "generation_config.json"
    file.write_text(
        json.dumps({"transformers_version": "4", "eos_token_id": 2, "temperature": 0.6, "top_k": 20})
    )
    config = make_part(PolicyConfig, {**ENDPOINT, "sampling": str(file), "temperature": 0.9})
    assert (config.temperature, config.top_k, config.sampling) == (0.9, 20, None)
    same = make_part(PolicyConfig, {**ENDPOINT, "temperature": 0.9, "top_k": 20})
    assert config.sampling_fields() == same.sampling_fields()


def test_what_is_left_to_the_models_recommendation_has_no_value() -> None:
    fields = make_part(PolicyConfig, {"model": "org/x", "sampling": "model", "top_p": 0.8}).sampling_fields()
    assert {name for name, value in fields.items() if value is not None} == {"top_p"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "sampling.yaml.*model"),
        ("a: [", "sampling.yaml"),
        ("{}", "temperature, top_p"),
        ("temperature: 1\ntemprature: 2\n", "'temprature'"),
    ],
)
def test_a_sampling_file_that_says_nothing_is_refused(tmp_path: Path, text: str | None, reason: str) -> None:
    file = tmp_path / "sampling.yaml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(UserError, match=reason):
        make_part(PolicyConfig, {**ENDPOINT, "sampling": str(file)})


def test_the_same_arguments_are_the_same_run_however_they_are_written() -> None:
    texts: list[Any] = ['{"b": 1, "a": 2}', '{ "a":2,"b":1 }', {"a": 2, "b": 1}]
    for name in ("extra_body", "chat_template_kwargs"):
        identities = [make_config({**ENDPOINT, name: text}).identity() for text in texts]
        assert identities[0] == identities[1] == identities[2]
        assert make_config({**ENDPOINT, name: "{}"}).identity() == make_config(ENDPOINT).identity()


@pytest.mark.parametrize(
    ("options", "flag"),
    [
        ({"model": ["http://h/v1", "org/x"]}, "org/x"),
        ({**ENDPOINT, "lora": "a"}, "--lora"),
        ({**ENDPOINT, "deterministic": True}, "VLLM_BATCH_INVARIANT=1"),
        ({**ENDPOINT, "replicas": 2}, "--model several times"),
        ({**ENDPOINT, "chat_template": "t.jinja"}, "vllm serve ... --chat-template t.jinja"),
        ({**ENDPOINT, "session_header": "a b"}, "HTTP header"),
        ({**ENDPOINT, "timeout": float("inf")}, "--timeout"),
        ({**ENDPOINT, "extra_body": "[1]"}, "JSON object"),
        ({**ENDPOINT, "extra_body": "{"}, "JSON"),
        ({"model": "oracle", "output": " "}, "--output"),
        ({"model": "oracle", "questions": "0"}, "above 0, or all"),
        ({"model": "oracle", "stop_on_format_errors": 1}, "--stop-on-format-errors"),
        ({"model": "oracle", "max_turns": 10**7}, "--max-turns"),
        ({"model": "oracle", "suite": "opne"}, "'open'"),
        ({"model": "oracle", "suite_seed": -1}, "--suite-seed"),
    ],
    ids=lambda value: value if isinstance(value, str) else ",".join(value),
)
def test_what_cannot_be_meant_is_refused_with_the_way_to_say_it(options: dict[str, Any], flag: str) -> None:
    with pytest.raises(UserError) as error:
        make_config(options)
    assert flag in str(error.value)


def test_a_system_message_is_the_same_run_from_a_file_and_as_a_text(tmp_path: Path) -> None:
    file = tmp_path / "system.txt"
    file.write_text("Play well.\n")
    by_file, by_text = (make_config({**ENDPOINT, "system": given}) for given in (str(file), "Play well."))
    assert by_file.agent.system == "Play well."
    assert by_file.identity() == by_text.identity()


def test_turns_are_the_familys_own_unless_they_are_given() -> None:
    for spec in specs().values():
        assert RunConfig.of(model="oracle").agent.turn_limit(spec) == min(30, spec.own.max_turns)
        assert RunConfig.of(model="oracle", max_turns=77).agent.turn_limit(spec) == 77


def test_tasks_are_read_from_a_file_a_line_each(tmp_path: Path) -> None:
    (tmp_path / "tasks.txt").write_text("# chosen\nbabyai:0-3,\n\npddl   # all of it\n")
    chosen = make_config({"model": "oracle", "tasks": f"@{tmp_path / 'tasks.txt'}"})
    assert chosen.selection.tasks == "babyai:0-3,pddl"
    assert chosen.identity() == make_config({"model": "oracle", "tasks": ["babyai:0-3", "pddl"]}).identity()


def test_a_part_cannot_be_changed_in_place() -> None:
    config = make_config({"model": "oracle"})
    for part in (config.policy, config.selection, config.agent, config.limits, config.execution):
        name = next(iter(type(part).model_fields))
        with pytest.raises(ValueError, match="frozen"):
            setattr(part, name, getattr(part, name))
