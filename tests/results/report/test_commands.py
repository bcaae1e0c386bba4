"""`evalharness report` and `evalharness view`: the file, what is refused, and a run that goes on."""

from __future__ import annotations

import re
import signal
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from browser import clean_page, visit
from command_line import command
from made_runs import make_run
from playwright.sync_api import Browser

from evalharness.cli import main

from .pages import DESKTOP, NOTHING, SOLVED, report


def test_the_file_is_self_contained_and_the_same_each_time(tmp_path: Path) -> None:
    """Only hashed style and script are allowed, and no connection."""
    folder = make_run(tmp_path / "run", {"babyai": [SOLVED, NOTHING]})
    first, second = (report(folder, tmp_path / f"{i}.html").read_bytes() for i in range(2))
    assert first == second
    text = first.decode()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy
    assert "unsafe" not in policy[1]
    assert "connect-src 'none'" in policy[1]
    assert policy[1].count("sha256-") == 2
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", text)
    assert "url(" not in text


def test_what_cannot_be_one_report_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = make_run(tmp_path / "a", {"babyai": [SOLVED]})
    b = make_run(tmp_path / "b", {"babyai": [SOLVED]}, suite="open")
    target = tmp_path / "r.html"
    for runs, why in (
        ([a, b], "make a report of each"),
        ([a, a], "given twice"),
        ([tmp_path], "not a run folder"),
    ):
        assert main(["report", *map(str, runs), "-o", str(target)]) == 2
        assert why in capsys.readouterr().err
    assert main(["report", str(a), "-o", str(tmp_path / "nowhere" / "r.html")]) == 2
    assert "-o FILE" in capsys.readouterr().err
    assert not target.exists()


@pytest.mark.slow
def test_view_shows_a_run_that_goes_on(browser: Browser, compass: dict[str, Any], tmp_path: Path) -> None:
    """A new episode appears in the open page; other names for the server's address get nothing; Ctrl-C ends it."""
    finished = (compass["folder"] / "random" / "episodes.jsonl").read_text().splitlines(keepends=True)
    running = tmp_path / "running"
    running.mkdir()
    (running / "manifest.json").write_text((compass["folder"] / "random" / "manifest.json").read_text())
    (running / "episodes.jsonl").write_text("".join(finished[:20]) + finished[20][:50])
    server = subprocess.Popen(
        command("view", running), env=compass["environment"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout
        url = server.stdout.readline().split()[0]
        assert url.startswith("http://127.0.0.1:")
        with clean_page(browser, url, viewport=DESKTOP) as page:
            page.set_default_timeout(120_000)
            visit(page, url + "#family=compass")
            page.get_by_text("20 episodes", exact=True).wait_for()
            with (running / "episodes.jsonl").open("a") as file:
                file.write(finished[20][50:] + "".join(finished[21:30]))
            page.get_by_text("live · 30 episodes").wait_for()
            page.locator("#main .count").get_by_text("30 episodes").wait_for()
            visit(page, url + "#")
            page.locator("p.doing").get_by_text("30 of 60 episodes").wait_for()
            visit(page, url + "#family=compass")
            page.keyboard.press("End")
            page.keyboard.press("Enter")
            page.locator("#turn-1").wait_for()
        elsewhere = urllib.request.Request(url + "data/index", headers={"Host": "rebound.example"})
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(elsewhere)
        server.send_signal(signal.SIGINT)
        assert server.wait(20) == 0
    finally:
        server.kill()
        server.wait()
