"""What a rule of comparison or an exception makes equal, and what not."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalharness.base.errors import UserError
from tests.conform.compare import ReplayCheck
from tests.conform.rules import ComparisonRule, ExceptionRule, Tolerance, load_tolerances
from tests.conform.transcripts import read_transcripts


@pytest.mark.parametrize(("info", "same"), [({}, False), ({"published_valid": True}, True)])
def test_where_the_published_rule_of_validity_is_a_second_reading_it_is_compared(
    tmp_path: Path, info: dict[str, bool], same: bool
) -> None:
    file = tmp_path / "recorded.jsonl"
    file.write_text(
        '{"task": "jericho", "id": 0, "steps": [{"action": "qwerty", "obs": "Eh?", "valid": true}]}'
    )
    check = ReplayCheck(read_transcripts(file)[0], Tolerance())
    check.step(0, "Eh?", False, {"progress": 0.0, "success": False, "valid": False, **info})
    assert check.matched == same


def test_every_shipped_tolerance_is_valid_and_every_rule_has_its_reason() -> None:
    tolerances = load_tolerances()
    assert {"alfworld", "babyai", "jericho", "pddl", "sciworld"} <= set(tolerances)
    assert tolerances["sciworld"].recorded_as == ["scienceworld"]
    for tolerance in tolerances.values():
        for rule in [*tolerance.comparison, *tolerance.exceptions]:
            assert len(rule.because.split()) > 5


def test_an_unordered_text_is_equal_in_any_order_and_in_no_other_way() -> None:
    rule = ComparisonRule(fields=["observation"], how="unordered", split="[:,] ", because="a set is listed")
    assert rule.equal("Valid: a, b, b", "Valid: b, a, b")
    assert not rule.equal("Valid: a, b, b", "Valid: a, a, b")
    assert not rule.equal("Valid: a, b", "Valid: a")
    assert not rule.equal("Valid: a b, c", "Valid: a, b c")


def test_a_text_compared_in_part_must_have_that_part() -> None:
    rule = ComparisonRule(
        fields=["observation"], how="in part", part="^You can: ", because="the rest is random"
    )
    assert rule.equal("You can: a", "You can: b")
    assert not rule.equal("You can: a", "Nothing happens.")


def test_a_rule_applies_where_all_of_its_conditions_hold() -> None:
    rule = ComparisonRule(
        fields=["observation"],
        how="not compared",
        where={"game": ["zork1", "zork2"], "unstable": True},
        action="(?i)^look",
        because="for the test of conditions",
    )
    fields = {"game": "zork1", "unstable": True}
    assert rule.applies("observation", "text", "Look around", fields)
    assert not rule.applies("progress", "text", "Look around", fields)
    assert not rule.applies("observation", "text", "take a look", fields)
    assert not rule.applies("observation", "text", None, fields)
    assert not rule.applies("observation", "text", "look", {**fields, "game": "zork3"})
    assert not rule.applies("observation", "text", "look", {"game": "zork1"})


def test_an_exception_up_to_order_and_noise_excuses_nothing_else() -> None:
    rule = ExceptionRule(
        fields=["observation"],
        order_of=r"(?m)(?:^\d+:\t|\n|, )",
        numbers=r"-?\d+(?= degrees)",
        within=2,
        because="for the test of exceptions",
    )
    assert rule.excuses("a cup, a 10 degrees tea", "a 12 degrees tea, a cup")
    assert rule.excuses("Which?\n0:\tred\n1:\tblue\n", "Which?\n0:\tblue\n1:\tred\n")
    assert not rule.excuses("a cup, a 10 degrees tea", "a 13 degrees tea, a cup")
    assert not rule.excuses("a cup, a 10 degrees tea", "a cup, a tea")
    assert not rule.excuses("a cup, a tea", "a cup, a cup")
    assert not rule.excuses("cup 1", "cup 2")  # no number that the rule means


def test_numbers_that_are_none_are_named() -> None:
    rule = ExceptionRule(
        fields=["observation"], numbers="degrees|(1)(0)", because="for the test of exceptions"
    )
    assert rule.excuses("10", "10")
    with pytest.raises(UserError, match=r"'degrees\|\(1\)\(0\)', find something else: could not convert"):
        rule.excuses("10 degrees", "10 degrees")


def test_a_number_that_answers_a_menu_is_replayed_as_the_same_choice() -> None:
    tolerance = Tolerance(menu=r"(?m)^(?P<number>\d+): (?P<option>.*)$")
    recorded, ours = "Which?\n0: red\n1: blue", "Which?\n0: blue\n1: red\n2: green"
    assert tolerance.same_choice("1", recorded, ours) == "0"
    assert tolerance.same_choice(" 0 ", recorded, ours) == "1"
    assert tolerance.same_choice("2", recorded, ours) == "2"  # no such option there
    assert tolerance.same_choice("blue", recorded, ours) == "blue"
    assert tolerance.same_choice("1", "No menu.", ours) == "1"
    assert tolerance.same_choice("1", None, ours) == "1"
    assert Tolerance().same_choice("1", recorded, ours) == "1"
