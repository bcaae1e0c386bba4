"""The training environment: trl, peft and datasets in a small virtual environment that sees the server's packages.

The server's environment has torch and transformers (3 GB) already, and its pins must stay as they are: so a second
environment is laid over it with a `.pth` file, and nothing of the first is changed.
"""

from __future__ import annotations

import json
import shutil
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evalharness.base.errors import UserError
from evalharness.base.locks import exclusive
from evalharness.base.paths import home_folder, write_whole
from evalharness.base.stream import STEP, ToolError, run_streaming
from evalharness.models.serving.private import python_of
from evalharness.training.datasets.tokens import model_python

RECORD = "tune.json"
PINS = {"trl": "1.16.0", "peft": "0.21.2", "datasets": "5.2.0"}
"""What it is tested with. trl uses `labels` that are there already as they are since 1.7."""
DISK_BYTES = 1_500_000_000
"""Free space wanted: 0.4 GB measured, and downloads."""

# What the server's interpreter has, and where.
_ASK = """
import importlib.metadata, json, sysconfig
found = {d.metadata["Name"]: d.version for d in importlib.metadata.distributions() if d.metadata["Name"]}
print("evalharness: " + json.dumps({"packages": found, "folders": sorted({sysconfig.get_path("purelib"),
                                                                       sysconfig.get_path("platlib")})}))
"""

_VERIFY = """
import importlib.metadata, json, platform
import torch, transformers, accelerate, peft, datasets, trl
from trl import SFTConfig, SFTTrainer
names = ("trl", "peft", "datasets", "transformers", "accelerate", "torch")
print("evalharness: " + json.dumps({**{n: importlib.metadata.version(n) for n in names},
                                    "python": platform.python_version()}))
"""


class TuneInstallError(UserError):
    """There is no training environment, or it cannot be made; the message says what to do."""


@dataclass(frozen=True)
class TuneInstall:
    """A complete training environment."""

    environment: Path
    """The virtual environment's folder."""
    server: Path
    """The interpreter whose packages it sees."""
    versions: Mapping[str, str]
    """Of the packages that training depends on, and of Python."""
    installed_at: str
    """ISO 8601, UTC."""
    seconds: float
    fresh: bool = False
    """Made by this very call (not stored)."""

    @property
    def python(self) -> Path:
        return python_of(self.environment)


def tune_folder() -> Path:
    """`tune` in the home folder."""
    return home_folder() / "tune"


def read_tune_install(root: Path | None = None) -> TuneInstall | None:
    """The training environment that is there; None where there is none, or the server's below it is gone."""
    root = root or tune_folder()
    try:
        record = json.loads((root / RECORD).read_text(encoding="utf-8"))
        install = TuneInstall(
            environment=root / Path(record["environment"]).name,
            server=Path(record["server"]),
            versions={str(name): str(version) for name, version in record["versions"].items()},
            installed_at=str(record["installed_at"]),
            seconds=float(record["seconds"]),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return install if install.python.exists() and install.server.exists() else None


def require_tune_install() -> TuneInstall:
    """Raises TuneInstallError."""
    install = read_tune_install()
    if install is None:
        raise TuneInstallError(
            "training needs trl, peft and datasets beside the model server: evalharness tune install"
        )
    return install


def install_tune(
    *, on_line: Callable[[str], None], force: bool = False, root: Path | None = None
) -> TuneInstall:
    """Make the training environment, or answer with the one that is there already.

    One that lies over another server than the one in use now is made anew. Interrupted at any point it leaves the
    former state and litter that the next call removes. Raises UserError.
    """
    root = root or tune_folder()
    server = model_python()
    with exclusive(
        root / "install.lock", lambda: on_line(f"{STEP}another installation is running; waiting for it")
    ):
        there = read_tune_install(root)
        if there is not None and not force and there.server == server:
            return there
        _remove_unused(root, there)
        free = shutil.disk_usage(root).free
        if free < DISK_BYTES:
            raise TuneInstallError(
                f"the training environment needs {DISK_BYTES / 1e9:.1f} GB in {root}, {free / 1e9:.1f} GB are free; "
                "free some space, or set EVALHARNESS_HOME to a folder on a bigger disk"
            )
        environment = root / f"env-{uuid.uuid4().hex[:12]}"
        try:
            install = _build(environment, server, on_line)
        except BaseException:
            shutil.rmtree(environment, ignore_errors=True)
            raise
        record = asdict(install) | {"environment": environment.name, "server": str(server)}
        del record["fresh"]
        write_whole(root / RECORD, json.dumps(record, indent=2) + "\n")
        _remove_unused(root, install)
        return replace(install, fresh=True)


def uninstall_tune(root: Path | None = None) -> bool:
    """Remove the training environment; False when there was none."""
    root = root or tune_folder()
    if not root.exists():
        return False
    with exclusive(root / "install.lock"):
        (root / RECORD).unlink(missing_ok=True)
        _remove_unused(root, None)
    shutil.rmtree(root)
    return True


def _remove_unused(root: Path, install: TuneInstall | None) -> None:
    for folder in root.glob("env-*"):
        if install is None or folder != install.environment:
            shutil.rmtree(folder, ignore_errors=True)


def _build(environment: Path, server: Path, on_line: Callable[[str], None]) -> TuneInstall:
    began = time.monotonic()
    below = _answer(_run([server, "-I", "-c", _ASK], lambda line: None))
    on_line(f"{STEP}creating {environment} over {server}")
    # Without a pip of its own: the server's is seen too, and its setuptools is the one that vLLM pins.
    _run([server, "-I", "-m", "venv", "--without-pip", environment], on_line)
    python = python_of(environment)
    own = _answer(_run([python, "-I", "-c", _ASK], lambda line: None))["folders"]
    Path(own[0], "evalharness_server.pth").write_text("\n".join(below["folders"]) + "\n", encoding="utf-8")
    constraints = environment / "server-constraints.txt"
    constraints.write_text(
        "".join(f"{name}=={version}\n" for name, version in sorted(below["packages"].items())),
        encoding="utf-8",
    )
    wanted = [f"{name}=={version}" for name, version in PINS.items() if name not in below["packages"]]
    on_line(f"{STEP}installing {', '.join(wanted)}")
    pip: list[str | Path] = [python, "-I", "-m", "pip", "install", "--progress-bar", "off"]
    _run([*pip, "--constraint", constraints, *wanted], on_line)
    on_line(f"{STEP}verifying: importing trl, peft and datasets")
    versions = _answer(_run([python, "-I", "-c", _VERIFY], on_line))
    return TuneInstall(
        environment=environment,
        server=server,
        versions=versions,
        installed_at=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=round(time.monotonic() - began, 1),
    )


def _run(argv: list[str | Path], on_line: Callable[[str], None]) -> list[str]:
    try:
        return run_streaming(argv, on_line)
    except ToolError as failed:
        # pip names conflicts of the server's own set (vLLM misses torchvision on purpose) and goes on.
        errors = [line for line in failed.output if "rror" in line] or failed.output[-1:]
        reason = errors[-1].strip() if errors else str(failed)
        raise TuneInstallError(
            f"the installation failed: {reason[:500]}. Run the same command again to start over"
        ) from failed


def _answer(output: list[str]) -> Any:
    line = next(line for line in reversed(output) if line.startswith("evalharness: "))
    return json.loads(line.removeprefix("evalharness: "))
