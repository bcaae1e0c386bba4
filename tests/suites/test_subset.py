"""A few tasks that stand for the held-out score: which, and what is estimated from them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from evalharness import stats
from evalharness.base.errors import UserError
from evalharness.cli import main
from evalharness.envs.base import Task
from evalharness.runs.selected import make_difficulty
from evalharness.suites.draws import choose_subset


def task(family: str, number: int) -> Task:
    return Task(
        id=f"{family}/open/{number:03d}", family=family, suite="open", index=number, goal="", difficulty="hard",
        kind=f"k{number % 3}", subgoals=(), payload={},
    )  # fmt: skip


FAMILIES = {
    family: [task(family, n) for n in range(size)]
    for family, size in {"babyai": 112, "jericho": 20, "pddl": 60, "sciworld": 90}.items()
}


@pytest.mark.parametrize("count", [12, 13, 60, 80, 120, 200, 281])
def test_every_task_is_stood_for_once_and_families_get_their_share(count: int) -> None:
    found = choose_subset(FAMILIES, count, lambda task: task.index % 7)
    assert len(found) == count
    for family, tasks in FAMILIES.items():
        own = {task_id: n for task_id, n in found.items() if task_id.startswith(family)}
        assert sum(own.values()) == len(tasks)
        assert max(own.values()) - min(own.values()) <= 1
        assert len(own) >= 3
        if count >= 60:
            assert abs(len(own) - count * len(tasks) / 282) < 1


def test_a_task_near_the_middle_of_each_stretch_is_taken_and_every_kind_has_one() -> None:
    tasks = {"a": [task("a", n) for n in range(12)]}
    found = choose_subset(tasks, 4, lambda task: -task.index)
    places = [int(task_id.rpartition("/")[2]) for task_id in found]
    assert all(abs(place - middle) <= 1 for place, middle in zip(places, (10, 7, 4, 1), strict=True))
    assert {place % 3 for place in places} == {0, 1, 2}


@pytest.mark.parametrize("count", [1, 11, 282, 1000])
def test_a_count_that_means_nothing_is_refused(count: int) -> None:
    with pytest.raises(UserError, match="give 12 to 281 of the 282 tasks"):
        choose_subset(FAMILIES, count, lambda task: 0.0)


def test_the_interval_holds_the_score_of_all_tasks() -> None:
    """Simulated: tasks whose chance of success falls with their place in the order. benchmarks/coverage_subset.py has
    more of it."""
    rng, held = np.random.default_rng(5), 0
    for _ in range(1000):
        chance = np.clip(np.linspace(rng.uniform(0.3, 1.2), rng.uniform(-0.4, 0.4), 282), 0, 1)
        values = (rng.random(282) < chance).astype(float)
        played = values[1::3]
        low, high = stats.subset_interval([list(played)], 282)
        held += low <= values.mean() <= high
    assert 0.93 <= held / 1000 <= 0.985


@pytest.mark.parametrize("tasks", [4, 8, 20])
def test_the_pooled_interval_holds_the_mean_of_families_that_differ(tasks: int) -> None:
    """Few tasks of each of five families, some of which are all won or all lost."""
    rng, held = np.random.default_rng(3), 0
    for _ in range(600):
        rates = rng.choice([0.0, 0.05, 0.3, 0.6, 0.95, 1.0], 5)
        won = rng.random((5, tasks)) < rates[:, None]
        parts = [
            (tasks, float(w.mean()), stats.rate_interval([float(x) for x in w], binary=True)) for w in won
        ]
        low, high = stats.pooled_interval(parts)
        held += low <= rates.mean() <= high
    assert held / 600 >= 0.94


def test_all_or_nothing_has_an_interval() -> None:
    assert stats.subset_interval([[0.0] * 40], 141)[0] == 0
    assert 0.01 < stats.subset_interval([[0.0] * 40], 141)[1] < 0.1
    assert stats.subset_interval([[1.0] * 40], 141)[1] == 1


def test_difficulties_are_known_for_both_suites() -> None:
    published = make_difficulty("agentboard", 0)
    values = {published(task("babyai", n)) for n in range(112)}
    assert len(values) > 20
    assert all(0 <= value <= 1 for value in values)
    assert len({make_difficulty("open", 0)(task("pddl", n)) for n in range(60)}) > 10
    assert make_difficulty("open", 9)(task("pddl", 0)) == 1


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two random models on the same subset."""
    folders = [tmp_path_factory.mktemp("runs") / name for name in ("a", "b")]
    words = ["run", "--model", "random", "--suite", "open", "--subset", "20", "--max-turns", "4"]
    for number, folder in enumerate(folders):
        assert main([*words, "--seed", str(number), "-o", str(folder)]) == 0
    return folders


