"""Other groups' protocols: what they stand for, and runs under them."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path
from typing import Any

import pytest
from chat_server import ChatServer
from command_line import evalharness
from made_runs import make_run

from evalharness.cli import main
from evalharness.config import RunConfig
from evalharness.protocol.published import DEFAULT, load_protocol, protocol_names
from evalharness.records.store import read_episodes, read_manifest
from evalharness.results.summarize import summarize
from evalharness.results.terminal.table import notes

MODEL = "http://127.0.0.1:9/v1"


# Every protocol


@pytest.mark.parametrize("name", protocol_names())
def test_every_protocol_stands_for_options_of_a_run(name: str) -> None:
    protocol = load_protocol(name)
    assert protocol.name == name
    config = RunConfig.of(model=MODEL, protocol=name)
    assert config.agent.chosen.name == protocol.agent
    assert config.agent.max_turns in (protocol.turns, None)
    if name != DEFAULT:
        assert "changed" not in config.identity()["protocol"]


def test_a_script_plays_a_protocols_tasks_and_turns(capsys: pytest.CaptureFixture[str]) -> None:
    command = [
        "run",
        "--model",
        "oracle",
        "--protocol",
        "verl-agent",
        "--suite",
        "open",
        "--limit",
        "1",
        "--dry-run",
    ]
    assert main(command) == 0
    assert "at most 50 turns" in " ".join(capsys.readouterr().out.split())


def test_a_repeated_draw_says_how_many_different_games_it_reaches(tmp_path: Path) -> None:
    outcomes = [(n < 70, 1.0) for n in range(140)]
    run = make_run(tmp_path / "all", {"alfworld": outcomes}, protocol="verl-agent", own_words=True)
    [line] = [line for line in notes(summarize(run), {}) if "128 games" in line]
    assert " 84 " in line
    assert "95 of 100" in line
    some = make_run(tmp_path / "some", {"alfworld": outcomes[:12]}, protocol="verl-agent", own_words=True)
    [line] = [line for line in notes(summarize(some), {}) if "128 games" in line]
    assert " 84 " in line
    assert "95 of 100" not in line


def test_options_override_the_protocol_and_are_marked() -> None:
    config = RunConfig.of(
        model=MODEL, protocol="verl-agent", max_turns=8, temperature=0.0, agent_option={"history": "5"}
    )
    assert config.identity()["protocol"]["changed"] == {
        "max_turns": 50, "temperature": 0.4, "agent_option.history": 2
    }  # fmt: skip
    other = RunConfig.of(model=MODEL, protocol="verl-agent", agent="window", agent_option={"history": 1})
    assert other.agent.chosen.name == "window"
    assert other.identity()["protocol"]["changed"] == {"agent": "verl-agent"}
    again = RunConfig.of(**config.options())
    assert again.identity() == config.identity()


def test_protocol_and_wording_are_part_of_a_runs_identity_and_folder() -> None:
    plain, theirs, ours = (
        RunConfig.of(model=MODEL, **more)
        for more in ({}, {"protocol": "tales"}, {"protocol": "tales", "own_words": True})
    )
    assert len({str(config.folder()) for config in (plain, theirs, ours)}) == 3
    assert "tales" in theirs.folder().name
    assert (theirs.identity()["protocol"]["texts"], "texts" in ours.identity()["protocol"]) == (
        "tales",
        False,
    )
    assert ours.identity()["protocol"]["own_words"] is True


def test_what_is_no_protocol_is_named_with_the_nearest_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--model", MODEL, "--protocol", "verlagent"]) == 2
    assert "'verl-agent'?" in capsys.readouterr().err
    assert main(["run", "--model", MODEL, "--own-words"]) == 2
    assert "--protocol" in capsys.readouterr().err
    assert main(["data", "protocols", "show", "nothing.yaml"]) == 2
    assert "nothing.yaml" in capsys.readouterr().err


# Runs


async def played(
    environment: dict[str, str], folder: Path, *options: object, says: str
) -> tuple[subprocess.CompletedProcess[str], list[dict[str, Any]]]:
    async with ChatServer(answer=lambda request: says).running() as server:
        done = await asyncio.to_thread(
            evalharness, environment, "run", "--model", server.url, "--model-name", "toy", "--suite", "open",
            "--tasks", "compass:0-2", "--max-turns", 4, "-o", folder, *options,
        )  # fmt: skip
        return done, server.requests


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("verl-agent", "<think>t</think><action>turn right</action>"),
        ("agentboard", "Action: turn right"),
        ("agentgym-babyai", "Thought:\nt\n\nAction:\nturn right"),
        ("tales", "turn right"),
    ],
)
async def test_a_run_in_our_wording_is_verified_and_says_so(
    name: str, says: str, environment: dict[str, str], tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    done, requests = await played(environment, folder, "--protocol", name, "--own-words", says=says)
    assert done.returncode == 0, done.stderr
    protocol = load_protocol(name)
    assert f"protocol {name} (our wording; max_turns=4, not {protocol.turns}" in " ".join(done.stdout.split())
    number = "has no number of its own" if protocol.score == "none" else "the protocol's own number"
    assert number in done.stdout
    assert ("128 games" in done.stdout) == (name == "verl-agent")
    assert requests[-1]["max_tokens"] == protocol.sampling.max_tokens
    assert requests[-1]["temperature"] == protocol.sampling.temperature
    assert read_manifest(folder).config.agent_name == protocol.agent
    assert {turn.action for episode in read_episodes(folder) for turn in episode.turns} == {"turn right"}
    checked = await asyncio.to_thread(evalharness, environment, "verify", folder)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    page = tmp_path / "r.html"
    shown = await asyncio.to_thread(evalharness, environment, "report", folder, "-o", page)
    assert shown.returncode == 0, shown.stderr


async def test_best_of_n_samples_and_plays_greedily_under_a_protocol(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """Sampling is what a protocol states, too: the greedy run and the samples each change it."""
    async with ChatServer(answer=lambda request: "turn right").running() as server:
        done = await asyncio.to_thread(
            evalharness, environment, "bon", "--model", server.url, "--protocol", "tales", "--own-words",
            "--suite", "open", "--tasks", "compass", "-n", 2, "--limit", 2, "--max-turns", 2, "-o", tmp_path / "bon",
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    greedy, samples = (read_manifest(tmp_path / "bon" / name).config for name in ("greedy", "samples"))
    assert (greedy.temperature, samples.temperature, samples.samples) == (0.0, 1.0, 2)


async def test_without_the_texts_a_run_is_refused_before_anything_is_asked(
    environment: dict[str, str], tmp_path: Path
) -> None:
    done, requests = await played(environment, tmp_path / "run", "--protocol", "tales", says="look")
    assert done.returncode == 2
    assert "evalharness data protocols import tales PATH" in done.stderr
    assert not requests


async def test_a_sweep_over_protocols_pairs_each_with_the_first(
    environment: dict[str, str], tmp_path: Path
) -> None:
    async with ChatServer(answer=lambda request: "Action: turn right").running() as server:
        common = (
            "sweep", "--model", server.url, "--model-name", "toy", "--over", "protocol=agentrefine,verl-agent,tales",
            "--own-words", "--suite", "open", "--tasks", "compass:0-2", "-o", tmp_path / "study",
        )  # fmt: skip
        done = await asyncio.to_thread(evalharness, environment, *common, "--max-turns", 3)
        refused = await asyncio.to_thread(evalharness, environment, *common)
    assert done.returncode == 0, done.stderr
    shown = " ".join(done.stdout.split())
    assert "protocol tales (our wording" in shown
    assert "B against A" in shown
    assert refused.returncode == 2
    assert "--max-turns differs (agentrefine 30, verl-agent 50, tales 100)" in refused.stderr
