"""The report's page, looked at with a real headless Chromium."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from browser import visit
from made_runs import made_episode, make_run
from playwright.sync_api import Page, expect

from evalharness.cli import main
from evalharness.config import RunConfig
from evalharness.envs import specs
from evalharness.protocol.prompt import load_prompt
from evalharness.records.make_manifest import make_manifest
from evalharness.records.store import RunStore
from evalharness.suites.selection import select

from .pages import HALF, NOTHING, PHONE, SOLVED, edit_episodes, report, shown_rows, wait_for_view

pytestmark = pytest.mark.slow


def test_the_overview_has_the_numbers_of_show(compass: dict[str, Any], look: Callable[..., Page]) -> None:
    page = look(compass["two"])
    summary = json.loads((compass["folder"] / "random" / "summary.json").read_text())["families"]["compass"]
    row = page.locator("table.scores tbody tr").first.inner_text()
    low, high = (f"{100 * end:.1f}" for end in summary["success_rate_ci95"])
    assert f"{100 * summary['success_rate']:.1f}" in row
    assert f"{low}–{high}" in row
    assert "Compass" in row
    assert page.locator("h3").first.inner_text().split() == ["B", "oracle", "against", "A", "random"]
    for heading in (
        "Scores",
        "Differences",
        "Progress by turn",
        "How episodes ended",
        "Where the time went",
        "Behaviour",
    ):
        assert page.get_by_role("heading", name=heading).count() == 1
    assert re.fullmatch(r"random · oracle · \d{4}-\d\d-\d\d · evalharness", page.title())
    assert (
        page.locator("h1")
        .inner_text()
        .startswith("no significant difference between oracle and random: Compass")
    )


def test_limits_below_zero_are_not_joined_by_a_dash(tmp_path: Path, look: Callable[..., Page]) -> None:
    """Where nothing is solved BabyAI's chance-corrected score is far below chance."""
    tasks = select(specs(), "babyai", "open", data=None)
    config = RunConfig.of(model="http://127.0.0.1:1/v1", model_name="toy", tasks="babyai", suite="open")
    manifest = make_manifest(
        config, tasks, specs(), {"babyai": load_prompt(specs()["babyai"]).sha256}, {"name": "toy"}
    )
    with RunStore(tmp_path / "run") as store:
        store.begin(manifest.to_json())
        for task in tasks["babyai"]:
            store.append(made_episode(task))
    page = look(report(tmp_path / "run", tmp_path / "r.html"))
    said = page.locator("span.corrected").first.get_attribute("title") or ""
    assert re.search(r"−\d+\.\d to −\d+\.\d, floor \d+\.\d, ceiling 100.0", said), said


def test_filters_and_search_leave_what_they_say(tmp_path: Path, look: Callable[..., Page]) -> None:
    outcomes = [SOLVED] * 4 + [HALF] * 3 + [NOTHING] * 2
    folder = make_run(tmp_path / "run", {"babyai": outcomes, "pddl": [SOLVED] * 5})
    page = look(report(folder, tmp_path / "r.html"), "#family=babyai")
    count = page.locator(".count")
    expect(count).to_have_text("9 episodes")
    for outcome, expected in (("success", 4), ("unsolved", 5), ("partial", 3), ("none", 2)):
        page.select_option("select[name=outcome]", outcome)
        expect(count).to_have_text(f"{expected} of 9 episodes")
    page.select_option("select[name=level]", "easy")
    assert shown_rows(page) == ["babyai/agentboard/007"]
    assert "outcome=none" in page.url
    assert "level=easy" in page.url
    page.reload()
    page.locator(".rows .row").wait_for()
    assert shown_rows(page) == ["babyai/agentboard/007"]
    page.select_option("select[name=outcome]", "")
    page.select_option("select[name=level]", "")
    page.fill("input[type=search]", "TASK 8")
    assert shown_rows(page) == ["babyai/agentboard/008"]
    page.fill("input[type=search]", "")
    page.get_by_role("button", name="progress").click()
    assert shown_rows(page)[-1] == "babyai/agentboard/008"
    page.get_by_role("button", name="progress").click()
    assert shown_rows(page)[0] == "babyai/agentboard/007"


