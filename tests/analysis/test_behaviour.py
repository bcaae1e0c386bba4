"""Behaviour figures: each against episodes made by hand, whose counts a person can check."""

from __future__ import annotations

import csv
import doctest
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_runs import make_run, make_task

from evalharness import stats
from evalharness.analysis.behaviour import (
    FIGURES,
    ActionReader,
    Read,
    action_reader,
    behaviour_rows,
    difference_rows,
    episode_columns,
    load_behaviour,
    read_turns,
)
from evalharness.analysis.behaviour.figures import count_all
from evalharness.analysis.behaviour.turns import longest_loop, runs_of
from evalharness.analysis.tables import data_frames, write_parquet
from evalharness.cli import main
from evalharness.records.episode import Episode, Turn
from evalharness.records.shapes import read_episode
from evalharness.records.store import EPISODES

Step = tuple[str | None, str, float, bool]
"""(action, observation, progress, valid)"""


def episode(
    steps: Sequence[Step],
    *,
    family: str = "alfworld",
    thoughts: Sequence[str] = (),
    errors: Sequence[tuple[str, ...]] = (),
) -> Episode:
    task = make_task(family, 0)
    turns = tuple(
        Turn(
            turn=i + 1,
            reply=f"reply of {action}",
            thought=thoughts[i] if thoughts else "",
            action=action,
            observation=observation,
            progress=progress,
            valid=valid,
            format_errors=errors[i] if errors else (() if action is not None else ("no_action",)),
        )
        for i, (action, observation, progress, valid) in enumerate(steps)
    )
    last = turns[-1].progress
    return Episode(
        task_id=task.id, family=family, suite=task.suite, kind=task.kind, difficulty=task.difficulty,
        labels=task.labels, sample=0, perturbation=None, goal=task.goal, first_observation="start",
        turns=turns, progress=last, success=last == 1.0, solved=last == 1.0, ended_by="turn_limit", trims=(),
        subgoals=task.subgoals, task_hash=task.content_hash, prompt_hash="p", policy_s=0.0, environment_s=0.0,
        started=0.0, wall_s=0.0,
    )  # fmt: skip


def figures(
    made: Episode, how: ActionReader | None = None, max_turns: int = 30
) -> dict[str, tuple[float, float]]:
    counts = count_all(Read(made, read_turns(made, how), max_turns))
    return {figure.name: pair for figure, pair in zip(FIGURES, counts, strict=True)}


def test_format_errors_by_kind_and_invalid_actions() -> None:
    made = episode(
        [("a", "x", 0, True), (None, "?", 0, False), ("b", "x", 0, False), ("c", "x", 0, True)],
        errors=[("several_actions", "invented_observation"), ("empty",), (), ("several_actions",)],
    )
    found = figures(made)
    assert found["format_error_rate"] == (3, 4)
    assert found["format_error_rate_several_actions"] == (2, 4)
    assert found["format_error_rate_invented_observation"] == (1, 4)
    assert found["format_error_rate_empty"] == (1, 4)
    assert found["format_error_rate_truncated"] == (0, 4)
    assert found["invalid_action_rate"] == (1, 3)  # the turn without an action has none to be invalid
    assert found["error_turn_rate"] == (2, 4)  # a format error whose action was carried out is no error turn


def test_error_runs_are_maximal_and_their_distribution_adds_up() -> None:
    flags = "E.EE.EEEE..EEEEEEEEEEEE"
    made = episode([(f"a{i}", f"o{i}", 0, flag != "E") for i, flag in enumerate(flags)])
    found = figures(made)
    assert found["error_run_length"] == (1 + 2 + 4 + 12, 4)
    of = {name.removeprefix("error_runs_of_"): pair for name, pair in found.items() if "runs_of" in name}
    assert of == {"1": (1, 4), "2": (1, 4), "3": (0, 4), "4_5": (1, 4), "6_10": (0, 4), "11_up": (1, 4)}
    assert found["longest_error_run"] == (12, 1)


