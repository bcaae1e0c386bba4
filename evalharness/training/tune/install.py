"""Install the training environment: trl, peft and datasets, on top of the model server's packages.

The server's environment has torch and transformers (3 GB) in pinned versions. The training environment reads these
packages through a `.pth` file, so they are neither installed twice nor changed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from evalharness.base.errors import UserError
from evalharness.base.paths import home_folder
from evalharness.base.stream import STEP, ToolError, run_streaming
from evalharness.models.serving.find import server_python
from evalharness.models.serving.private import (
    Install,
    answer_of,
    installing,
    pip_install,
    python_of,
    read_record,
    replace_install,
    require_space,
    uninstall,
)

RECORD = "tune.json"
PINS = {"trl": "1.16.0", "peft": "0.21.2", "datasets": "5.2.0"}
"""The tested versions. The data has a column `labels`, which trl uses unchanged since version 1.7."""
DISK_BYTES = 1_500_000_000
"""Required free space. The installed packages have 0.4 GB; the rest is for downloads during the installation."""

# Print the names, versions and folders of an interpreter's packages.
_ASK = """
import importlib.metadata, json, sysconfig
packages = {d.metadata["Name"]: d.version for d in importlib.metadata.distributions() if d.metadata["Name"]}
print("evalharness: " + json.dumps({"packages": packages, "folders": sorted({sysconfig.get_path("purelib"),
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
    """The training environment is missing or cannot be installed. The message says what to do."""


@dataclass(frozen=True, kw_only=True)
class TuneInstall(Install):
    server: Path
    """The Python interpreter of the model server's environment."""
    versions: Mapping[str, str]
    """Versions of Python and of the packages on which a training depends."""

    @property
    def python(self) -> Path:
        return self.executable


def tune_folder() -> Path:
    """Return the folder of the training environment."""
    return home_folder() / "tune"


def read_tune_install(root: Path | None = None) -> TuneInstall | None:
    """Return the installed training environment; None if it is missing or if its server environment was removed."""
    install = read_record((root or tune_folder()) / RECORD, TuneInstall)
    return install if install is not None and install.server.exists() else None


def require_tune_install() -> TuneInstall:
    """Return the installed training environment. Raises TuneInstallError if it is missing."""
    install = read_tune_install()
    if install is None:
        raise TuneInstallError(
            "training needs trl, peft and datasets beside the model server: evalharness tune install"
        )
    return install


def install_tune(*, on_line: Callable[[str], None], force: bool = False) -> TuneInstall:
    """Install the training environment, or return the installed one.

    An environment that belongs to another server environment is replaced. If the installation is interrupted, the
    previous environment stays usable, and the next call removes incomplete files. Raises UserError.
    """
    root = tune_folder()
    server = server_python("models are trained")
    with installing(root, on_line):
        there = read_tune_install(root)
        if there is not None and not force and there.server == server:
            return there
        return replace_install(
            root / RECORD,
            there,
            lambda environment: _build(environment, server, on_line),
            needs=lambda: require_space(root, DISK_BYTES, "the training environment", TuneInstallError),
        )


def uninstall_tune() -> bool:
    """Remove the training environment. Return False if there was none."""
    return uninstall(tune_folder() / RECORD)


def _build(environment: Path, server: Path, on_line: Callable[[str], None]) -> TuneInstall:
    began = time.monotonic()
    below = answer_of(_run([server, "-I", "-c", _ASK], lambda line: None))
    on_line(f"{STEP}creating {environment} over {server}")
    # Do not install pip: the server's pip is visible, with the setuptools version that vLLM requires.
    _run([server, "-I", "-m", "venv", "--without-pip", environment], on_line)
    python = python_of(environment)
    own = answer_of(_run([python, "-I", "-c", _ASK], lambda line: None))["folders"]
    Path(own[0], "evalharness_server.pth").write_text("\n".join(below["folders"]) + "\n", encoding="utf-8")
    constraints = environment / "server-constraints.txt"
    constraints.write_text(
        "".join(f"{name}=={version}\n" for name, version in sorted(below["packages"].items())),
        encoding="utf-8",
    )
    packages = [f"{name}=={version}" for name, version in PINS.items() if name not in below["packages"]]
    on_line(f"{STEP}installing {', '.join(packages)}")
    _run([*pip_install(python), "--constraint", constraints, *packages], on_line)
    on_line(f"{STEP}verifying: importing trl, peft and datasets")
    versions = answer_of(_run([python, "-I", "-c", _VERIFY], on_line))
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
        # pip may also report conflicts in the server's environment (vLLM without torchvision), but they are no errors.
        raise TuneInstallError(
            f"the installation failed: {failed.reason[:500]}. Run the same command again to start over"
        ) from failed
