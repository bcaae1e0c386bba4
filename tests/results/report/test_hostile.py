"""Nothing that a model wrote, or that stands in the address, becomes part of the page."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from browser import visit
from made_runs import make_run
from playwright.sync_api import Page, expect

from .pages import DESKTOP, SOLVED, edit_episodes, report

LONG = 1_000_000
HOSTILE = (
    "<script>document.title='owned'</script></script><script>alert(1)</script><img src=x onerror=alert(2)>"
    "<svg/onload=alert(3)>{{7*7}} javascript:alert(4) <!-- ]]> \x1b[31mred\x1b[0m \x07 \u202eevil\u2066 \u200b\ufeff"
    "</textarea><a href='http://example.invalid/x'>x</a><style>*{display:none}</style>&lt;b&gt; \ud800 \u2028end"
)


@pytest.mark.slow
def test_a_hostile_trajectory_stays_text(tmp_path: Path, look: Callable[..., Page]) -> None:
    """In every field that a model or a game writes: nothing runs, nothing loads, controls are visible."""
    folder = make_run(tmp_path / "run", {"babyai": [SOLVED] * 2}, name=HOSTILE[:80])

    def change(episode: dict[str, Any]) -> None:
        episode |= {
            "goal": HOSTILE,
            "first_observation": HOSTILE,
            "kind": HOSTILE,
            "subgoals": [HOSTILE, HOSTILE],
        }
        for turn in episode["turns"]:
            turn |= {"thought": HOSTILE, "action": HOSTILE, "observation": HOSTILE, "reply": HOSTILE}
            turn["subgoals_completed"] = [0]
        episode["turns"][2]["observation"] = "x" * LONG

    edit_episodes(folder, change)
    target = report(folder, tmp_path / "r.html")
    assert "onerror" not in target.read_text(encoding="utf-8").split("<body>")[1].split("<script>")[0]
    page = look(target, "#task=babyai/agentboard/000")
    expected = HOSTILE
    for control in "\x1b\x07\u202e\u2066\u200b\ufeff\ud800\u2028":
        expected = expected.replace(control, control.encode("unicode_escape", "surrogatepass").decode())
    card = page.locator("#turn-1")
    assert card.locator(".thought .prose").text_content() == expected
    assert card.locator(".action code").text_content() == expected
    assert card.locator(".observation .prose").text_content() == expected
    card.locator(".raw summary").click()
    assert card.locator(".raw pre").text_content() == expected
    assert len(page.locator("#turn-3 .observation .prose").text_content() or "") < 10_000
    page.get_by_role("button", name="show all 1,000,000 characters").click()
    assert len(page.locator("#turn-3 .observation .prose").text_content() or "") == LONG
    assert (
        page.locator("main script, main img, main style, main a[href^=http], main svg[onload]").count() == 0
    )
    assert page.locator("script").count() == page.locator("script[type], body > script").count()
    for address in ("#", "#family=babyai", "#compare=babyai/agentboard/000&a=0.0&b=0.0"):
        visit(page, target.resolve().as_uri() + address)
        assert page.title() != "owned"
        assert not re.search("[\x1b\x07\u202e\u2066\u200b\ufeff]", page.locator("body").inner_text())
    assert page.evaluate("document.documentElement.scrollWidth") <= DESKTOP["width"]


@pytest.mark.slow
def test_the_address_cannot_inject_either(compass: dict[str, Any], look: Callable[..., Page]) -> None:
    page = look(compass["one"], "#task=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E&sample=NaN")
    assert "<img src=x onerror=alert(1)>" in page.locator("main").inner_text()
    expect(page.locator("main img")).to_have_count(0)
