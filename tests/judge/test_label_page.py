"""The page on which people label, with a real headless Chromium and the real command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from browser import chromium, clean_page
from command_line import command
from playwright.sync_api import Browser, Page, expect

from tests.results.report.pages import DESKTOP, PHONE

from .runs import change_turn, make_judged_run

pytestmark = pytest.mark.slow

HOSTILE = "<img src=x onerror=alert(1)></script><script>alert(2)</script> \x1b[31m \u202e"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


def judgement(key: list[Any], wrong: bool | None, note: str) -> dict[str, Any]:
    task_id, sample, turn = key
    return {
        **{"task_id": task_id, "sample": sample, "turn": turn, "family": task_id.split("/")[0]},
        **{"wrong": wrong, "kind": "place" if wrong else None, "note": note, "reply": "", "refusal": None},
        **{"finish_reason": "stop", "prompt_tokens": 1, "completion_tokens": 1, "latency_s": 0.1, "tries": 1},
    }


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of which a judge called every turn wrong."""
    from evalharness.judge.draw import load_turns
    from evalharness.records.answers import make_manifest

    folder = make_judged_run(tmp_path / "run", tasks=2, turns=5)
    judge = folder / "judgements" / "strict"
    judge.mkdir(parents=True)
    loaded = load_turns(folder)
    lines = [judgement(list(key), True, f"secret reason {HOSTILE}") for key in loaded.turns]
    (judge / "judgements.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    identity = {"kind": "judgements", "run_digest": loaded.digest}
    (judge / "manifest.json").write_text(json.dumps(make_manifest(identity, "strict")))
    return folder


@contextmanager
def served(run: Path, *more: object) -> Iterator[str]:
    """The address of `evalharness judge label`, which Ctrl-C ends."""
    server = subprocess.Popen(
        command("judge", "label", run, *more),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(os.environ),
    )
    try:
        assert server.stdout
        line = server.stdout.readline()
        assert line, server.communicate()[1]
        yield line.split()[0]
        server.send_signal(signal.SIGINT)
        assert server.wait(20) == 0
    finally:
        server.kill()
        server.wait()


def kept(run: Path, rater: str = "person") -> list[tuple[Any, ...]]:
    path = run / "labels" / rater / "labels.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [(line["wrong"], line["kind"], line["note"]) for line in lines]


def ready(page: Page, turn: int) -> None:
    page.wait_for_selector(f'body[data-ready="{turn}"]')


def status(page: Page, text: str) -> None:
    expect(page.get_by_role("status")).to_have_text(text)


def test_by_keyboard_saved_at_once_and_the_judge_hidden_until_then(run: Path, browser: Browser) -> None:
    with (
        served(run, "--turns", 4, "--rater", "ann") as url,
        clean_page(browser, url, viewport=DESKTOP) as page,
    ):
        received: list[str] = []
        page.on("response", lambda answer: received.append(answer.url))
        page.goto(url)
        ready(page, 1)
        expect(page.locator(".count")).to_have_text("0 of 4")
        assert "secret reason" not in page.content()
        told = page.request.get(f"{url}data/turns").text() + page.request.get(f"{url}data/turn-0").text()
        assert "secret reason" not in told
        assert "valid" not in told  # nor does the page know what the simulator says
        page.keyboard.press("r")
        status(page, "saved")
        assert kept(run, "ann") == [(False, None, "")]
        judged = page.locator(".judges")
        assert "strict wrong place differs secret reason <img" in judged.inner_text()
        assert "\\x1b" in judged.inner_text()
        assert page.locator(".judges img, .judges script").count() == 0
        page.keyboard.press("Enter")
        ready(page, 2)
        assert "secret reason" not in page.content()
        page.keyboard.press("n")
        page.keyboard.type("not there")
        page.keyboard.press("Enter")
        assert len(kept(run, "ann")) == 1  # a note alone is no label
        page.keyboard.press("2")
        status(page, "saved")
        page.keyboard.press("w")  # stays of its kind
        page.keyboard.press("j")
        ready(page, 3)
        page.keyboard.press("k")
        ready(page, 2)
        expect(page.get_by_role("button", name="parameter")).to_have_attribute("aria-pressed", "true")
        expect(page.get_by_role("textbox", name="note")).to_have_value("not there")
        page.keyboard.press("u")
        status(page, "taken back")
        assert kept(run, "ann")[1:] == [(True, "parameter", "not there")] * 2 + [(None, None, "")]
        page.keyboard.press("w")
        status(page, "saved")
        page.keyboard.press("n")
        page.keyboard.type("later")
        status(page, "saved")
        page.wait_for_function("document.activeElement.value === 'later'")
        page.keyboard.press("Escape")
        page.keyboard.press("?")
        expect(page.locator("dialog")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.locator("dialog")).to_be_hidden()
        page.keyboard.press("Enter")
        ready(page, 3)
        assert kept(run, "ann")[-1] == (True, None, "later")


def test_a_key_right_after_the_help_is_closed_counts(run: Path, browser: Browser) -> None:
    with served(run, "--turns", 4) as url, clean_page(browser, url, viewport=DESKTOP) as page:
        page.goto(url)
        ready(page, 1)
        page.keyboard.press("?")
        expect(page.locator("dialog")).to_be_visible()
        # Nothing is drawn between the two: the button in the dialog still has the focus.
        focused = page.evaluate(
            """() => {
                document.querySelector('dialog').close();
                const at = document.activeElement;
                at.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true, cancelable: true }));
                return at.tagName;
            }"""
        )
        assert focused in ("BUTTON", "BODY")
        ready(page, 2)


def test_what_was_labelled_is_there_when_it_goes_on_and_raters_do_not_see_each_other(
    run: Path, browser: Browser
) -> None:
    with served(run, "--turns", 3) as url, clean_page(browser, url, viewport=PHONE) as page:
        page.goto(url)
        ready(page, 1)
        page.get_by_role("button", name="wrong").click()
        status(page, "saved")
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    with served(run, "--turns", 3) as url, clean_page(browser, url, viewport=DESKTOP) as page:
        page.goto(url)
        ready(page, 2)
        expect(page.locator(".count")).to_have_text("1 of 3")
        for turn in (2, 3):
            ready(page, turn)
            page.keyboard.press("w")
            status(page, "saved")
            page.keyboard.press("Enter")
        status(page, "all turns are decided")
    with (
        served(run, "--turns", 3, "--rater", "bob") as url,
        clean_page(browser, url, viewport=DESKTOP) as page,
    ):
        page.goto(url)
        ready(page, 1)
        expect(page.locator(".count")).to_have_text("0 of 3")


def test_hostile_turns_stay_text_and_other_pages_cannot_label(run: Path, browser: Browser) -> None:
    for number in range(1, 6):
        change_turn(run, number, thought=HOSTILE, action=HOSTILE, observation=HOSTILE)
    with served(run, "--turns", 20) as url, clean_page(browser, url, viewport=DESKTOP) as page:
        page.goto(url)
        for _ in range(20):
            if "babyai/agentboard/000" in page.locator("h1").inner_text():
                break
            page.keyboard.press("j")
            page.wait_for_function("n => document.body.dataset.ready === location.hash.slice(1)", arg=0)
        card = page.locator(".turn.current")
        shown = HOSTILE.replace("\x1b", "\\x1b").replace("\u202e", "\\u202e")
        assert card.locator(".action code").text_content() == shown
        assert card.locator(".observation .prose").text_content() == shown
        assert page.locator("main img, main script").count() == 0
        label = json.dumps({"wrong": True, "kind": None, "note": ""})
        for headers, data, code in (
            ({"Content-Type": "text/plain"}, label, 415),
            ({"Content-Type": "application/json", "Host": "evil.example"}, label, 403),
            ({"Content-Type": "application/json"}, "{", 400),
            ({"Content-Type": "application/json"}, "[]", 400),
            ({"Content-Type": "application/json"}, '{"wrong": "yes"}', 400),
            ({"Content-Type": "application/json"}, '{"wrong": true, "kind": "<b>"}', 400),
        ):
            answer = page.request.post(f"{url}data/turn-0", headers=headers, data=data)
            assert answer.status == code, data
        assert (
            page.request.post(
                f"{url}data/turn-20", headers={"Content-Type": "application/json"}, data=label
            ).status
            == 404
        )
        assert kept(run) == []


def test_a_request_of_another_page_is_refused_by_the_server_itself(run: Path) -> None:
    """Whatever a browser would have kept it from."""
    body = json.dumps({"wrong": True, "kind": None, "note": ""}).encode()

    def post(address: str, origin: str | None) -> int:
        headers = {"Content-Type": "application/json"} | ({"Origin": origin} if origin else {})
        request = urllib.request.Request(f"{address}/data/turn-0", body, headers)
        try:
            with urllib.request.urlopen(request) as response:
                return int(response.status)
        except urllib.error.HTTPError as error:
            return error.code

    with served(run) as address:
        address = address.rstrip("/")
        server = address.rpartition("/")[0]
        for origin in ("http://evil.example", "null", server.replace("http:", "https:"), f"{server}0"):
            assert post(address, origin) == 403
        for guess in (server, f"{server}/guess", f"{address}x"):  # of another account of this machine
            assert post(guess, None) == 403
        assert kept(run) == []
        assert post(address, server) == post(address, None) == 200
    assert len(kept(run)) == 2


def test_a_label_that_could_not_be_saved_is_said(run: Path, browser: Browser) -> None:
    with served(run, "--turns", 2) as url:
        context = browser.new_context(viewport=DESKTOP)
        page = context.new_page()
        page.goto(url)
        ready(page, 1)
        context.set_offline(True)
        page.keyboard.press("r")
        expect(page.get_by_role("status")).to_contain_text("not saved")
        expect(page.get_by_role("button", name="right")).to_have_attribute("aria-pressed", "false")
        context.set_offline(False)
        page.keyboard.press("r")
        status(page, "saved")
        context.close()
    assert kept(run) == [(False, None, "")]