def test_repetition_needs_the_same_observation_and_the_same_move() -> None:
    made = episode(
        [
            ("look", "room", 0, True),  # on start
            ("look", "room", 0, True),  # on room: new
            ("Look. ", "room", 0, True),  # the same move on the same observation
            ("open door", "hall", 0, True),
            ("look", "hall", 0, True),  # the same move on another observation
        ]
    )
    assert figures(made)["repetition_rate"] == (1, 5)


def test_a_malformed_reply_said_again_is_a_repetition_too() -> None:
    assert figures(episode([(None, "start", 0, False)] * 3))["repetition_rate"] == (2, 3)


@pytest.mark.parametrize(
    ("steps", "length"),
    [("", 0), ("a", 0), ("aba", 0), ("aa", 2), ("abab", 4), ("abcabcab", 8), ("xaaay", 3), ("abcdabce", 0)],
)
def test_longest_loop(steps: str, length: int) -> None:
    assert longest_loop(steps) == length


@given(st.text("ab", max_size=12))
def test_longest_loop_is_the_longest_periodic_stretch(steps: str) -> None:
    """Against the definition itself, by trying every stretch and every period."""
    stretches = [steps[i:j] for i in range(len(steps)) for j in range(i + 2, len(steps) + 1)]
    periodic = [
        len(s)
        for s in stretches
        if any(all(s[k] == s[k - p] for k in range(p, len(s))) for p in range(1, len(s) // 2 + 1))
    ]
    assert longest_loop(steps) == max(periodic, default=0)


@given(st.lists(st.booleans()))
def test_error_runs_hold_every_error_turn_once(flags: list[bool]) -> None:
    assert sum(runs_of(flags)) == sum(flags)


def test_recovery_looks_at_what_follows_an_error() -> None:
    made = episode(
        [
            ("a", "o", 0.0, False),  # next: the same move, an error; progress in the third turn after it
            ("a", "o", 0.0, False),  # next: another move, valid; progress in the second
            ("b", "p", 0.0, True),
            ("c", "q", 0.5, True),
            ("d", "q", 0.5, False),  # next: another, valid, no progress any more
            ("e", "r", 0.5, True),
            ("f", "r", 0.5, False),  # last: nothing follows
        ]
    )
    found = figures(made)
    assert found["recovery_different"] == (2, 3)
    assert found["recovery_valid"] == (2, 3)
    assert found["recovery_progress"] == (2, 3)


def test_progress_four_turns_after_an_error_is_too_late() -> None:
    steps: list[Step] = [("a", "o", 0.0, False), *[(f"b{i}", "o", 0.0, True) for i in range(3)]]
    assert figures(episode([*steps, ("c", "o", 1.0, True)]))["recovery_progress"] == (0, 1)


def test_exploration_and_help() -> None:
    made = episode(
        [
            ("check valid actions", "list", 0, True),
            ("go to desk 1", "desk", 0, True),
            ("Go to desk 1.", "desk", 0, True),
            (None, "what?", 0, False),
            ("go to shelf 2", "Nothing happens.", 0, False),
        ]
    )
    found = figures(made, action_reader("alfworld", None))
    assert found["distinct_observations"] == (4, 5)
    assert found["distinct_actions"] == (3, 5)
    assert found["distinct_places"] == (1, 5)  # the shelf was never reached
    assert found["help_rate"] == (1, 4)
    assert figures(made)["distinct_places"] == (0, 0)  # a family that tells no places has no such figure


def test_places_of_scienceworld() -> None:
    made = episode(
        [
            ("look around", "This room is called the hallway. In it, you see: ", 0, True),
            ("move orange to bowl", "You move the orange to the bowl.", 0, True),
            ("go to kitchen", "You move to the kitchen.", 0, True),
        ],
        family="sciworld",
    )
    assert [turn.place for turn in read_turns(made, action_reader("sciworld", None))] == [
        "hallway",
        "hallway",
        "kitchen",
    ]


def test_a_perturbed_action_is_read_in_the_environments_own_words() -> None:
    from envs import specs
    from evalharness.protocol.perturb import Voice

    name = "capitals"
    names = list(specs()["alfworld"].wording.perturbations)
    if name not in names:
        name = next(
            n for n in names if Voice(specs()["alfworld"], n).surface.templates["go"] != "go to {receptacle}"
        )
    said = Voice(specs()["alfworld"], name).action("go to desk 1")
    assert said != "go to desk 1"
    made = replace(episode([(said, "On the desk 1, you see nothing.", 0, True)]), perturbation=name)
    assert read_turns(made, action_reader("alfworld", name))[0].place == "desk 1"


def test_first_progress_counts_a_hopeless_episode_as_the_turn_limit() -> None:
    steps: list[Step] = [("a", "x", 0.0, True), ("b", "x", 0.25, True), ("c", "x", 0.5, True)]
    assert figures(episode(steps))["first_progress_turn"] == (2, 1)
    assert figures(episode(steps[:1]), max_turns=12)["first_progress_turn"] == (12, 1)
    assert figures(episode(steps[:1]))["progress_episode_rate"] == (0, 1)


def test_a_turn_progresses_where_progress_is_higher_than_ever_before() -> None:
    made = episode([("a", "x", p, True) for p in (0.5, 0.25, 0.5, 0.75)])
    assert [turn.progressed for turn in read_turns(made)] == [True, False, False, True]


def test_thoughts() -> None:
    made = episode(
        [("look", "x", 0, True)] * 4,
        thoughts=["I go to the door", "", "I go to the window now", "I go to the door"],
    )
    found = figures(made)
    assert found["thought_rate"] == (3, 4)
    assert found["thought_words"] == (5 + 6 + 5, 3)
    # After the first thought: 4 runs of three words, of which "to the window" and "the window now" are new; then 3 old.
    assert found["thought_novelty"] == (2, 7)


def test_thought_action_consistency_is_about_the_names_in_the_action() -> None:
    made = episode(
        [
            ("take cup 1 from shelf 2", "x", 0, True),
            ("take cup 1 from shelf 2", "x", 0, True),
            ("look", "x", 0, True),
            ("go to desk 1", "x", 0, True),
            ("dance", "x", 0, False),
        ],
        thoughts=["The Cup is on the shelf.", "I take the cup.", "I look.", "", "I dance."],
    )
    facts = read_turns(made, action_reader("alfworld", None))
    assert [turn.names_arguments for turn in facts] == [True, False, None, None, None]


def test_valid_actions_without_effect_are_counted_apart_from_errors() -> None:
    made = episode([("a", "o", 0, True), ("b", "o", 0, True), ("c", "o", 0, False), ("d", "o", 0, True)])
    reported = (True, False, False, None)
    turns = tuple(replace(turn, no_effect=flag) for turn, flag in zip(made.turns, reported, strict=True))
    found = figures(replace(made, turns=turns))
    assert found["no_effect_rate"] == (1, 2)  # of the valid ones whose effect is reported
    assert found["error_turn_rate"] == (1, 4)
    assert figures(made)["no_effect_rate"] == (0, 0)  # nothing reported, no row
    assert read_episode(json.dumps(replace(made, turns=turns).to_json()).encode()).turns == turns
    older = replace(made, turns=turns).to_json()
    for turn in older["turns"]:
        del turn["no_effect"]
    assert read_episode(json.dumps(older).encode()).turns == made.turns


def test_columns_of_an_episode() -> None:
    made = episode([("a", "o", 0.0, False), ("a", "o", 0.0, False), ("b", "p", 0.5, True)])
    assert episode_columns(Read(made, read_turns(made))) == {
        "error_turns": 2, "longest_error_run": 2, "no_effect_turns": None, "repeated_turns": 0, "longest_loop": 0,
        "help_turns": 0,
        "distinct_observations": 2, "distinct_actions": 2, "distinct_places": None, "first_progress_turn": 3,
    }  # fmt: skip


def test_every_figure_has_its_formula_in_the_docs() -> None:
    text = (Path(__file__).parents[2] / "docs" / "behaviour.md").read_text(encoding="utf-8")
    for figure in FIGURES:
        if figure.name.startswith("format_error_rate_"):
            assert (
                figure.name.removeprefix("format_error_rate_") in text or "`format_error_rate_KIND`" in text
            )
        elif figure.name.startswith("error_runs_of_"):
            assert figure.name.removeprefix("error_runs_of") in text
        else:
            assert f"`{figure.name}`" in text


SOLVED, HALF, NOTHING = (True, 1.0), (False, 0.5), (False, 0.0)


def test_rows_pool_turns_and_their_intervals_hold_the_value(tmp_path: Path) -> None:
    run = load_behaviour(make_run(tmp_path / "a", {"babyai": [SOLVED, HALF, NOTHING], "pddl": [NOTHING] * 2}))
    rows = {(row.family, row.figure): row for row in behaviour_rows(run)}
    # Made episodes look three times in the same room.
    assert rows["all", "repetition_rate"].value == pytest.approx(2 / 3)
    assert rows["all", "repetition_rate"].n == 15
    assert rows["babyai", "progress_episode_rate"].value == pytest.approx(2 / 3)
    assert rows["pddl", "progress_episode_rate"].value == 0.0
    assert rows["pddl", "progress_episode_rate"].high > 0.5  # two tasks do not show that it is rare
    assert rows["all", "first_progress_turn"].value == pytest.approx((2 + 2 + 30 + 30 + 30) / 5)
    assert not any(figure == "recovery_valid" for _, figure in rows)  # there is no error to recover from
    for row in rows.values():
        assert row.low <= row.value <= row.high


def test_two_runs_are_compared_over_their_common_tasks(tmp_path: Path) -> None:
    a = load_behaviour(make_run(tmp_path / "a", {"babyai": [NOTHING] * 4 + [SOLVED] * 4}))
    b = load_behaviour(make_run(tmp_path / "b", {"babyai": [SOLVED] * 4 + [NOTHING] * 2, "pddl": [SOLVED]}))
    rows = {row.figure: row for row in difference_rows(a, b)}
    row = rows["first_progress_turn"]
    assert row.n == 6
    assert row.baseline == pytest.approx((4 * 30 + 2 * 2) / 6)
    assert row.difference == pytest.approx((4 * 2 + 2 * 30) / 6 - (4 * 30 + 2 * 2) / 6)
    assert row.low < row.difference < row.high
    same = {row.figure: row for row in difference_rows(a, a)}["first_progress_turn"]
    assert (same.difference, same.low, same.high) == (0.0, 0.0, 0.0)  # paired: the same task is drawn in both


def test_other_turn_limits_are_not_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = make_run(tmp_path / "a", {"babyai": [SOLVED]})
    b = make_run(tmp_path / "b", {"babyai": [SOLVED]}, max_turns=10)
    assert main(["analyze", str(a), str(b)]) == 2
    assert "--max-turns" in capsys.readouterr().err


@pytest.mark.slow
def test_ratio_intervals_cover_what_they_should() -> None:
    """95 % intervals of a ratio over 40 tasks with episodes of uneven length: within what 300 trials can tell."""
    generator = np.random.default_rng(1)
    covered = 0
    for _ in range(300):
        base = generator.integers(1, 31, size=40)
        rate = generator.beta(2, 6, size=40)
        counts = np.stack([generator.binomial(base, rate), base], axis=-1)[:, None, :].astype(float)
        low, high = stats.bootstrap_ratios([counts])
        covered += low[0] <= 0.25 <= high[0]
    assert 0.91 <= covered / 300 <= 0.985


def test_analyze_writes_what_it_shows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    a = make_run(tmp_path / "a", {"babyai": [SOLVED, HALF], "pddl": [NOTHING]}, name="=evil\x1b[31m")
    b = make_run(tmp_path / "b", {"babyai": [SOLVED, SOLVED], "pddl": [HALF]})
    out, table = tmp_path / "out.json", tmp_path / "out.csv"
    assert main(["analyze", str(a), str(b), "--json", str(out), "--csv", str(table)]) == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "turns that repeat a move" in shown
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert {row["model_name"] for row in rows} == {"'=evil\x1b[31m", "model"}
    report = json.loads(out.read_text())
    assert len(report["runs"]) == 2
    assert {row["family"] for row in report["differences"][0]["figures"]} == {"all", "babyai", "pddl"}
    assert main(["analyze", str(a), "--family", "babyia"]) == 2
    assert "did you mean 'babyai'" in capsys.readouterr().err
    assert main(["analyze", str(a), "--family", "babyai"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines()[1:])) <= 80


def test_the_tables_hold_the_columns_and_older_tables_are_made_anew(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", {"babyai": [SOLVED, NOTHING]})
    write_parquet(folder)
    episodes, turns = data_frames(folder)
    assert episodes["first_progress_turn"].tolist() == [2, pd.NA]
    assert episodes["repeated_turns"].tolist() == [2, 2]
    assert turns["repeated"].tolist() == [False, True, True] * 2
    assert episodes["no_effect_turns"].tolist() == [pd.NA, pd.NA]
    assert turns["no_effect"].tolist() == [pd.NA] * 6
    old = pd.read_parquet(folder / "turns.parquet").drop(columns=["repeated"])
    old.to_parquet(folder / "turns.parquet")
    assert (folder / "turns.parquet").stat().st_mtime_ns >= (folder / EPISODES).stat().st_mtime_ns
    assert "repeated" in data_frames(folder)[1]


def test_the_examples_of_the_page_hold(tmp_path: Path) -> None:
    page = Path(__file__).parents[2] / "docs" / "behaviour.md"
    make_run(tmp_path / "oracle", {"babyai": [SOLVED]})
    examples = "\n".join(re.findall(r"```pycon\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL))
    test = doctest.DocTestParser().get_doctest(examples, {"folder": tmp_path}, page.name, str(page), 0)
    assert len(test.examples) == 3
    assert doctest.DocTestRunner().run(test).failed == 0


def test_a_mean_error_run_has_a_width_where_every_run_has_one_turn() -> None:
    tasks = np.array([[1.0, 1.0]] * 4 + [[0.0, 0.0]] * 6)
    low, high = stats.mean_length_interval([tasks], 30)
    assert low == 1.0
    assert 1.2 < high < 3.0
    assert np.isnan(stats.mean_length_interval([tasks[4:]], 30)).all()


def test_no_limit_of_a_mean_error_run_is_beyond_the_turn_limit() -> None:
    tasks = np.array([[1.0, 1.0]] * 17 + [[30.0, 1.0]] * 3)
    low, high = stats.mean_length_interval([tasks], 30)
    assert 1.0 <= low < 107 / 20 < high <= 30.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "n"), [("60 % of the tasks short, 10 % long", 60), ("errors in 40 % of the tasks", 20)]
)
def test_the_interval_of_a_mean_error_run_holds_the_truth_more_often(shape: str, n: int) -> None:
    """300 simulations; benchmarks/coverage_ratios.py makes more, of more shapes."""
    from coverage_ratios import SHAPES, length_coverage

    bootstrap, ours = length_coverage(SHAPES[shape], n, 300)
    assert bootstrap < 0.92 < ours


def test_the_row_of_a_mean_error_run_has_that_interval(tmp_path: Path) -> None:
    run = load_behaviour(make_run(tmp_path / "run", {"babyai": [(False, 0.0)] * 3}))
    index = next(i for i, figure in enumerate(FIGURES) if figure.name == "error_run_length")
    counts = np.zeros((3, len(FIGURES), 2))
    counts[:, index] = [[1, 1], [4, 2], [9, 1]]
    tasks = {"babyai": dict(zip(run.tasks["babyai"], counts, strict=True))}
    made = replace(run, tasks=tasks)
    row = next(row for row in behaviour_rows(made) if row.figure == "error_run_length")
    assert (row.low, row.high) == stats.mean_length_interval([counts[:, index]], made.max_turns)
    difference = next(row for row in difference_rows(made, made) if row.figure == "error_run_length")
    assert difference.low < difference.difference == 0 < difference.high


def test_analyze_says_that_nothing_corrects_for_the_number_of_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = (make_run(tmp_path / name, {"babyai": [(True, 1.0)] * 3}) for name in ("a", "b"))
    for arguments in ([one], [one, other]):
        assert main(["analyze", *map(str, arguments), "--json", str(tmp_path / "a.json")]) == 0
        text = " ".join(capsys.readouterr().out.split())
        assert "none is corrected for their number" in text
        assert json.loads((tmp_path / "a.json").read_text())["corrected_for_number_of_figures"] is False
