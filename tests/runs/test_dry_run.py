"""`run --dry-run`: what would be played, asked, started and written; and that nothing is."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from chat_server import ChatServer
from command_line import evalharness, run_compass
from empty_checkpoint import make_empty_checkpoint
from fake_vllm import make_fake_vllm


async def test_it_shows_what_is_played_and_what_is_left(environment: dict[str, str], tmp_path: Path) -> None:
    run = tmp_path / "run"
    async with ChatServer().running() as server:
        model = ("--model", server.url, "--model-name", "toy")
        dry = await asyncio.to_thread(
            run_compass, environment, run, *model, "--limit", 4, "--dry-run", "--json", tmp_path / "plan.json"
        )
        assert dry.returncode == 0, dry.stderr
        assert server.requests == [], "no reply was asked for"
        assert not run.exists()
        plan = json.loads((tmp_path / "plan.json").read_text())
        [family] = plan["families"]
        assert (family["tasks"], family["left"], plan["refused"]) == (4, 4, False)
        assert plan["state"].startswith("new; ")
        assert "run folder" in dry.stdout
        assert server.url in dry.stdout

        played = await asyncio.to_thread(
            run_compass, environment, run, *model, "--limit", 4, "--max-turns", 30
        )
        assert played.returncode == 0, played.stderr
        asked = sum(len(message["content"]) for message in server.requests[0]["messages"]) / 4
        assert family["prompt_tokens"] == pytest.approx(4 * 30 * asked + 4 * 120 * 435, rel=0.05)

        dry = await asyncio.to_thread(
            run_compass,
            environment,
            run,
            *model,
            "--limit",
            4,
            "--samples",
            3,
            "--dry-run",
            "--max-turns",
            30,
        )
        assert "4 of 12 episodes finished, 8 to play" in " ".join(dry.stdout.split())
        dry = await asyncio.to_thread(run_compass, environment, run, *model, "--seed", 5, "--dry-run")
    assert dry.returncode == 2
    assert "--seed: 0 there, 5 now" in dry.stdout


def test_it_shows_the_servers_command_line_and_starts_none(
    environment: dict[str, str], tmp_path: Path
) -> None:
    model, program = make_empty_checkpoint(tmp_path / "model"), make_fake_vllm(tmp_path / "bin")
    own = {**environment, "FAKE_VLLM_LOG": str(tmp_path / "starts")}
    words = ("--model", model, "--vllm", program, "--vllm-args", "--seed 7", "--dry-run")
    done = run_compass(own, tmp_path / "run", *words)
    assert done.returncode == 0, done.stderr
    [line] = [line for line in done.stdout.splitlines() if line.startswith("server: ")]
    for part in (str(program), str(model), "--served-model-name model", "--port PORT", "--seed 7"):
        assert part in line
    refused = run_compass(own, tmp_path / "other", *words[:5], "--port 1", "--dry-run")
    assert refused.returncode == 2
    assert "--port" in refused.stderr
    assert not (tmp_path / "starts").exists()


def test_a_server_that_is_down_and_a_script_are_no_obstacle(
    environment: dict[str, str], tmp_path: Path
) -> None:
    down = run_compass(
        environment, tmp_path / "a", "--model", "http://127.0.0.1:9/v1", "--model-name", "x", "--dry-run"
    )
    assert down.returncode == 0
    assert "http://127.0.0.1:9/v1" in down.stdout
    script = evalharness(
        environment, "run", "--model", "oracle", "--suite", "open", "--tasks", "compass", "--dry-run"
    )
    assert "no tokens" in script.stdout


def test_a_login_node_without_vllm_gets_tokens_of_a_whole_study(
    environment: dict[str, str], tmp_path: Path
) -> None:
    model = make_empty_checkpoint(tmp_path / "model")
    no_vllm = {**environment, "PATH": "/usr/bin:/bin"}
    words = (
        "bon",
        "--suite",
        "open",
        "--tasks",
        "compass",
        "-n",
        3,
        "-o",
        tmp_path / "study",
        "--model",
        model,
    )
    plan = tmp_path / "plan.json"
    done = evalharness(no_vllm, *words, "--dry-run", "--json", plan)
    assert done.returncode == 0, done.stderr
    assert "evalharness server install" in done.stdout
    runs = json.loads(plan.read_text())["runs"].values()
    prompt, completion = (
        sum(round(family[key]) for run in runs for family in run["families"])
        for key in ("prompt_tokens", "completion_tokens")
    )
    [whole] = [line for line in done.stdout.splitlines() if line.startswith("all 2 runs: ")]
    assert f"{prompt / 1e6:.2f} M" in whole
    assert f"{completion / 1e6:.2f} M" in whole
    assert not (tmp_path / "study").exists()


def test_of_a_study_of_seeds_nothing_is_played_either(environment: dict[str, str], tmp_path: Path) -> None:
    study = tmp_path / "study"
    dry = run_compass(
        environment,
        study,
        "--model",
        "random",
        "--seed",
        "0,3",
        "--dry-run",
        "--json",
        tmp_path / "plan.json",
    )
    assert dry.returncode == 0, dry.stderr
    assert not study.exists()
    assert "2 runs" in dry.stdout
    runs = json.loads((tmp_path / "plan.json").read_text())["runs"]
    assert {name: run["folder"] for name, run in runs.items()} == {
        name: str(study / name) for name in ("seed-0", "seed-3")
    }