def test_a_run_of_a_subset_states_the_estimate_everywhere(
    runs: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main(["show", str(runs[0])]) == 0
    out = capsys.readouterr().out
    assert "held-out, estimated" in out
    assert "20/282" in out
    assert "withheld" not in out
    summary = json.loads((runs[0] / "summary.json").read_text())
    assert summary["held_out"] is None
    assert "alfworld" not in summary["families"], "ALFWorld is no part of the held-out score"
    estimate = summary["held_out_estimate"]
    assert (estimate["n"], estimate["stands_for"]) == (20, 282)
    low, high = estimate["progress_rate_ci95"]
    assert low <= estimate["progress_rate"] <= high
    assert main(["show", str(runs[0].parent)]) == 0
    listed = capsys.readouterr().out
    assert f"{100 * estimate['success_rate']:.1f}\u2021" in listed
    assert "\n\u2021 " in listed
    assert main(["verify", str(runs[0])]) == 0


def test_every_model_plays_the_same_tasks_and_is_compared_over_them(
    runs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = (json.loads((run / "manifest.json").read_text())["subset"] for run in runs)
    assert first == second
    assert sum(first.values()) == 282
    assert list(first) == list(second) != sorted(first), (
        "the order of difficulty, which the interval needs, is kept"
    )
    assert main(["compare", *map(str, runs), "--json", str(tmp_path / "c.json")]) == 0
    out = capsys.readouterr().out
    assert "held-out, estimated" in out
    assert "withheld" not in out
    rows = json.loads((tmp_path / "c.json").read_text())["comparisons"][0]["differences"]
    [row] = [row for row in rows if (row["family"], row["measure"]) == ("held_out_estimate", "progress")]
    own = [json.loads((run / "summary.json").read_text())["held_out_estimate"] for run in runs]
    assert row["n"] == 20
    assert [row["baseline"], row["run"]] == pytest.approx([each["progress_rate"] for each in own])
    assert row["difference"] == pytest.approx(row["run"] - row["baseline"])


def test_a_difference_of_estimates_has_an_interval_that_agrees_with_its_p() -> None:
    """And holds the difference over all tasks: 200 pairs of models on 280 tasks, 80 of which are played."""
    chance = np.random.default_rng(3)
    held = 0
    for _ in range(200):
        ease = np.sort(chance.random((4, 70)))
        both = [
            (chance.random((4, 70)) < ease * gain).astype(float) for gain in (0.5, chance.uniform(0.4, 0.7))
        ]
        played = (both[1] - both[0])[:, 1::7].tolist() + (both[1] - both[0])[:, 4::7].tolist()
        strata = [[d for pair in zip(played[i], played[i + 4], strict=True) for d in pair] for i in range(4)]
        rate = float(np.mean(strata))
        (low, high), p = stats.subset_difference(strata, rate, 280)
        assert low <= rate <= high
        assert (p < 0.05) == (low > 0 or high < 0)
        held += low <= float((both[1] - both[0]).mean()) <= high
    assert held >= 184


def test_a_difference_that_is_the_same_everywhere_or_nowhere() -> None:
    assert stats.subset_difference([[0.0] * 10, [0.0] * 5], 0.0, 50)[1] == 1.0
    (low, high), p = stats.subset_difference([[1.0] * 10, [1.0] * 5], 1.0, 50)
    assert 0 < low < high == 1.0
    assert p < 0.001
    assert stats.subset_difference([[-1.0] * 10, [-1.0] * 5], -1.0, 50) == ((-1.0, -low), pytest.approx(p))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--tasks", "babyai"], "--tasks"),
        (["--limit", "3"], "--subset"),
        (["--subset", "282"], "give 12 to 281"),
    ],
)
def test_what_does_not_go_with_a_subset_is_refused(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["run", "--model", "random", "--suite", "open", "--subset", "20", "-o", str(tmp_path / "r")]
    assert main([*command, *words]) == 2
    assert said in capsys.readouterr().err


def test_parts_of_families_have_a_pooled_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every task once; none before all are played, and none of one family."""
    words = ["run", "--model", "random", "--suite", "open", "--limit", "3", "--max-turns", "3"]
    assert main([*words, "--tasks", "babyai,pddl", "-o", str(tmp_path / "two")]) == 0
    assert "pooled" in capsys.readouterr().out
    summary = json.loads((tmp_path / "two" / "summary.json").read_text())
    rows = summary["families"]
    wanted = sum(3 * row["progress_rate"] for row in rows.values()) / 6
    assert summary["pooled"]["n"] == 6
    assert summary["pooled"]["progress_rate"] == pytest.approx(wanted)
    assert main([*words, "--tasks", "babyai", "-o", str(tmp_path / "one")]) == 0
    assert "pooled" not in capsys.readouterr().out
    lines = (tmp_path / "two" / "episodes.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "two" / "episodes.jsonl").write_text("".join(lines[:-1]))
    assert main(["show", str(tmp_path / "two")]) == 0
    out = capsys.readouterr().out
    assert "pooled" not in out
    assert "\u2020 only" in out


def test_a_subset_is_compared_with_a_run_of_all_tasks_on_the_tasks_of_both(
    runs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a run without `--subset` that has played these tasks, whose family has two sources of labels."""
    whole, target = tmp_path / "whole", tmp_path / "c.json"
    shutil.copytree(runs[0], whole)
    manifest = json.loads((whole / "manifest.json").read_text())
    manifest["subset"], manifest["labels"]["jericho"] = {}, "official,ours"
    (whole / "manifest.json").write_text(json.dumps(manifest))
    assert main(["compare", str(whole), str(runs[1]), "--json", str(target)]) == 0
    found = json.loads(target.read_text())["comparisons"][0]["differences"]
    assert main(["compare", *map(str, runs), "--json", str(target)]) == 0
    assert found == json.loads(target.read_text())["comparisons"][0]["differences"]
    assert {row["family"] for row in found} >= {"held_out_estimate"}


def test_the_leaderboard_shows_the_estimate_and_marks_it(
    runs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "board.json"
    words = ["leaderboard", *map(str, runs), "--no-published", "--json", str(target)]
    assert main([*words, "--format", "text"]) == 0
    rows = json.loads(target.read_text())["rows"]
    own = [json.loads((run / "summary.json").read_text())["held_out_estimate"] for run in runs]
    assert [r["values"]["held_out_progress"] for r in rows] == [e["progress_rate"] for e in own]
    assert "\u2248 " in capsys.readouterr().out
