"""A real headless Chromium for tests of pages, and what every page is held to: no error and no request."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from chromium import ARGUMENTS
from playwright.sync_api import Browser, Page, sync_playwright


@contextmanager
def chromium() -> Iterator[Browser]:
    """Skips where there is none; on CI (`CI` set) that is a failure."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        reason = "no Chromium on PATH; on Debian: apt-get install chromium"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


@contextmanager
def clean_page(browser: Browser, allowed: str = "file://", **options: Any) -> Iterator[Page]:
    """A page that may write nothing to its console and ask for nothing but what starts with `allowed`."""
    context = browser.new_context(**options)
    page = context.new_page()
    problems: list[str] = []
    page.on("console", lambda message: problems.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: problems.append(f"error: {error}"))
    page.on("dialog", lambda dialog: (problems.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.on(
        "request",
        lambda request: (
            None if request.url.startswith(allowed) else problems.append(f"request: {request.url}")
        ),
    )
    try:
        yield page
        assert problems == []
    finally:
        context.close()


def visit(page: Page, address: str) -> None:
    """Open `address` and wait until its view is there."""
    page.goto("about:blank")
    page.goto(address)
    page.wait_for_selector("body[data-ready]")