def test_the_turns_can_be_searched_too(tmp_path: Path, look: Callable[..., Page]) -> None:
    folder = make_run(tmp_path / "run", {"babyai": [SOLVED] * 5})

    def change(episode: dict[str, Any]) -> None:
        if episode["task_id"].endswith("3"):
            episode["turns"][1]["observation"] = "A Wombat appears."

    edit_episodes(folder, change)
    page = look(report(folder, tmp_path / "r.html"), "#family=babyai")
    page.fill("input[type=search]", "wombat")
    expect(page.locator(".count")).to_have_text("0 of 5 episodes")
    page.get_by_role("button", name="search the turns too").click()
    page.get_by_text("1 of 5 episodes").wait_for()
    assert shown_rows(page) == ["babyai/agentboard/003"]


def test_a_trajectory_shows_every_turn_with_reply_prompt_and_subgoal(
    compass: dict[str, Any], look: Callable[..., Page]
) -> None:
    """Of the oracle's episode: what was thought, done and seen, the subgoal its last turn completed, the prompt."""
    page = look(compass["two"], "#task=compass/open/001&run=1")
    lines = (compass["folder"] / "oracle" / "episodes.jsonl").read_text().splitlines()
    episode = next(e for e in map(json.loads, lines) if e["task_id"] == "compass/open/001")
    assert page.locator(".turn").count() == len(episode["turns"])
    for number, turn in enumerate(episode["turns"], start=1):
        card = page.locator(f"#turn-{number}")
        assert card.locator(".thought .prose").inner_text() == turn["thought"]
        assert card.locator(".action code").inner_text() == turn["action"]
        assert card.locator(".observation .prose").inner_text() == turn["observation"]
    last = page.locator(".turn").last
    assert last.locator(".subgoal").inner_text() == "★ subgoal completed: east"
    last.locator(".raw summary").click()
    expect(last.locator(".raw pre")).to_have_text(episode["turns"][-1]["reply"])
    page.locator("details.prompt summary").click()
    page.get_by_text("You are a navigator.").wait_for()
    user = page.locator(".message pre").nth(1).inner_text()
    assert user.endswith(f"Goal: face east\nObservation: {episode['first_observation']}")
    assert "- turn {direction}" in user


def test_everything_can_be_done_with_the_keyboard(compass: dict[str, Any], look: Callable[..., Page]) -> None:
    page = look(compass["one"])
    press = page.keyboard.press
    press("1")
    wait_for_view(page, "#family=compass")
    press("j")
    press("ArrowDown")
    press("Enter")
    wait_for_view(page, "#task=compass/open/000&sample=2")
    press("j")
    assert page.locator(".turn.current").get_attribute("data-turn") == "1"
    assert page.url.endswith("&turn=1")
    press("r")
    expect(page.locator("#turn-1 .raw pre")).to_be_visible()
    press("]")
    wait_for_view(page, "#task=compass/open/001")
    press(".")
    wait_for_view(page, "#task=compass/open/001&sample=1")
    press("Escape")
    wait_for_view(page, "#family=compass")
    expect(page.locator('.row[aria-selected="true"] .task')).to_have_text("compass/open/001 #1")
    press("/")
    page.keyboard.type("west")
    press("ArrowDown")
    expect(page.locator(".count")).to_have_text("15 of 60 episodes")
    press("?")
    expect(page.locator("dialog")).to_be_visible()
    press("Escape")
    press("o")
    page.get_by_role("heading", name="Scores").first.wait_for()


def test_dark_and_light_follow_the_system_or_a_key(
    compass: dict[str, Any], look: Callable[..., Page]
) -> None:
    def backgrounds(page: Page) -> int:
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(map(int, re.findall(r"\d+", colour)[:3]))

    dark = look(compass["one"], color_scheme="dark")
    light = look(compass["one"], color_scheme="light")
    assert backgrounds(dark) < 200 < 600 < backgrounds(light)
    light.keyboard.press("t")
    light.keyboard.press("t")
    assert backgrounds(light) == backgrounds(dark)


