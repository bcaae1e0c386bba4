"""The private environment's record: `server.json`, written last, so that it alone says "complete".

Layout of the root: `server.json` names the folder of the environment in use (`env-...`). An environment is
built under a new name and the record replaced in one step: an interrupted installation leaves a folder
nobody names, which the next installation removes. (Virtual environments cannot be moved once made.)
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from evalharness.base.paths import write_whole

Kind = Literal["cpu", "gpu"]

RECORD = "server.json"


@dataclass(frozen=True)
class ServerInstall:
    """A complete private environment."""

    kind: Kind
    vllm: str
    """Version of vLLM."""
    torch: str
    python: str
    """Version of the environment's Python."""
    environment: Path
    """The virtual environment's folder."""
    installed_at: str
    """ISO 8601, UTC."""
    seconds: float
    """How long the installation took."""
    fresh: bool = False
    """Made by this very call (not stored)."""

    @property
    def executable(self) -> Path:
        return python_of(self.environment)


def python_of(environment: Path) -> Path:
    """The interpreter of a virtual environment."""
    return environment / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def read_install(root: Path) -> ServerInstall | None:
    """The installation that `root` holds; None when there is none or it was never completed."""
    try:
        record = json.loads((root / RECORD).read_text(encoding="utf-8"))
        install = ServerInstall(
            kind="cpu" if record["kind"] == "cpu" else "gpu",
            vllm=str(record["vllm"]),
            torch=str(record["torch"]),
            python=str(record["python"]),
            environment=root / Path(record["environment"]).name,
            installed_at=str(record["installed_at"]),
            seconds=float(record["seconds"]),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return install if install.executable.exists() else None


def write_install(root: Path, install: ServerInstall) -> None:
    """Make `install` the one in use, in one step and durably."""
    record = asdict(install) | {"environment": install.environment.name}
    del record["fresh"]
    write_whole(root / RECORD, json.dumps(record, indent=2) + "\n")
