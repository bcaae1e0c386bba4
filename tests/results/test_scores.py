"""Scores and intervals against published figures and other implementations."""

import csv
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_runs import make_run
from scipy.stats import binomtest

from evalharness import stats
from evalharness.cli import main
from evalharness.envs import specs
from evalharness.records.summary import FamilyScore, Rates
from evalharness.results.score import EpisodeScore, family_score, group_by_family, held_out_score
from evalharness.results.task_range import mark_changed

WEIGHTS = {"babyai": 112, "sciworld": 90, "pddl": 60, "jericho": 20}


def score(family: str, index: int, success: bool, progress: float) -> EpisodeScore:
    return EpisodeScore(
        f"{family}/open/{index:03d}", "hash", 0, family, "easy" if index % 2 else "hard", success, success, progress,
        grounding_accuracy=0.5, turns=10, prompt_tokens=0, completion_tokens=0, format_errors=0, trimmed=False,
    )  # fmt: skip


@pytest.mark.parametrize(("successes", "n"), [(0, 20), (1, 20), (9, 20), (20, 20), (51, 112), (1, 1)])
def test_wilson_agrees_with_scipy(successes: int, n: int) -> None:
    reference = binomtest(successes, n).proportion_ci(method="wilson")
    low, high = stats.wilson(successes, n)
    assert low == pytest.approx(reference.low, abs=1e-9)
    assert high == pytest.approx(reference.high, abs=1e-9)


def test_wilson_refuses_what_is_no_proportion() -> None:
    for successes, n in ((0, 0), (3, 2), (-1, 2)):
        with pytest.raises(ValueError, match="proportion"):
            stats.wilson(successes, n)


def test_bootstrap_is_the_same_for_any_order_of_episodes() -> None:
    values = [0.0, 0.25, 0.5, 1.0, 1.0, 0.75]
    assert stats.bootstrap_mean(values) == stats.bootstrap_mean(values[::-1])


def test_bootstrap_of_many_values_is_close_to_the_normal_interval() -> None:
    values = [i % 2 for i in range(1000)]
    low, high = stats.bootstrap_mean(values)
    half = stats.Z_95 * math.sqrt(0.25 / 1000)
    assert (low, high) == (pytest.approx(0.5 - half, abs=0.003), pytest.approx(0.5 + half, abs=0.003))


def test_grounding_accuracy_is_a_mean_over_episodes_and_0_for_one_without_turns() -> None:
    played = score("toy", 0, True, 1.0)
    episodes = [
        replace(played, grounding_accuracy=1.0, turns=2),
        replace(played, task_id="toy/open/001", grounding_accuracy=0.5, turns=30),
        replace(played, task_id="toy/open/002", grounding_accuracy=0.0, turns=0),
    ]
    assert family_score(episodes).grounding_accuracy == 0.5


def test_family_score_is_the_unweighted_mean_over_episodes() -> None:
    result = family_score(
        [score("toy", 0, True, 1.0), score("toy", 1, False, 0.5), score("toy", 2, False, 0.0)]
    )
    assert result.success_rate == pytest.approx(1 / 3)
    assert result.progress_rate == pytest.approx(0.5)
    assert result.easy == Rates(success_rate=0.0, progress_rate=0.5)
    assert result.hard == Rates(success_rate=0.5, progress_rate=0.5)


def width_of(found: FamilyScore, rate: str) -> float:
    low, high = getattr(found, rate)
    return float(high - low)


def test_samples_of_a_task_do_not_narrow_its_interval() -> None:
    """Ten attempts that always end alike are as much evidence about a family as one."""
    once = [score("toy", i, i % 3 == 0, float(i % 3 == 0)) for i in range(30)]
    often = [replace(s, sample=k) for s in once for k in range(10)]
    one, ten = family_score(once), family_score(often)
    assert ten.success_rate == pytest.approx(one.success_rate)
    for rate in ("success_rate_ci95", "progress_rate_ci95"):
        assert width_of(ten, rate) == pytest.approx(width_of(one, rate), rel=0.15)