def test_a_phone_has_no_sideways_scrolling(compass: dict[str, Any], look: Callable[..., Page]) -> None:
    page = look(compass["two"])
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    for address in ("#", "#family=all", "#task=compass/open/002", "#compare=compass/open/002&a=0.0&b=1.0"):
        visit(page, compass["two"].resolve().as_uri() + address)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], address


def test_samples_stand_in_a_strip_and_lead_to_each_other(
    compass: dict[str, Any], look: Callable[..., Page]
) -> None:
    page = look(compass["one"], "#task=compass/open/002")
    expect(page.locator(".strips .cell")).to_have_count(3)
    page.locator(".strips .cell").nth(2).click()
    wait_for_view(page, "#task=compass/open/002&sample=2")
    assert "sample 2" in page.locator(".top").inner_text()
    visit(page, compass["one"].resolve().as_uri() + "#family=compass&by=task")
    expect(page.locator(".count")).to_have_text("20 tasks")
    expect(page.locator(".rows .row").first.locator(".cell")).to_have_count(3)


def test_two_runs_side_by_side_mark_their_first_difference(tmp_path: Path, look: Callable[..., Page]) -> None:
    a = make_run(tmp_path / "a", {"babyai": [SOLVED]}, name="one")
    b = make_run(tmp_path / "b", {"babyai": [NOTHING]}, name="two")

    def change(episode: dict[str, Any]) -> None:
        episode["turns"][0]["thought"] = "another thought, the same action"
        episode["turns"][1]["action"] = "turn left"

    edit_episodes(b, change)
    assert main(["report", str(a), str(b), "-o", str(tmp_path / "r.html")]) == 0
    page = look(tmp_path / "r.html", "#task=babyai/agentboard/000")
    page.get_by_role("link", name="side by side").click()
    page.locator(".parting").wait_for()
    assert page.locator(".parting").inner_text() == "first difference: turn 2"
    expect(page.locator(".pair.alike")).to_have_count(1)
    actions = page.locator(".parting + .pair code").all_inner_texts()
    assert actions == ["look", "turn left"]


def test_errors_are_shown_and_can_be_filtered_by_kind(tmp_path: Path, look: Callable[..., Page]) -> None:
    folder = make_run(tmp_path / "run", {"babyai": [HALF] * 3})

    def change(episode: dict[str, Any]) -> None:
        if episode["task_id"].endswith("1"):
            turn = episode["turns"][1]
            turn |= {"action": None, "valid": False, "format_errors": ["no_action"], "reply": "I will think."}
            episode["trims"] = [{"turn": 3, "dropped": 1}]

    edit_episodes(folder, change)
    page = look(report(folder, tmp_path / "r.html"), "#family=babyai")
    options = page.locator("select[name=trouble] option").all_inner_texts()
    assert options == ["any errors or none", "any format error", "no action", "context trimmed"]
    page.select_option("select[name=trouble]", "no_action")
    page.locator(".rows .row").click()
    page.locator("#turn-2.bad").wait_for()
    assert "no action" in page.locator("#turn-2").inner_text()
    assert page.locator("#turn-2 .refused").inner_text() == "I will think."
    assert "1 oldest" in page.locator(".trim").inner_text()


def test_a_list_of_4160_episodes_draws_only_what_is_in_view(
    tmp_path: Path, look: Callable[..., Page]
) -> None:
    folder = make_run(tmp_path / "run", {"babyai": [SOLVED, HALF]}, samples=1)
    first, second = (folder / "episodes.jsonl").read_text().splitlines()
    with (folder / "episodes.jsonl").open("w") as file:
        for sample in range(2080):
            for line in (first, second):
                file.write(json.dumps({**json.loads(line), "sample": sample}) + "\n")
    page = look(report(folder, tmp_path / "r.html"), "#family=all")
    expect(page.locator(".count")).to_have_text("4,160 episodes")
    assert page.locator(".rows .row").count() < 100
    page.keyboard.press("End")
    page.locator('.row[aria-rowindex="4160"]').wait_for()
    assert page.locator(".rows .row").count() < 100
    page.keyboard.press("Enter")
    page.locator("#turn-3").wait_for()
    assert "babyai/agentboard/001" in page.locator("h1").inner_text()
