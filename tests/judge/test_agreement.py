"""How far raters agree: figures from counts, a scripted judge of known error rate, the simulator's rule."""

from __future__ import annotations

import asyncio
import csv
import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from chat_server import ChatServer
from command_line import evalharness
from made_runs import made_episode, make_task
from scipy.stats import binomtest

from evalharness.cli import main
from evalharness.judge.agreement import (
    Counts,
    agreement_of,
    compare_raters,
    find_comparable_agreement,
    read_published_agreement,
)
from evalharness.judge.truth import truth
from evalharness.judge.verdict import Rater, Verdict
from evalharness.records.episode import Episode
from evalharness.stats import cohen_kappa, kappa_interval, wilson

from .runs import REFUSED, make_judged_run
from .scripted_judge import judge


def test_the_posters_counts_give_the_posters_figures() -> None:
    """47/9/3/41: accuracy 0.88, kappa 0.76."""
    row = read_published_agreement()
    assert row.counts == Counts(47, 9, 3, 41)
    assert row.accuracy.value == pytest.approx(0.88)
    assert row.accuracy.interval == wilson(88, 100)
    assert row.kappa == pytest.approx(0.76)
    assert row.kappa_interval == pytest.approx((0.604, 0.857), abs=0.004)
    assert row.precision.value == pytest.approx(41 / 50)
    assert row.recall.value == pytest.approx(41 / 44)
    assert row.mcnemar_p == pytest.approx(binomtest(3, 12).pvalue)


def test_kappa_against_an_independent_count() -> None:
    """By its definition over single turns: observed against expected agreement."""
    draw = random.Random(1)
    first = [draw.random() < 0.3 for _ in range(200)]
    second = [w if draw.random() < 0.8 else not w for w in first]
    observed = np.mean(np.equal(first, second))
    expected = np.mean([a == b for a in first for b in second])
    pairs = list(zip(first, second, strict=True))
    counts = [pairs.count(pair) for pair in ((True, True), (True, False), (False, True), (False, False))]
    assert cohen_kappa(counts) == pytest.approx((observed - expected) / (1 - expected))
    assert cohen_kappa([50, 0, 0, 50]) == 1
    assert cohen_kappa([0, 50, 50, 0]) == -1
    assert cohen_kappa([25, 25, 25, 25]) == 0
    assert cohen_kappa([0, 0, 0, 50]) is None
    assert kappa_interval([0, 0, 0, 50]) is None


@pytest.mark.slow
@pytest.mark.parametrize(
    "shares",
    [(0.41, 0.03, 0.09, 0.47), (0.08, 0.04, 0.08, 0.80), (0.25, 0.25, 0.25, 0.25), (0.38, 0.01, 0.01, 0.60)],
)
def test_the_interval_of_kappa_covers(shares: Sequence[float]) -> None:
    """The true kappa lies in about 95 % of the intervals of simulated tables of 100 turns."""
    true = cohen_kappa([1000 * share for share in shares])
    assert true is not None
    tables = np.random.default_rng(5).multinomial(100, shares, size=150)
    intervals = [kappa_interval(table) for table in tables]
    covered = sum(i is not None and i[0] <= true <= i[1] for i in intervals)
    assert binomtest(covered, len(tables), 0.95).pvalue > 0.001, covered / len(tables)


def test_perfect_agreement_has_an_interval_too() -> None:
    row = agreement_of("a", "b", Counts(50, 0, 0, 50))
    assert row.kappa == 1
    assert row.kappa_interval is not None
    assert row.kappa_interval[0] < 0.97
    assert row.kappa_interval[1] == 1
    alike = agreement_of("a", "b", Counts(50, 0, 0, 0))
    assert (alike.kappa, alike.precision.value, alike.recall.value) == (None, None, None)


def rater(name: str, said: dict[int, bool | None], families: str = "ab") -> Rater:
    keys = {turn: (f"{families[turn % len(families)]}/1", 0, turn) for turn in said}
    return Rater(
        name,
        {keys[turn]: Verdict(wrong) for turn, wrong in said.items()},
        {key: key[0][0] for key in keys.values()},
    )


