"""`evalharness refine` against a scripted model, and what its folder holds afterwards."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from chat_server import ChatServer
from scripted_model import MISTAKES, SCRIPT_MISTAKES, persona

from evalharness.cli import main
from evalharness.training.synthesis.synthesis_store import list_all_finished

ALL = [(script, mistake) for script in SCRIPT_MISTAKES for mistake in MISTAKES]
"""The personas of the scripted model: each makes one mistake of the script and one of the trajectory."""


def read_finished(folder: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """(passed, rejected) as records."""
    passed, rejected = list_all_finished(folder)
    return [line.read() for line in passed], [line.read() for line in rejected]


def write_personas(folder: Path, kinds: list[tuple[str, str]]) -> Path:
    path = folder / "personas.jsonl"
    path.write_text("".join(json.dumps({"persona": persona(*kind)}) + "\n" for kind in kinds))
    return path


async def refine(server: ChatServer, *arguments: object, status: int = 0) -> None:
    words = ["refine", *map(str, arguments), "--model", server.url, "--model-name", "toy"]
    assert await asyncio.to_thread(main, words) == status


async def make_scripts(
    server: ChatServer, folder: Path, kinds: list[tuple[str, str]], *more: object, status: int = 0
) -> Path:
    path = write_personas(folder, kinds)
    out = folder / "scripts"
    await refine(server, "scripts", "--personas", path, "-n", len(kinds), "-o", out, *more, status=status)
    return out


def signals(folder: Path) -> dict[str, list[str]]:
    """What the persona's text ends with -> the signals of its calls."""
    passed, rejected = read_finished(folder)
    return {
        record["persona"].split("<<")[1].rstrip(">"): record["signals"] for record in (*passed, *rejected)
    }


def summary(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "summary.json").read_text())
    return found


def manifest(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
    return found
