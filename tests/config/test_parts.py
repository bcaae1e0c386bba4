"""A configuration is composed of parts, and stays the run that it was before there were parts."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from evalharness.base.errors import UserError
from evalharness.config import OPTIONS, PolicyConfig, RunConfig, make_config, make_part, option_of
from evalharness.config.run import PARTS

# (options, SHA-256 of the identity, folder) as version 0.2.0, with one flat configuration, made them.
AS_BEFORE: list[tuple[dict[str, Any], str, str]] = [
    (
        {"model": "oracle"},
        "b2ba81953f9bb8aa5fe27a6b921920e3aab00b2b445e774278b800c9231c2748",
        "results/oracle-agentboard-30dfe05e",
    ),
    (
        {"model": "random", "seed": 3, "samples": 4, "temperature": 1.0},
        "ef9ee9f447b0113f9e099086dda93bf32ba8eb151302499b25a147b0fcecb417",
        "results/random-agentboard-693ab796",
    ),
    (
        {"model": "demo", "suite": "open", "suite_seed": 3, "limit": 4, "max_tokens": 128},
        "6ad6da82b9157cf33d7e1d5f7db79104104e2a5390402ded8c13a29369c33699",
        "results/demo-open-4ddc6f5b",
    ),
    (
        {
            "model": ["http://h:1/v1", "http://i:2"],
            "model_name": "m",
            "perturb": "P1+P4",
            "max_turns": 30,
            "label": {"a": 1},
            "workers": {"babyai": 2},
        },
        "b8af30c734c1f91a998b40fd7ebaf990d054124d9a81c81e38c372479903cc1e",
        "results/m-P1+P4-agentboard-a1225963",
    ),
    (
        {
            "model": "org/x",
            "lora": "a",
            "sampling": "model",
            "top_p": 0.9,
            "extra_body": {"a": 1},
            "chat_template_kwargs": {"b": 2},
            "system": "hi",
            "shots": 0,
            "replicas": 2,
            "time_limit": "2h30m",
            "draw": 5,
        },
        "67d2ed8860364ee89f55b107ae5b2e927b8d96d7debf78084071e1e997235114",
        "results/x-a-agentboard-83f1154e",
    ),
    (
        {
            "model": "org/x",
            "history_thinking": "keep",
            "action_interface": "tools",
            "deterministic": True,
            "questions": 10,
            "tasks": ["babyai:0-3", "pddl"],
            "tries": 5,
            "stop_on_format_errors": 0.5,
            "vllm_args": ["--a", "b"],
        },
        "c53a9c36aea3af62c824a322cd6e6a2cb56d59486bf094f5ad5d73e63defa643",
        "results/x-agentboard-ff12a32b",
    ),
]


@pytest.mark.parametrize(("options", "identity", "folder"), AS_BEFORE)
def test_a_run_of_the_version_before_keeps_identity_and_folder(
    options: dict[str, Any], identity: str, folder: str
) -> None:
    config = make_config(options)
    text = json.dumps(config.identity(), sort_keys=True)
    assert (hashlib.sha256(text.encode()).hexdigest(), str(config.folder("addr"))) == (identity, folder)


def test_no_two_parts_share_an_option() -> None:
    assert len(OPTIONS) == sum(len(part.model_fields) for part in PARTS.values())


def test_only_what_results_depend_on_is_part_of_a_runs_identity() -> None:
    identity = make_config({"model": "org/x", "lora": "a", "suite": "open"}).identity()
    for name, field in OPTIONS.items():
        option = option_of(field)
        if option.operational or option.by_content:
            assert name not in identity
        elif not option.later and name != "questions":
            assert name in identity


def test_every_wrong_option_of_every_part_is_named() -> None:
    with pytest.raises(UserError) as error:
        RunConfig.of(model="oracle", max_turns=0, samples=0, tries=0)
    assert all(flag in str(error.value) for flag in ("--max-turns 0", "--samples 0", "--tries 0"))


def test_an_unknown_option_is_answered_with_the_nearest_name() -> None:
    with pytest.raises(UserError, match=r"'max_turn'.*max_turns"):
        make_config({"model": "oracle", "max_turn": 3})


def test_a_changed_configuration_leaves_the_first_as_it_was(tmp_path: Path) -> None:
    first = make_config({"model": "oracle", "seed": 1})
    second = first.with_options(seed=2, output=tmp_path)
    assert (first.policy.seed, second.policy.seed, second.execution.output) == (1, 2, tmp_path)
    assert first.selection is second.selection


def test_a_command_takes_one_part() -> None:
    judge = make_part(PolicyConfig, {"model": "http://host:1", "model_name": "j", "timeout": None})
    assert (judge.endpoints, judge.display_name) == (("http://host:1/v1",), "j")
    with pytest.raises(UserError, match=r"--temperature -1"):
        make_part(PolicyConfig, {"model": "m", "temperature": -1})
