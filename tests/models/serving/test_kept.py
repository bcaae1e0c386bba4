"""A server that stays between runs: runs find it by what it serves, and it ends when nobody uses it."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import psutil
import pytest
from command_line import evalharness, run_compass
from empty_checkpoint import make_empty_checkpoint
from fake_vllm import make_fake_vllm, set_skill

from evalharness.models.serving.kept import Kept, read_kept

PLAY = ("--max-turns", 2, "--concurrency", 4, "--limit", 4)


@pytest.fixture
def own(environment: dict[str, str], tmp_path: Path) -> Iterator[dict[str, str]]:
    """Variables with a stand-in for vLLM. Whatever a test leaves is stopped."""
    program = make_fake_vllm(tmp_path / "bin")
    variables = {**environment, "FAKE_VLLM_LOG": str(tmp_path / "starts"), "EVALHARNESS_VLLM": str(program)}
    yield variables
    evalharness(variables, "server", "stop", "--all")


def make_model(tmp_path: Path, name: str = "model") -> Path:
    return set_skill(make_empty_checkpoint(tmp_path / name), "north east")


def starts(tmp_path: Path) -> int:
    path = tmp_path / "starts"
    return len(path.read_text().splitlines()) if path.exists() else 0


def kept(own: dict[str, str]) -> list[dict[str, Any]]:
    done = evalharness(own, "server", "status", "--json", "-")
    found: list[dict[str, Any]] = json.loads(done.stdout)["kept"]
    return found


def test_runs_of_the_very_same_use_the_server_that_is_there(own: dict[str, str], tmp_path: Path) -> None:
    model = make_model(tmp_path)
    started = evalharness(own, "server", "start", model)
    assert started.returncode == 0, started.stderr
    assert "vLLM is ready after" in started.stderr
    [one] = kept(own)
    assert one["base_url"].startswith("http://127.0.0.1:")
    assert starts(tmp_path) == 1

    again = evalharness(own, "server", "start", model)
    assert "already there" in again.stdout

    copy = tmp_path / "elsewhere"  # the same checkpoint by its hash, wherever it lies
    subprocess.run(["cp", "-r", model, copy], check=True)
    for name, which in (("a", model), ("b", model), ("c", copy)):
        done = run_compass(own, tmp_path / name, "--model", which, *PLAY)
        assert done.returncode == 0, done.stderr
        assert (
            json.loads((tmp_path / name / "manifest.json").read_text())["identity"]["model"]
            == one["identity"]
        )
    assert starts(tmp_path) == 1

    done = run_compass(own, tmp_path / "d", "--model", model, "--vllm-args", "--seed 1", *PLAY)
    assert done.returncode == 0, done.stderr
    assert starts(tmp_path) == 2, "another one is started for other arguments"

    keeper = psutil.Process(one["keeper_pid"])
    below = keeper.children(recursive=True)
    assert below
    stopped = evalharness(own, "server", "stop", model)
    assert stopped.returncode == 0, stopped.stderr
    assert not psutil.wait_procs([keeper, *below], timeout=20)[1]
    assert kept(own) == []
    assert run_compass(own, tmp_path / "e", "--model", model, *PLAY).returncode == 0
    assert starts(tmp_path) == 3


@pytest.mark.parametrize("idle", [0.02, 0.0001])
def test_a_server_that_nobody_uses_ends_by_itself(own: dict[str, str], tmp_path: Path, idle: float) -> None:
    """Also before the command that started it has looked again: that it was ready is what counts."""
    started = evalharness(own, "server", "start", make_model(tmp_path), "--idle", idle)
    assert started.returncode == 0, started.stderr
    for one in kept(own):
        with contextlib.suppress(psutil.NoSuchProcess):  # it has ended since
            psutil.Process(one["keeper_pid"]).wait()
    assert kept(own) == []


def test_a_server_whose_keeper_was_killed_is_gone_and_forgotten(own: dict[str, str], tmp_path: Path) -> None:
    model = make_model(tmp_path)
    evalharness(own, "server", "start", model)
    [one] = kept(own)
    keeper = psutil.Process(one["keeper_pid"])
    below = keeper.children(recursive=True)
    keeper.kill()
    assert not psutil.wait_procs(below, timeout=30)[1]
    assert kept(own) == []
    assert run_compass(own, tmp_path / "run", "--model", model, *PLAY).returncode == 0


def test_what_cannot_be_kept_is_refused_in_a_line(own: dict[str, str], tmp_path: Path) -> None:
    for words, said in (
        (("start", "oracle"), "needs no server"),
        (("start", tmp_path / "nowhere"), "no such model folder"),
        (("start", "demo", "--idle", "0"), "--idle"),
        (("stop", "demo"), "no kept server of demo"),
    ):
        done = evalharness(own, "server", *words)
        assert done.returncode == 2
        assert said in done.stderr
        assert "Traceback" not in done.stderr
    assert starts(tmp_path) == 0


def test_a_server_that_does_not_start_says_why_and_leaves_nothing(
    own: dict[str, str], tmp_path: Path
) -> None:
    broken = tmp_path / "bin" / "broken"
    broken.write_text("#!/bin/sh\necho 'ValueError: too little of everything' >&2\nexit 3\n")
    broken.chmod(0o755)
    done = evalharness(own, "server", "start", make_model(tmp_path), "--vllm", broken)
    assert done.returncode == 2
    assert "vLLM did not start (exit status 3" in done.stderr
    assert kept(own) == []


def test_a_damaged_file_of_a_kept_server_is_none(tmp_path: Path) -> None:
    kept = Kept(
        key="k", model="m", served="m", served_name="m", identity={}, base_url="http://127.0.0.1:1/v1", version=None,
        argv=[], max_model_len=1, keeper_pid=os.getpid(), keeper_started=psutil.Process().create_time(), started=0.0,
        idle_s=1.0, log="",
    )  # fmt: skip
    path = tmp_path / "k.json"
    path.write_text(json.dumps(asdict(kept)))
    assert read_kept(path) == kept
    others = [json.dumps(asdict(kept) | {"keeper_pid": pid}) for pid in ("one", -5, 10**30)]
    for damaged in ("", "[]", '{"key": "k"}', *others):
        path.write_text(damaged)
        assert read_kept(path) is None