def test_intervals_by_kind_stand_beside_those_by_task() -> None:
    """Four levels of five tasks, all solved or none: over tasks 20 answers, over kinds 4."""
    episodes = [
        replace(score("toy", i, i < 10, float(i < 10)), kind=f"level {i // 5}", opening=f"{i // 2}")
        for i in range(20)
    ]
    result = family_score(episodes)
    assert (result.kinds, result.openings) == (4, 10)
    assert result.success_rate_ci95 == stats.rate_interval([1.0] * 10 + [0.0] * 10, binary=True)
    for measure in ("success", "progress"):
        low, high = getattr(result, f"{measure}_rate_ci95")
        wide_low, wide_high = getattr(result, f"{measure}_rate_ci95_by_kind")
        assert wide_low < low
        assert high < wide_high
        assert getattr(result, f"{measure}_rate_variance") is None
    alone = family_score([replace(e, kind=e.task_id) for e in episodes])
    assert alone.success_rate_ci95_by_kind == alone.success_rate_ci95
    assert family_score([replace(e, kind="one") for e in episodes]).success_rate_ci95_by_kind is None


def test_samples_show_the_between_run_part_of_the_error() -> None:
    """Two attempts a task: half the tasks are solved by one of them, the others by both."""
    episodes = [
        replace(score("toy", i, i % 2 == 0 or k == 0, 1.0), sample=k) for i in range(20) for k in range(2)
    ]
    found = family_score(episodes).success_rate_variance
    assert found is not None
    assert found.repeats == 2
    # Within: half the tasks have (0 - 1/2)^2 + (1 - 1/2)^2 = 1/2, the others 0.
    assert found.between_run == pytest.approx(0.25**0.5)
    assert found.standard_error_runs == pytest.approx((0.25 / 2 / 20) ** 0.5)


@pytest.mark.parametrize("rate", [0, 1])
def test_the_held_out_interval_has_a_width_at_both_ends(rate: int) -> None:
    groups = group_by_family(
        score(family, i, bool(rate), float(rate)) for family, n in WEIGHTS.items() for i in range(n)
    )
    result, _ = held_out_score(groups, WEIGHTS)
    assert result is not None
    assert result.success_rate_ci95 == pytest.approx(stats.wilson(282 * rate, 282))
    assert result.progress_rate_ci95 == pytest.approx(stats.wilson(282 * rate, 282))


def test_the_interval_of_held_out_success_knows_that_families_differ() -> None:
    """All 112 tasks of BabyAI solved, none of the others: that families differ is no error of their sum."""
    groups = group_by_family(
        score(family, i, family == "babyai", float(family == "babyai"))
        for family, n in WEIGHTS.items()
        for i in range(n)
    )
    result, _ = held_out_score(groups, WEIGHTS)
    assert result is not None
    low, high = result.success_rate_ci95
    assert low < 112 / 282 < high
    assert high - low < 0.3 * np.subtract(*stats.wilson(112, 282)[::-1])


def test_held_out_score_reproduces_the_published_average() -> None:
    """LLaMA-3-8B-Instruct, AgentRefine main table: 45.5, 7.8, 10.0 and 0.0 % give 22.69 %."""
    published = {"babyai": 51, "sciworld": 7, "pddl": 6, "jericho": 0}
    groups = group_by_family(
        score(family, i, i < published[family], float(i < published[family]))
        for family, n in WEIGHTS.items()
        for i in range(n)
    )
    result, why = held_out_score(groups, WEIGHTS)
    assert why is None
    assert result is not None
    assert 100 * result.success_rate == pytest.approx(22.69, abs=0.02)
    assert result.success_rate_ci95[0] < result.success_rate < result.success_rate_ci95[1]


