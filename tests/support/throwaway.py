"""Environments of their own for packages whose pins do not go together with ours, made for one test session."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest


def _run(*command: object) -> None:
    # As pip does, uv is to trust what the machine trusts: a proxy's certificate, for instance.
    environment = {"UV_SYSTEM_CERTS": "1", **os.environ}
    done = subprocess.run(
        list(map(str, command)), env=environment, capture_output=True, text=True, timeout=420, check=False
    )
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}"


def _uv() -> list[str]:
    """uv installs seventy packages in the time that pip takes for five; it is in the extra `dev`."""
    beside = Path(sys.executable).with_name("uv")
    found = str(beside) if beside.exists() else shutil.which("uv")
    assert found, "uv is missing: pip install -r requirements/dev.txt"
    return [found]


def python_of_at_least(minor: int) -> str:
    """An interpreter 3.`minor` or newer, from PATH or pyenv; skips where the machine has none."""
    if sys.version_info >= (3, minor):
        return sys.executable
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for newer in range(minor, minor + 4):
        on_path = shutil.which(f"python3.{newer}")
        for found in [*([on_path] if on_path else []), *sorted(pyenv.glob(f"3.{newer}.*/bin/python"))]:
            # pyenv's stand-ins on PATH are there for versions that are not chosen, and fail.
            if subprocess.run([found, "-c", ""], capture_output=True, check=False).returncode == 0:
                return str(found)
    pytest.skip(f"no Python 3.{minor} or newer on this machine")


def make(folder: Path, *packages: Sequence[str], python: str = sys.executable) -> Path:
    """A virtual environment with the packages, each group in one go; returns its interpreter."""
    _run(*_uv(), "venv", "-q", "--python", python, folder)
    interpreter = folder / "bin" / "python"
    for group in packages:
        _run(*_uv(), "pip", "install", "-q", "--python", interpreter, *group)
    return interpreter


def nemo_gym(folder: Path, *more: str) -> Path:
    """An environment with NeMo Gym 0.7. It asks for Python 3.13.14; 3.13.0 runs all of it that the tests use."""
    asked = ["--python-version", "3.13.14", "nemo-gym==0.7.0", *more]
    return make(folder, asked, python=python_of_at_least(13))


def overlay(folder: Path, *packages: str) -> Path:
    """A folder for PYTHONPATH: the packages over those of this interpreter."""
    _run(*_uv(), "pip", "install", "-q", "--python", sys.executable, "--target", folder, *packages)
    return folder


def layered(folder: Path, below: Path, *packages: str) -> Path:
    """An environment over that of the interpreter `below`: what it has, and these packages without their own needs."""
    _run(*_uv(), "venv", "-q", "--python", below, folder)
    interpreter = folder / "bin" / "python"
    _run(*_uv(), "pip", "install", "-q", "--no-deps", "--python", interpreter, *packages)
    where = "import sys; print(*[path for path in sys.path if path.endswith('-packages')], sep='\\n')"
    own, those_below = (
        subprocess.run([python, "-I", "-c", where], capture_output=True, text=True, check=True).stdout
        for python in (interpreter, below)
    )
    (Path(own.splitlines()[0]) / "below.pth").write_text(those_below)
    return interpreter


def build(folder: Path, *what: object) -> Path:
    """The one file that `uv build WHAT` makes."""
    _run(*_uv(), "build", "-q", "-o", folder, *what)
    (made,) = (path for path in folder.iterdir() if path.name != ".gitignore")
    return made
