"""The training environment, for tests that really train, and a tiny model for them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from evalharness.paths import server_folder
from evalharness.server.private import read_install
from evalharness.tune.install import TuneInstall, install_tune, read_tune_install


@pytest.fixture(scope="session")
def server_python() -> Path:
    """Python of the model server's environment. Skips without one, but fails where CI promises it."""
    install = read_install(server_folder())
    if install is None:
        reason = "no private vLLM; install it with: evalharness server install --cpu"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return install.executable


@pytest.fixture(scope="session")
def tuning(server_python: Path) -> TuneInstall:
    """The training environment. Skips without one; on CI it is made, in the user's own place."""
    install = read_tune_install()
    if install is None or install.server != server_python:
        if not os.environ.get("CI"):
            pytest.skip("no training environment; install it with: evalharness tune install")
        install = install_tune(on_line=lambda line: None)
    return install


@pytest.fixture(scope="session")
def tiny_checkpoint(server_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny random Llama with 4,096 positions."""
    from tiny_model import make_tiny_checkpoint

    return make_tiny_checkpoint(tmp_path_factory.mktemp("tiny") / "model", server_python)
