"""Making report pages and reading them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from evalharness.cli import main

SOLVED, NOTHING, HALF = (True, 1.0), (False, 0.0), (False, 0.5)
DESKTOP = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}


def edit_episodes(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Rewrite every stored episode."""
    path = folder / "episodes.jsonl"
    episodes = [json.loads(line) for line in path.read_text().splitlines()]
    for episode in episodes:
        change(episode)
    path.write_text("".join(json.dumps(episode) + "\n" for episode in episodes))


def report(folder: Path, target: Path) -> Path:
    assert main(["report", str(folder), "-o", str(target)]) == 0
    return target


def shown_rows(page: Page) -> list[str]:
    return page.locator(".rows .row .task").all_inner_texts()


def wait_for_view(page: Page, address: str) -> None:
    page.wait_for_selector(f'body[data-ready="{address}"]')
