"""The view of a run while it goes on: whole at 80 columns, with what goes wrong on it."""

from __future__ import annotations

import pytest
from made_runs import made_episode, make_task
from rich.console import Console

from evalharness.play.progress import FamilyProgress, Progress
from evalharness.runs.live import _line, _view

SIZES = {"alfworld": 134, "babyai": 112, "jericho": 20, "pddl": 60, "sciworld": 90}
TITLES = {
    "alfworld": "ALFWorld",
    "babyai": "BabyAI",
    "jericho": "Jericho",
    "pddl": "PDDL",
    "sciworld": "ScienceWorld",
}
TURN = made_episode(make_task("pddl", 0), turns=1).turns[0]
WARNING = "every one of 42 replies is a format error: cut off at 256 tokens: raise --max-tokens"
STATUS = "http://127.0.0.1:8000/v1: HTTP 429: slow down; asked again in 4 s (no answer for 12 s, given up after 600 s)"
ENGINE = "concurrency 64 (growing), 58 at the model · server 52 running, 6 waiting, KV 83%, prefix cache 71%"


@pytest.fixture
def going_on() -> Progress:
    """Six episodes of each family have played 14 of 30 turns in 84 seconds."""
    progress = Progress({family: FamilyProgress(n) for family, n in SIZES.items()})
    keys = {family: [(f"{family}/open/{i:03d}", 0) for i in range(n)] for family, n in SIZES.items()}
    progress.turns_left = {key: 30.0 for own in keys.values() for key in own}
    for family, own in keys.items():
        for _ in own[:6]:
            progress.begin_episode(family)
    for _ in range(14):
        for own in keys.values():
            for key in own[:6]:
                progress.count_turn(key, TURN)
    progress.retries, progress.refusals = 17, 12
    progress.warning, progress.status, progress.engine = WARNING, STATUS, lambda: ENGINE
    progress.families["pddl"].failures = 2
    for _ in range(130):
        progress.count_episode("alfworld", True, 1.0)
    return progress


@pytest.mark.parametrize("width", [80, 200])
def test_nothing_is_cut_off(going_on: Progress, width: int) -> None:
    console = Console(width=width, force_terminal=True, color_system=None, record=True)
    console.print(_view(going_on, TITLES))
    lines = console.export_text().splitlines()
    assert max(map(len, lines)) <= width
    shown = " ".join(" ".join(lines).split())
    for part in (WARNING, STATUS, ENGINE, "17 requests made again, 12 refused as too many", "PDDL 2"):
        assert part in shown
    assert "…" not in shown


def test_rates_and_times_are_withheld_until_they_mean_something() -> None:
    """The first episodes to end are the short ones, and the first seconds are those of starting up."""
    progress = Progress({"babyai": FamilyProgress(10, done=4, successes=4, progress_sum=4.0)})
    progress.turns = 40
    assert "100.0 %" not in _line(progress, TITLES)
    progress.count_episode("babyai", False, 0.5)
    assert "success 40-90 %" in _line(progress, TITLES), "five are left: it ends at 4 to 9 of 10"
    for _ in range(5):
        progress.count_episode("babyai", False, 0.5)
    assert "success 40.0 %" in _line(progress, TITLES)
    assert "left" not in _line(progress, TITLES)
