"""Where options come from: a file with lists and `${VAR}`, variables, and the file that a run keeps of them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from command_line import evalharness, run_compass

from evalharness.base.errors import UserError
from evalharness.base.settings import read_config
from evalharness.cli import main
from evalharness.config import RunConfig, make_config


def test_lists_and_mappings_are_written_as_such(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(
        "model: [http://a/v1, http://b/v1]\nmodel-name: m\ntasks: [babyai, pddl:0-3]\nperturb: [P1, P4]\n"
        "vllm_args: [--max-model-len, 4096]\nextra_body: {reasoning_effort: low}\nworkers: {babyai: 2}\n"
    )
    config = make_config({}, file)
    assert config.policy.endpoints == ("http://a/v1", "http://b/v1")
    assert (config.selection.tasks, config.agent.perturb, config.policy.vllm_args) == (
        "babyai,pddl:0-3",
        "P1+P4",
        "--max-model-len 4096",
    )
    assert (config.policy.extra_fields, config.execution.workers) == (
        {"reasoning_effort": "low"},
        {"babyai": 2},
    )


@pytest.mark.parametrize(
    "option", ["agent: x.py:Y", "agent_command: sh x", "vllm: ./vllm", "vllm_args: [--plugin, x]"]
)
def test_a_file_chooses_no_code_that_was_not_typed(option: str, tmp_path: Path) -> None:
    """`vllm_args` stands for code in the file of a run folder alone: in the user's own file it is usual."""
    file, name = tmp_path / "config.yaml", option.partition(":")[0]
    (tmp_path / "manifest.json").write_text("{}")
    file.write_text(f"model: ckpt\n{option}\n")
    with pytest.raises(UserError, match=f" --{name.replace('_', '-')} "):
        make_config({}, file)


def test_variables_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "run.yaml"
    file.write_text('model: "${CKPT}/last"\nlimit: ${N}\ntasks: ["${FAMILY}"]\n')
    for name, value in (("CKPT", "runs/7"), ("N", "3"), ("FAMILY", "pddl")):
        monkeypatch.setenv(name, value)
    config = make_config({}, file)
    assert (config.policy.model, config.selection.limit, config.selection.tasks) == ("runs/7/last", 3, "pddl")
    monkeypatch.delenv("FAMILY")
    with pytest.raises(UserError, match=r"tasks: .*FAMILY"):
        read_config(file)


def test_a_time_is_seconds_or_has_units(tmp_path: Path) -> None:
    for text, seconds in (("90", 90), ("2.5", 2.5), ("2h30m", 9000), ("1h 5s", 3605), ("90M", 5400)):
        assert make_config({"model": "oracle", "time_limit": text}).limits.time_limit == seconds
    for text in ("1h30", "5d", "1.2.3h", "-5", "h", "30m1h"):
        with pytest.raises(UserError, match="--time-limit"):
            make_config({"model": "oracle", "time_limit": text})


def test_a_list_of_tasks_without_any_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tasks.txt").write_text("# none yet\n\n")
    with pytest.raises(UserError, match=r"tasks\.txt"):
        make_config({"model": "oracle", "tasks": f"@{tmp_path / 'tasks.txt'}"})


def test_flags_over_file(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text("model: oracle\nsuite: open\ntasks: compass\nlimit: 3\nmax_turns: 8\n")
    done = evalharness(
        environment, "run", "--config", tmp_path / "run.yaml", "--max-turns", 5, "-o", tmp_path / "run"
    )
    assert done.returncode == 0, done.stderr
    config = json.loads((tmp_path / "run" / "manifest.json").read_text())["identity"]["config"]
    assert (config["limit"], config["max_turns"]) == (3, 5)


CONFIGS = [
    {"model": "oracle"},
    {"model": ["http://a/v1", "http://b/v1"], "model_name": "m", "extra_body": {"a": 1}, "shots": 0},
    {"model": "ckpt", "sampling": "model", "top_k": 20, "label": {"size": "8"}, "vllm_args": "--seed 1"},
    {"model": "demo", "tasks": ["babyai:0-3", "pddl"], "system": "Play.\nWell.", "max_turns": 30},
    {"model": "demo", "protocol": "verl-agent", "own_words": True, "agent": "react", "tasks": "alfworld"},
    {"model": "demo", "system": ""},
    {"model": "demo", "system": "Cost: ${PRICE} or $${PRICE}, $5", "extra_body": {"user": "${ME}"}},
]


@pytest.mark.parametrize("options", CONFIGS)
def test_the_file_that_a_run_keeps_says_the_same_again(tmp_path: Path, options: dict[str, object]) -> None:
    config = make_config(dict(options))
    (tmp_path / "config.yaml").write_text(config.to_yaml())
    again = make_config({}, tmp_path / "config.yaml")
    assert again.identity() == config.identity()
    assert again.policy.endpoints == config.policy.endpoints


def test_a_run_keeps_its_options_and_can_be_had_again(environment: dict[str, str], tmp_path: Path) -> None:
    run_compass(environment, tmp_path / "run", "--model", "random", "--limit", 2)
    kept = tmp_path / "run" / "config.yaml"
    assert {"model": "random", "tasks": ["compass"], "limit": 2}.items() <= yaml.safe_load(
        kept.read_text()
    ).items()
    done = evalharness(environment, "run", "--config", kept, "-o", tmp_path / "run")
    assert "2 of 2" in done.stdout


def test_an_option_that_is_none_is_answered_with_the_one_that_was_meant(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run.yaml").write_text("model: oracle\nmax_token: 5\n")
    assert main(["run", "--config", str(tmp_path / "run.yaml")]) == 2
    assert "'max_tokens'?" in capsys.readouterr().err
    (tmp_path / "run.yaml").write_text("model: [a\n")
    assert main(["run", "--config", str(tmp_path / "run.yaml")]) == 2
    assert "line 2, column 1" in capsys.readouterr().err.splitlines()[-1]


def test_fields_that_the_harness_sets_are_not_further_ones() -> None:
    with pytest.raises(UserError, match=r"'temperature'.*\(--temperature\)"):
        make_config({"model": "http://h/v1", "extra_body": {"temperature": 1}})
    with pytest.raises(UserError, match="'messages'"):
        make_config({"model": "http://h/v1", "extra_body": '{"messages": []}'})


def test_what_changes_what_a_model_is_asked_is_part_of_a_runs_identity() -> None:
    plain = RunConfig.of(model="http://h/v1", model_name="m").identity()
    for name, value in (("system", "Play."), ("shots", 0), ("extra_body", '{"a": 1}'), ("draw", 3)):
        assert make_config({"model": "http://h/v1", "model_name": "m", name: value}).identity() != plain
    assert (
        RunConfig.of(model="oracle", system="Play.", shots=0).identity()
        == RunConfig.of(model="oracle").identity()
    )


def test_the_example_of_the_documentation_is_a_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CKPT", "runs/7")
    page = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text(encoding="utf-8")
    [example] = re.findall(r"^```yaml\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    (tmp_path / "run.yaml").write_text(example)
    config = make_config({}, tmp_path / "run.yaml")
    assert (config.policy.model, config.limits.time_limit, config.selection.draw) == (
        "runs/7/last",
        9000.0,
        20,
    )
    assert config.selection.tasks == "babyai,pddl:kind=gripper,sciworld:0-9"
