"""The training environment, for tests that really train."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from evalharness.training.tune.install import TuneInstall, install_tune, read_tune_install


@pytest.fixture(scope="session")
def tuning(server_python: Path) -> TuneInstall:
    """The training environment. Skips without one; on CI it is made, in the user's own place."""
    install = read_tune_install()
    if install is None or install.server != server_python:
        if not os.environ.get("CI"):
            pytest.skip("no training environment; install it with: evalharness tune install")
        install = install_tune(on_line=lambda line: None)
    return install
