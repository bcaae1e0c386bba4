"""`evalharness tune` in a process of its own, and what it leaves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def command(*words: str | Path, environment: dict[str, str] | None = None) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "evalharness", "tune", *map(str, words)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, **(environment or {})},
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def all_weights(base: Path, data: Path, *more: str | Path) -> list[str | Path]:
    """Options of two epochs in float32 on the CPU, with a checkpoint every other step."""
    return [
        "--model", base, "--data", data, "--epochs", "2", "--save-every", "2", "--cpu", "--dtype", "float32",
        "--method", "full", *more,
    ]  # fmt: skip


def trained(*options: str | Path) -> None:
    with command(*options) as process:
        talk, _ = process.communicate()
        assert process.returncode == 0, talk


def steps(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
