"""A browser, and pages of real runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import chromium, clean_page, visit
from command_line import evalharness, run_compass, surroundings
from playwright.sync_api import Browser, Page

from .pages import DESKTOP


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def compass(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Real runs of the example environment, and a page of each and of both."""
    folder = tmp_path_factory.mktemp("compass")
    environment = surroundings(folder)
    sampled = run_compass(environment, folder / "random", "--model", "random", "--samples", 3)
    solved = run_compass(environment, folder / "oracle", "--model", "oracle")
    assert (sampled.returncode, solved.returncode) == (0, 0), sampled.stderr + solved.stderr
    for name, runs in (("one", ["random"]), ("two", ["random", "oracle"])):
        paths = [folder / run for run in runs]
        done = evalharness(environment, "report", *paths, "-o", folder / f"{name}.html")
        assert done.returncode == 0, done.stderr
    return {
        "folder": folder,
        "environment": environment,
        "one": folder / "one.html",
        "two": folder / "two.html",
    }


@pytest.fixture
def look(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Opens a page that may not write to the console and may not ask for anything but its own file."""
    opened: list[Any] = []

    def open_page(file: Path, address: str = "", **options: Any) -> Page:
        url = file.resolve().as_uri()
        context = clean_page(browser, url, viewport=DESKTOP, **options)
        opened.append(context)
        page: Page = context.__enter__()
        visit(page, url + address)
        return page

    yield open_page
    for context in opened:
        context.__exit__(None, None, None)
