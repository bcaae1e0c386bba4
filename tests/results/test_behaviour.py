"""Behaviour figures: each against episodes made by hand, whose counts a person can check."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_runs import made_episode, make_task

from evalharness.records.episode import Episode, Turn, read_episode
from evalharness.results.behaviour.figures import FIGURES, EpisodeFacts, count_all, episode_columns
from evalharness.results.behaviour.turns import ActionReader, action_reader, longest_loop, read_turns, runs_of

Step = tuple[str | None, str, float, bool]
"""(action, observation, progress, valid)"""


def episode(
    steps: Sequence[Step],
    *,
    family: str = "alfworld",
    thoughts: Sequence[str] = (),
    errors: Sequence[tuple[str, ...]] = (),
) -> Episode:
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
    made = made_episode(make_task(family, 0))
    solved = last == 1.0
    return replace(made, first_observation="start", turns=turns, progress=last, success=solved, solved=solved)


def figures(
    made: Episode, how: ActionReader | None = None, max_turns: int = 30
) -> dict[str, tuple[float, float]]:
    counts = count_all(EpisodeFacts(made, read_turns(made, how), max_turns))
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
    from evalharness.envs import specs
    from evalharness.protocol.perturb import make_surface

    name = "capitals"
    names = list(specs()["alfworld"].actions.wording.perturbations)
    if name not in names:
        name = next(
            n
            for n in names
            if make_surface(specs()["alfworld"], n).perturbed.templates["go"] != "go to {receptacle}"
        )
    said = make_surface(specs()["alfworld"], name).from_world("go to desk 1")
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
    assert episode_columns(EpisodeFacts(made, read_turns(made))) == {
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
