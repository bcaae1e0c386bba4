"""The overview of a report of several runs: one has nothing but format errors, one was played by another protocol."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from browser import visit
from made_runs import make_run
from playwright.sync_api import Page, expect

from evalharness.cli import main
from evalharness.results.report.bundle import load_bundle
from evalharness.results.report.page import script
from evalharness.results.summarize import summarize
from evalharness.results.terminal.answers import answer_of_run

from .pages import HALF, NOTHING, PHONE, SOLVED, edit_episodes

LONG = "llama-3-8b-agentrefine-lr2e-5-epoch-3-step-005000"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("runs")
    a = make_run(folder / "a", {"babyai": [SOLVED] * 4, "pddl": [SOLVED, HALF]}, name="same", seed=0)
    b = make_run(folder / "b", {"babyai": [SOLVED, HALF, NOTHING, NOTHING], "pddl": [NOTHING] * 2}, name=LONG)
    short = make_run(folder / "short", {"babyai": [HALF] * 4}, name="same", max_turns=12)
    d = make_run(folder / "d", {"babyai": [SOLVED] * 4, "pddl": [NOTHING] * 2}, name="fourth")

    def spoil(episode: dict[str, Any]) -> None:
        for turn in episode["turns"]:
            turn |= {"action": None, "valid": False, "format_errors": ["truncated"], "reply": "I would"}

    edit_episodes(b, spoil)
    return [a, b, short, d]


@pytest.fixture(scope="module")
def page_of_all(runs: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("page") / "all.html"
    assert main(["report", *map(str, runs), "-o", str(target)]) == 0
    return target


def test_no_name_of_the_page_is_declared_twice() -> None:
    """All files of the script are one function, in which the later of two functions of a name is meant by all."""
    declared = re.findall(r"^(?:async )?(?:function\*?|class|const|let) (\w+)", script(), re.M)
    assert [name for name, times in Counter(declared).items() if times > 1] == []


@pytest.mark.slow
def test_the_overview_begins_with_its_answers_and_scores_and_shows_every_task(
    page_of_all: Path, look: Callable[..., Page]
) -> None:
    page = look(page_of_all)
    said = [page.locator("h1").inner_text(), page.locator("header p b").first.inner_text()]
    assert [f"between {name} and same: " in text for name, text in zip((LONG, "fourth"), said, strict=True)]
    assert page.locator("h2").first.inner_text() == "Scores"
    assert page.locator("header .named").nth(0).inner_text().split()[:2] == ["A", "same"]
    shown = page.locator("table.scores tbody tr")
    babyai = shown.filter(has_text="BabyAI").first
    assert babyai.locator(".rate .number").first.inner_text() == "100.0"
    assert "at most 12 turns" in page.locator("article.about").nth(2).inner_text()

    # 100 % format errors look like trouble, before the scores
    assert page.locator("header p.trouble").inner_text().startswith("B")
    assert page.locator("p.trouble").count() == 1

    # lines about tokens and efficiency are folded
    assert page.locator("details.folded[open]").count() == 0

    # a column of cells a task, a cell a run
    babyai = page.locator("div.grid").first
    assert babyai.locator(".stack-of-runs").count() == 4
    second = babyai.locator(".stack-of-runs").nth(1)
    assert second.get_attribute("title") == (
        "babyai/agentboard/001: A solved, B in part, C in part, D solved"
    )
    assert second.locator(".square.solved").count() == 2
    assert second.locator(".square.in-part").count() == 2

    # one run of another protocol takes nothing from the others
    headings = [" ".join(text.split()) for text in page.locator("h3").all_inner_texts()]
    assert headings[0].startswith("B ")
    assert headings[1].startswith("D fourth against A same")
    assert "not compared: C:" in page.locator("section").filter(has=page.locator("h3")).first.inner_text()


def test_a_page_of_one_run_begins_with_its_score(runs: list[Path]) -> None:
    bundle = load_bundle(runs[:1])
    assert bundle.index["answers"] == [answer_of_run(summarize(runs[0]), bundle.index["titles"])]


@pytest.mark.slow
def test_every_run_has_a_colour_of_its_own_and_behaviour_is_one_table(
    page_of_all: Path, look: Callable[..., Page]
) -> None:
    page = look(page_of_all)
    chips = page.locator("header .letter")
    colours = [chips.nth(i).evaluate("chip => getComputedStyle(chip).borderColor") for i in range(4)]
    assert len(set(colours)) == 4
    reached = page.locator(".key.success").first.evaluate("e => getComputedStyle(e).backgroundColor")
    assert reached not in colours
    lines = page.locator(".key-line")
    drawn = [lines.nth(i).evaluate("e => getComputedStyle(e).borderTopColor") for i in range(4)]
    assert drawn == colours
    table = page.locator("table.behaviour")
    assert table.count() == 1
    assert table.locator("thead th").all_inner_texts()[1:] == ["A", "B − A", "C − A", "D − A"]
    row = table.locator("tbody tr").first
    assert [text.split() for text in row.locator("td").all_inner_texts()[:2]] == [
        ["0.0"],
        ["100.0", "+100.0"],
    ]
    assert row.locator("small.apart").all_inner_texts() == ["+100.0"]
    page.select_option("select[name=behaviour-family]", "pddl")
    assert row.locator("td").nth(2).inner_text().strip() == "–"  # C has played no PDDL


@pytest.mark.slow
def test_paper_shows_all_columns_and_is_never_dark(page_of_all: Path, look: Callable[..., Page]) -> None:
    page = look(page_of_all, color_scheme="dark")
    page.keyboard.press("t")
    page.keyboard.press("t")  # dark by the key, too
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 703, "height": 1000})  # A4 without its margins
    for table in page.locator("table").all():
        assert table.evaluate("table => table.getBoundingClientRect().right") <= 703
    background = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(background) == "rgb(255, 255, 255)"


@pytest.mark.slow
def test_a_table_that_is_wider_than_the_screen_says_so(page_of_all: Path, look: Callable[..., Page]) -> None:
    page = look(page_of_all)
    hints = page.locator(".more-beside:visible")
    expect(hints).to_have_count(0)
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    expect(hints.first).to_have_text("more beside: scroll →")


@pytest.mark.slow
def test_nothing_is_wider_than_a_phone(page_of_all: Path, look: Callable[..., Page]) -> None:
    page = look(page_of_all)
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    for address in ("#", "#family=babyai&run=1", "#task=babyai/agentboard/001&run=1"):
        visit(page, page_of_all.resolve().as_uri() + address)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], address
