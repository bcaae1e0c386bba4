"""The overview of a report of several runs: one has nothing but format errors, one was played by another protocol."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from browser import visit
from made_runs import make_run
from playwright.sync_api import Page, expect

from evalharness.base.errors import UserError
from evalharness.cli import main
from evalharness.records.store import LOCK
from evalharness.results.viewer.bundle import Chosen, load_bundle
from evalharness.results.viewer.prompts import Prompts
from evalharness.runs.watch_page import Viewed, wait_for_run

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


@pytest.mark.slow
def test_the_overview_begins_with_runs_by_families_and_shows_every_task(
    page_of_all: Path, look: Callable[..., Page]
) -> None:
    page = look(page_of_all)
    assert page.locator("h2").first.inner_text() == "Runs"
    rows = page.locator("table.standings tbody tr")
    assert rows.count() == 4
    assert rows.nth(0).inner_text().split()[:2] == ["A", "same"]
    assert "100.0†" in rows.nth(0).inner_text()
    assert "at most 12 turns" in rows.nth(2).inner_text()

    # 100 % format errors look like trouble, at both places where the run is named first
    assert "format errors in 100 % of turns" in rows.nth(1).inner_text()
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


@pytest.mark.slow
def test_every_run_has_a_colour_of_its_own_and_behaviour_is_one_table(
    page_of_all: Path, look: Callable[..., Page]
) -> None:
    page = look(page_of_all)
    chips = page.locator("table.standings .letter")
    colours = [chips.nth(i).evaluate("chip => getComputedStyle(chip).borderColor") for i in range(4)]
    assert len(set(colours)) == 4
    reached = page.locator(".key.success").first.evaluate("e => getComputedStyle(e).backgroundColor")
    assert reached not in colours
    lines = page.locator(".key-line")
    drawn = [lines.nth(i).evaluate("e => getComputedStyle(e).borderTopColor") for i in range(4)]
    assert drawn == colours
    table = page.locator("table.behaviour")
    assert table.count() == 1
    assert table.locator("thead th").all_inner_texts()[1:] == ["A", "B", "C", "D"]
    row = table.locator("tbody tr").first
    before = row.inner_text()
    assert "100.0" in before
    page.select_option("select[name=behaviour-family]", "pddl")
    assert row.locator("td").nth(2).inner_text() == "–"  # C has played no PDDL


@pytest.mark.slow
def test_nothing_is_wider_than_a_phone(page_of_all: Path, look: Callable[..., Page]) -> None:
    page = look(page_of_all)
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    for address in ("#", "#family=babyai&run=1", "#task=babyai/agentboard/001&run=1"):
        visit(page, page_of_all.resolve().as_uri() + address)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], address


@pytest.mark.slow
def test_a_page_of_failures_of_one_family(
    runs: list[Path], tmp_path: Path, look: Callable[..., Page], capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "part.html"
    command = ["report", str(runs[0]), str(runs[1]), "-o", str(target)]
    assert main([*command, "--family", "nothing"]) == 2
    assert "no such family" in capsys.readouterr().err
    assert main([*command, "--family", "babyai", "--only-failures"]) == 0
    page = look(target, "#family=babyai&run=1")
    expect(page.locator(".count")).to_have_text("3 episodes")
    visit(page, target.resolve().as_uri() + "#")
    assert "babyai" in page.locator(".stack-of-runs").first.get_attribute("title")  # type: ignore[operator]
    assert page.locator("div.grid").count() == 1
    assert "4 of 4" in page.locator("div.grid").inner_text()  # the numbers are of all episodes
    visit(page, target.resolve().as_uri() + "#task=babyai/agentboard/000")
    assert "this page holds failures only" in page.locator("#main").inner_text()


def test_failures_alone_leave_the_numbers_as_they_are(runs: list[Path]) -> None:
    whole, part = (load_bundle(runs[:2], chosen=Chosen(only_failures=only)) for only in (False, True))
    assert [r["curves"] for r in whole.index["runs"]] == [r["curves"] for r in part.index["runs"]]
    assert [r["episodes"]["success"] for r in whole.index["runs"]] == [
        r["episodes"]["success"] for r in part.index["runs"]
    ]
    assert sum(map(len, part.records[0].blocks())) < sum(map(len, whole.records[0].blocks()))


def test_a_run_that_has_only_just_begun_can_be_viewed(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", {"babyai": [SOLVED] * 3})
    manifest = (folder / "manifest.json").read_text()
    (folder / "episodes.jsonl").unlink()
    viewed = Viewed([folder], Prompts())
    viewed.open()
    assert viewed.episodes == 0
    (folder / "manifest.json").unlink()
    (folder / LOCK).touch()
    said: list[str] = []
    wait_for_run(
        folder, on_wait=said.append, pause=lambda seconds: (folder / "manifest.json").write_text(manifest)
    )
    assert "only just begun" in said[0]
    wait_for_run(tmp_path / "nowhere")  # returns at once: whoever reads it says what is wrong
    with pytest.raises(UserError, match="not a run folder"):
        Viewed([tmp_path / "nowhere"], Prompts()).open()
