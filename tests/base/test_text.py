"""Texts for people."""

from __future__ import annotations

import pytest

from evalharness.base.text import fold, inert, subgoal_words


@pytest.mark.parametrize(
    ("label", "said"),
    [
        (r"^(?=.* you see)(?=.*a egg \d+)", "you see an egg"),
        (r"You heat the egg \d+ using the", "You heat the egg using the ..."),
        ("There is a blue key **", "There is a blue key ..."),
        (
            "the thermometer measures a temperature of (-?[0-9]|-?[1-9][0-9]{2}) degrees celsius",
            "the thermometer measures a temperature of N degrees celsius",
        ),
        ("There is a red ball * in front of you", "There is a red ball ... in front of you"),
        ("Wheel r1 is inflated.", "Wheel r1 is inflated."),
        ("open the (green) door?", "open the (green) door?"),
        ("", ""),
    ],
)  # fmt: skip
def test_a_subgoal_s_pattern_is_said_in_words(label: str, said: str) -> None:
    assert subgoal_words(label) == said


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("org/Llama-3.1-8B-Instruct", 10, ["org/Llama-", "3.1-8B-", "Instruct"]),
        ("sweep of 8 runs", 7, ["sweep", "of 8", "runs"]),
        ("a-" + 12 * "b", 5, ["a-", "bbbbb", "bbbbb", "bb"]),
        ("", 5, [""]),
    ],
)
def test_a_line_is_folded_between_its_pieces(text: str, width: int, lines: list[str]) -> None:
    assert fold(text, width).split("\n") == lines


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("=1+1", "'=1+1"),
        (" @x", "' @x"),
        ("red\x1b[31m", "red\\x1b[31m"),
        ("two\nlines", "two\nlines"),
        ("plain", "plain"),
        (-1, -1),
    ],
)
def test_a_cell_of_csv_is_no_formula_and_steers_no_terminal(value: object, cell: object) -> None:
    assert inert(value) == cell
