"""Private virtual environments for packages that conflict with the simulators': the model server, the trainer.

Each private environment has a folder. It contains the virtual environment in use (`env-...`) and a record that names
it. The record is written last, so an installation is complete if it has a record. A new environment is built under a
new name, since virtual environments cannot be moved; then the record is replaced in one step. An interrupted
installation leaves a folder without a record, which the next installation removes.
"""

from __future__ import annotations

import json
import shutil
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

from evalharness.base.errors import UserError
from evalharness.base.locks import exclusive
from evalharness.base.paths import write_whole
from evalharness.base.stream import STEP

Kind = Literal["cpu", "gpu"]

RECORD = "server.json"
_LOCK = "install.lock"


@dataclass(frozen=True, kw_only=True)
class Install:
    """A complete private environment."""

    environment: Path
    """The virtual environment's folder."""
    installed_at: str
    """ISO 8601, UTC."""
    seconds: float
    """Duration of the installation."""
    fresh: bool = False
    """Whether this call made the environment (not stored)."""

    @property
    def executable(self) -> Path:
        """The environment's Python."""
        return python_of(self.environment)


@dataclass(frozen=True, kw_only=True)
class ServerInstall(Install):
    kind: Kind
    vllm: str
    """Version of vLLM."""
    torch: str
    python: str
    """Version of the environment's Python."""


I = TypeVar("I", bound=Install)  # noqa: E741


def python_of(environment: Path) -> Path:
    """Return the interpreter of a virtual environment."""
    return environment / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def pip_install(python: Path) -> list[str | Path]:
    """Return the pip command without requirements. Python compiles modules when they are imported: compiling all
    modules took half of a server's installation time. If Python may not write bytecode, pip compiles them."""
    compiled = [] if sys.dont_write_bytecode else ["--no-compile"]
    return [python, "-I", "-m", "pip", "install", "--progress-bar", "off", *compiled]


def read_install(root: Path) -> ServerInstall | None:
    """Read the installation in `root`; None if there is no complete one."""
    return read_record(root / RECORD, ServerInstall)


def read_record(path: Path, kind: type[I]) -> I | None:
    """Read the installation that `path` records; None if the record is damaged, or the environment is missing."""
    from pydantic import TypeAdapter

    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        there = {"environment": path.parent / Path(record["environment"]).name}
        install = TypeAdapter(kind).validate_python(record | there)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return install if install.executable.exists() else None


def write_record(path: Path, install: Install) -> None:
    """Make `install` the installation in use, atomically and durably."""
    record = asdict(install) | {"environment": install.environment.name}
    del record["fresh"]
    write_whole(path, json.dumps(record, indent=2, default=str) + "\n")


@contextmanager
def installing(root: Path, on_line: Callable[[str], None]) -> Iterator[None]:
    """Wait until no other installation runs, and hold the lock."""
    waiting = f"{STEP}another installation is running; waiting for it"
    with exclusive(root / _LOCK, lambda: on_line(waiting)):
        yield


def replace_install(
    path: Path, there: I | None, build: Callable[[Path], I], *, needs: Callable[[], None]
) -> I:
    """Replace the installation `there` by the installation that `build` makes in a new folder. `there` stays in use
    until the new installation is complete. `needs` raises an error if the disk has too little space for `build`."""
    root = path.parent
    _remove_unused(root, there)
    needs()
    environment = root / f"env-{uuid.uuid4().hex[:12]}"
    try:
        install = build(environment)
    except BaseException:
        shutil.rmtree(environment, ignore_errors=True)
        raise
    write_record(path, install)
    _remove_unused(root, install)
    return replace(install, fresh=True)


def uninstall(path: Path) -> bool:
    """Remove the virtual environment that the file `path` describes, and the folder of that file. Return False if there
    is no such folder."""
    root = path.parent
    if not root.exists():
        return False
    with exclusive(root / _LOCK):
        path.unlink(missing_ok=True)
        _remove_unused(root, None)
    shutil.rmtree(root)
    return True


def require_space(root: Path, wanted: int, what: str, error: type[UserError]) -> None:
    """Raise `error` if fewer than `wanted` bytes are free."""
    free = shutil.disk_usage(root).free
    if free < wanted:
        size = f"{wanted / 1e9:.1f}".removesuffix(".0")
        raise error(
            f"{what} needs {size} GB in {root}, but {free / 1e9:.1f} GB are free; "
            "free some space, or set EVALHARNESS_HOME to a folder on a bigger disk"
        )


def answer_of(output: Sequence[str]) -> Any:
    """Parse the JSON in the last line of a script's output that begins with `evalharness: `."""
    line = next(line for line in reversed(output) if line.startswith("evalharness: "))
    return json.loads(line.removeprefix("evalharness: "))


def _remove_unused(root: Path, install: Install | None) -> None:
    for folder in root.glob("env-*"):
        if install is None or folder != install.environment:
            shutil.rmtree(folder, ignore_errors=True)
