"""Texts for people."""

from __future__ import annotations

import pytest

from evalharness.base.text import subgoal_words


@pytest.mark.parametrize(
    ("label", "said"),
    [
        (r"^(?=.* you see)(?=.*a egg \d+)", "you see ... a egg N"),
        (r"You heat the egg \d+ using the", "You heat the egg N using the"),
        ("There is a red ball * in front of you", "There is a red ball ... in front of you"),
        ("Wheel r1 is inflated.", "Wheel r1 is inflated."),
        ("open the (green) door?", "open the (green) door?"),
        ("", ""),
    ],
)  # fmt: skip
def test_a_subgoal_s_pattern_is_said_in_words(label: str, said: str) -> None:
    assert subgoal_words(label) == said