def test_held_out_score_is_withheld_from_an_incomplete_family() -> None:
    groups = group_by_family(
        score(family, i, True, 1.0) for family, n in WEIGHTS.items() for i in range(n - (family == "pddl"))
    )
    result, why = held_out_score(groups, WEIGHTS)
    assert result is None
    assert why == "incomplete: pddl (59/60)"


def test_a_duplicate_does_not_stand_for_a_missing_attempt() -> None:
    """Two attempts at every task: 564 episodes are there, one of them twice and one not at all."""
    attempts = [
        replace(score(family, i, True, 1.0), sample=sample)
        for family, n in WEIGHTS.items()
        for i in range(n)
        for sample in range(2)
    ]
    assert held_out_score(group_by_family(attempts), WEIGHTS, 2)[1] is None
    doubled = [*attempts[:-1], attempts[-2]]
    assert len(doubled) == 564
    result, why = held_out_score(group_by_family(doubled), WEIGHTS, 2)
    assert result is None
    assert why == "incomplete: jericho (39/40 attempts)"


def test_tasks_are_counted_once_however_often_they_were_tried() -> None:
    attempts = [replace(score("toy", i, True, 1.0), sample=k) for i in range(5) for k in range(3)]
    found = family_score(attempts)
    assert (found.n, found.episodes) == (5, 15)


def test_held_out_weights_are_the_published_ones() -> None:
    """Every published row whose four families are reported has an average under these weights between its families."""
    table = Path(__file__).parents[2] / "results" / "published" / "main.csv"
    with table.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if all(row[f"{f}_success"] for f in WEIGHTS)]
    llama = next(row for row in rows if row["method"] == "LLaMA-3-8B-Instruct")
    average = sum(n * float(llama[f"{f}_progress"]) for f, n in WEIGHTS.items()) / sum(WEIGHTS.values())
    assert average == pytest.approx(45.45, abs=0.01)


def test_labels_that_are_ours_for_a_part_of_a_family_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One Jericho game has official labels, the other nineteen have ours."""
    whose = {"jericho": ["official", "ours"], "babyai": "official"}
    run = make_run(
        tmp_path / "run", {"jericho": [(True, 1.0)] * 2, "babyai": [(True, 1.0)] * 2}, labels=whose
    )
    assert main(["show", str(run)]) == 0
    assert "ours for Jericho\n" in capsys.readouterr().out


def test_tasks_that_are_not_the_published_ones_are_named_wherever_scores_stand_beside_published_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A goal was edited: `show` (and the page of `report`, which has its lines), `leaderboard` and `paper` mark the
    family like own labels."""
    outcomes = {"babyai": [(True, 1.0)] * 2, "pddl": [(True, 1.0)] * 2}
    changed = make_run(tmp_path / "changed", outcomes, goals={"babyai": "go to the red ball now"})
    whole = make_run(tmp_path / "whole", outcomes)
    said = {}
    for run in (changed, whole):
        texts = []
        board = ["leaderboard", run]
        for command in (["show", run], board, [*board, "--format", "csv"], ["paper", "table1", run]):
            assert main(list(map(str, command))) == 0
            texts.append(" ".join(capsys.readouterr().out.split()))
        said[run.name] = texts
    for text in said["changed"]:
        assert re.search("BabyAI are not|changed for BabyAI|babyai=official,changed", text)
    assert "#" in said["changed"][1]
    assert not any("BabyAI are not" in text or "changed for" in text for text in said["whole"])


@pytest.mark.data
def test_the_published_tasks_are_those_of_the_stored_hashes(published_data: Path) -> None:
    for family, spec in specs().items():
        if "agentboard" in spec.suites.expected:
            tasks = spec.suites.load_tasks("agentboard", published_data, 0)
            whose = {family: ",".join({task.labels for task in tasks})}
            assert mark_changed(whose, [(task.id, task.content_hash) for task in tasks]) == whose
            first = [(tasks[0].id, "0" * 64)]
            assert mark_changed({family: tasks[0].labels}, first) == {family: f"{tasks[0].labels},changed"}
