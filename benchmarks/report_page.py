"""How quick the report is: time to first paint, to the overview, to a list and to a trajectory, in headless Chromium.

    evalharness report RUN -o report.html && python benchmarks/report_page.py report.html

Needs `playwright` and Chromium on PATH. Medians in milliseconds; the page is loaded anew each time, from `file://`.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from statistics import median

from chromium import ARGUMENTS
from playwright.sync_api import Page, sync_playwright


def go(page: Page, address: str) -> float:
    """Milliseconds until the view at `address` (`#...`) is there, two frames painted."""
    return page.evaluate(
        """async address => {
            const start = performance.now();
            location.hash = address;
            while (document.body.dataset.ready !== location.hash) await new Promise(requestAnimationFrame);
            await new Promise(requestAnimationFrame);
            return performance.now() - start;
        }""",
        address,
    )


def measure(page: Page, url: str) -> dict[str, float]:
    page.goto(url, wait_until="commit")
    page.wait_for_selector("body[data-ready]")
    page.wait_for_load_state("load")
    times = {
        "first contentful paint": page.evaluate(
            "performance.getEntriesByName('first-contentful-paint')[0].startTime"
        ),
        "overview is there": page.evaluate("performance.getEntriesByName('shown')[0].startTime"),
    }
    times["whole file read"] = page.evaluate(
        "performance.timing.loadEventEnd - performance.timing.navigationStart"
    )
    times["list of all episodes"] = go(page, "#family=all")
    times["scrolled to its end"] = page.evaluate(
        """async () => {
            const rows = document.querySelector('.rows'), start = performance.now();
            rows.scrollTop = rows.scrollHeight;
            await new Promise(requestAnimationFrame); await new Promise(requestAnimationFrame);
            return performance.now() - start;
        }"""
    )
    last = page.locator(".row a.task").last.get_attribute("href") or "#"
    times["a trajectory"] = go(page, last)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("report", type=Path)
    parser.add_argument("--times", type=int, default=5)
    args = parser.parse_args()
    found: dict[str, list[float]] = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
        for _ in range(args.times):
            context = browser.new_context(viewport={"width": 1280, "height": 900})
            for name, value in measure(context.new_page(), args.report.resolve().as_uri()).items():
                found.setdefault(name, []).append(value)
            context.close()
        browser.close()
    print(f"{args.report} ({args.report.stat().st_size / 1e6:.1f} MB), median of {args.times}")
    for name, values in found.items():
        print(f"{name:<24}{median(values):8.0f} ms   ({min(values):.0f} to {max(values):.0f})")


if __name__ == "__main__":
    main()