def test_only_turns_that_both_judged_count_and_families_stand_apart() -> None:
    first = rater("one", {0: True, 1: False, 2: True, 3: False, 4: True, 9: True})
    second = rater("two", {0: True, 1: True, 2: False, 3: False, 4: None, 8: False})
    both, *families = compare_raters(first, second)
    assert both.counts == Counts(1, 1, 1, 1)
    assert both.left_out == 1
    assert [(row.family, row.counts) for row in families] == [
        ("a", Counts(0, 0, 1, 1)),
        ("b", Counts(1, 1, 0, 0)),
    ]
    assert compare_raters(first, rater("other", {7: True})) == []


async def test_the_kappa_of_a_judge_of_known_error_rate_is_inside_its_interval(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """A judge that says the opposite of the truth in 15 % of turns, over the whole line: asked, kept, compared."""
    run = make_judged_run(tmp_path / "run")
    rate, wrong = 0.15, 0.4
    out = run / "judgements" / "toy"
    async with ChatServer(
        answer=judge(lambda turn: turn["observation"] == REFUSED, rate)
    ).running() as server:
        words = ("judge", run, "--judge", server.url, "--judge-name", "toy", "-o", out, "--turns", 400)
        done = await asyncio.to_thread(evalharness, environment, *words)
        assert done.returncode == 0, done.stderr
    result = tmp_path / "agreement.json"
    done = await asyncio.to_thread(
        evalharness,
        environment,
        "judge",
        "agreement",
        "simulator",
        out,
        "--json",
        result,
        "--csv",
        tmp_path / "a.csv",
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(result.read_text())
    assert [row["family"] for row in rows] == ["all", "babyai", "pddl"]
    row = rows[0]
    assert row["n"] == 400
    low, high = row["accuracy"]["interval"]
    assert low <= 1 - rate <= high
    chance = wrong * (wrong * (1 - rate) + (1 - wrong) * rate)
    chance += (1 - wrong) * (wrong * rate + (1 - wrong) * (1 - rate))
    low, high = row["kappa_interval"]
    assert low <= (1 - rate - chance) / (1 - chance) <= high
    assert low > 0.5
    assert "simulator \\ toy" in done.stdout
    # Turns drawn at random: kappa is not that of the published design.
    assert "human (published)" not in done.stdout
    table = list(csv.DictReader((tmp_path / "a.csv").open()))
    assert float(table[0]["kappa"]) == row["kappa"]
    assert len(table) == 3


def test_the_published_kappa_stands_only_beside_turns_that_were_drawn_as_its_were() -> None:
    drawn_alike = agreement_of("person", "judge", Counts(45, 10, 5, 40))
    assert find_comparable_agreement([drawn_alike]) == [read_published_agreement()]
    assert find_comparable_agreement([agreement_of("person", "judge", Counts(80, 5, 5, 10))]) == []


def episode(turns: Sequence[tuple[str | None, str, float, bool]], start: str = "start") -> Episode:
    """Turns as (action, observation, progress, valid)."""
    made = made_episode(make_task("babyai", 0), turns=len(turns))
    played = tuple(
        replace(turn, action=action, observation=seen, progress=progress, valid=valid)
        for turn, (action, seen, progress, valid) in zip(made.turns, turns, strict=True)
    )
    return replace(made, turns=played, first_observation=start)


def why(made: Episode) -> list[str | None]:
    return [verdict.kind for verdict in truth(made)]


def test_the_simulators_rule() -> None:
    made = episode(
        [
            (None, "no action could be read", 0, False),
            ("jump", "Nothing happens.", 0, False),
            ("go east", "a hall", 0, True),
            ("look", "a hall", 0, True),
            ("take lamp", "taken", 0.5, True),
        ]
    )
    assert why(made) == ["no_action", "refused", None, "no_effect", None]
    assert [verdict.wrong for verdict in truth(made)] == [True, True, False, True, False]


def test_coming_back_from_somewhere_new_is_exploration_and_from_somewhere_known_is_undone() -> None:
    there_and_back = [("go east", "a hall", 0.0, True), ("go west", "start", 0.0, True)]
    assert why(episode(there_and_back)) == [None, None]
    again = why(episode(there_and_back * 2))
    # The second visit shows nothing new; the way back is undone by the next visit in turn, the last by nobody.
    assert again == [None, "undone", "undone", None]
    # What made progress, or was followed by something else, was not undone.
    assert why(episode([*there_and_back, ("go east", "a hall", 0.5, True), ("go west", "start", 0.5, True)]))[
        2:
    ] == [
        None,
        None,
    ]
    refused_between = [
        ("go east", "a hall", 0.0, True),
        ("jump", "no", 0.0, False),
        ("go west", "start", 0.0, True),
    ]
    assert why(episode([*there_and_back, *refused_between]))[2:4] == ["undone", "refused"]


def test_where_the_environment_tells_the_effect_it_is_believed() -> None:
    made = episode([("wait", "start", 0.0, True), ("go", "new", 0.0, True)])
    told = tuple(replace(turn, no_effect=flag) for turn, flag in zip(made.turns, (False, True), strict=True))
    assert why(made) == ["no_effect", None]
    assert why(replace(made, turns=told)) == [None, "no_effect"]


def test_raters_of_one_name_are_told_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_judged_run(tmp_path / "run", tasks=1, turns=3)
    for folder, label in (("a", "right"), ("b", "wrong")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "ann.csv").write_text(
            f"task_id,sample,turn,label\nbabyai/agentboard/000,0,1,{label}\n"
        )
        words = [
            "judge",
            "label",
            str(run),
            "--rater",
            f"ann-{folder}",
            "--import",
            str(tmp_path / folder / "ann.csv"),
        ]
        assert main(words) == 0
        manifest = run / "labels" / f"ann-{folder}" / "manifest.json"
        manifest.write_text(manifest.read_text().replace(f'"rater": "ann-{folder}"', '"rater": "ann"'))
    folders = [str(run / "labels" / f"ann-{folder}") for folder in "ab"]
    assert main(["judge", "agreement", "simulator", *folders]) == 0
    shown = capsys.readouterr().out
    assert "simulator \\ ann (ann-a)" in shown
    assert "simulator \\ ann (ann-b)" in shown


def test_what_cannot_be_compared_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_judged_run(tmp_path / "run", tasks=1, turns=3)
    table = tmp_path / "mine.csv"
    for words, message in (
        (["simulator"], "needs two raters"),
        (["simulator", "mine.csv"], "with --run RUN"),
        (["simulator", "simulator"], "the same rater was given twice"),
        (["simulator", str(run), "--run", str(run)], "is no rater"),
        (["simulator", str(table), "--run", str(run)], "is no rater"),
    ):
        assert main(["judge", "agreement", *words]) == 2
        assert message in capsys.readouterr().err
    for text, message in (
        (
            "task_id,sample,turn,label\nbabyai/agentboard/000,0,99,right\n",
            "has no babyai/agentboard/000 #0 turn 99",
        ),
        ("task_id,sample,turn,label\nbabyai/agentboard/000,0,1,\n", "no verdict on the same turn"),
        ("task_id,sample,turn,label\nbabyai/agentboard/000,0,1,perhaps\n", "line 2: the label 'perhaps'"),
        (
            "task_id,sample,turn,label\nbabyai/agentboard/000,zero,1,right\n",
            "line 2: sample and turn are whole",
        ),
        ("task_id,sample,turn\n", "has no column 'label'"),
        ("", "has no column 'task_id'"),
    ):
        table.write_text(text)
        assert main(["judge", "agreement", "simulator", str(table), "--run", str(run)]) == 2
        assert message in capsys.readouterr().err
    table.write_text("task_id,sample,turn,label,kind\nbabyai/agentboard/000,0,1,wrong,place\n")
    assert main(["judge", "agreement", "simulator", str(table), "--run", str(run)]) == 0
    assert "simulator \\ mine" in capsys.readouterr().out
