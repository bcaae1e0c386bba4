"""Algorithm 1 by example, and the three places where the paper's sources differ as a matrix."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_model import (
    BAD_ACTION,
    LAST,
    NO_FLAG,
    PROMPTS,
    SCRIPT,
    TRAJECTORY,
    reply,
    trajectory,
    wrong,
)

from evalharness.base.reading import whole_characters
from evalharness.training.synthesis.script import read_script
from evalharness.training.synthesis.signals import Signal
from evalharness.training.synthesis.trajectory import MasterTurn, count_error_turns, mark_messages, read_turn
from evalharness.training.synthesis.verify import Errors, verify_script, verify_trajectory

WORLD = read_script(SCRIPT)


def verify(text: str, kept: int = 0, errors: Errors = "some") -> tuple[str, int]:
    """(signal, turns kept) after the first `kept` turns of the good trajectory."""
    before = [read_turn(value, place) for place, value in enumerate(TRAJECTORY[:kept])]
    turns, verdict = verify_trajectory(WORLD, text, before, errors)
    assert [turn.turn for turn in turns] == list(range(len(turns)))
    assert (verdict.signal is Signal.OK) == (not verdict.mistakes)
    return verdict.signal, len(turns)


def test_the_examples_of_the_prompts_pass() -> None:
    for example in PROMPTS.script.examples:
        script, verdict = verify_script(json.dumps(example.script))
        assert (verdict.signal, verdict.mistakes) == (Signal.OK, ()), example.persona
        assert script is not None
        again, _ = verify_script(json.dumps(script.to_json()))
        assert again == script
    assert verify(reply(TRAJECTORY)) == ("OK", 29)
    assert verify(json.dumps(TRAJECTORY)) == ("OK", 29)  # a bare list, as the paper has it


@pytest.mark.parametrize(
    ("mistake", "signal", "kept"),
    [
        ("JSON", "JSON", 9),
        ("KEYS", "KEYS", 4),
        ("ACTION", "ACTION", 7),
        ("LAST_ERROR", "LAST_ERROR", LAST),
        ("UNFINISHED", "UNFINISHED", LAST),
        ("ends with the player", "UNFINISHED", LAST),
        ("TOO_FEW", "TOO_FEW", LAST + 1),
    ],
)
def test_each_signal_says_what_is_kept_and_the_rest_completes_it(
    mistake: str, signal: str, kept: int
) -> None:
    assert verify(wrong(mistake)) == (signal, kept)
    if signal != "TOO_FEW":  # that one is begun anew
        assert verify(reply(TRAJECTORY[kept:]), kept) == ("OK", 29)


@pytest.mark.parametrize("flag", ["parameter_error", "place_error", "logic_error"])
def test_a_bad_action_is_excused_by_an_error_flag(flag: str) -> None:
    text = reply(trajectory(turn_7=BAD_ACTION, turn_8={flag: True}))
    assert verify(text)[0] == "OK"
    assert verify(reply(trajectory(turn_7=BAD_ACTION)))[0] == "ACTION"


def test_an_action_at_the_end_of_what_was_kept_is_judged_with_the_turn_that_answers_it() -> None:
    turns = [read_turn(value, place) for place, value in enumerate(trajectory(turn_7=BAD_ACTION)[:8])]
    kept, verdict = verify_trajectory(WORLD, reply(TRAJECTORY[8:]), turns)
    assert (verdict.signal, len(kept)) == (Signal.ACTION, 7)
    flagged = trajectory(turn_8={"parameter_error": True})[8:]
    kept, verdict = verify_trajectory(WORLD, reply(flagged), turns)
    assert (verdict.signal, len(kept)) == (Signal.OK, 29)


def test_turns_that_the_model_says_again_are_kept_once() -> None:
    assert verify(reply(TRAJECTORY), 9) == ("OK", 29)
    assert verify(reply(TRAJECTORY[:9]), 9) == ("UNFINISHED", 9)


@pytest.mark.parametrize(
    ("turn", "change"),
    [
        (4, {"logic_error": "no"}),
        (4, {"parameter_error": None}),
        (4, {"progress_rate": 1.1}),
        (4, {"progress_rate": True}),
        (4, {"progress_rate": "0.5"}),
        (4, {"finished": 0}),
        (4, {"turn": "4"}),
        (4, {"role": "Player"}),
        (4, {"role": "dm"}),
        (4, {"Thought": None}),
        (5, {"Action": None}),
        (5, {"Action": ["open", "cabinet"]}),
        (5, {"role": "DM"}),
        (5, {"Thought": {"a": 1}}),
    ],
)
def test_wrong_keys_and_types(turn: int, change: dict[str, Any]) -> None:
    assert verify(reply(trajectory(**{f"turn_{turn}": change}))) == ("KEYS", turn)


@pytest.mark.parametrize(
    ("text", "signal"),
    [
        ("", "JSON"),
        ("No.", "JSON"),
        ("[1, 2", "JSON"),
        ("[1, 2]", "JSON"),
        ("[NaN]", "JSON"),
        ("[" * 100_000, "JSON"),
        ('{"trajectory": ' * 60_000, "JSON"),
        ('[{"a":' + "[" * 100 + "]" * 100 + "}]", "JSON"),
        ('{"trajectory": {}}', "JSON"),
        ('{"trajectory": []}', "UNFINISHED"),
        ("[]", "UNFINISHED"),
        ('[{}, "a", null]', "KEYS"),
        ("\x00" * 1000, "JSON"),
        ("x" * 10_000_000, "JSON"),
        ("[" + "{}," * 5_000_000, "JSON"),
        ('[{"turn": ' + "9" * 100_000 + "}]", "JSON"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_replies_that_are_no_trajectory(text: str, signal: str) -> None:
    assert verify(text) == (signal, 0)


@pytest.mark.parametrize("cut", range(0, len(reply(TRAJECTORY[:4])), 7))
def test_a_reply_cut_anywhere_keeps_the_whole_turns_before_the_cut(cut: int) -> None:
    text = reply(TRAJECTORY[:4])
    ends = [len(json.dumps(TRAJECTORY[:n])) + len('{"trajectory": ') - 1 for n in range(1, 5)]
    signal, kept = verify(text[:cut])
    assert (signal, kept) == ("JSON", sum(end <= cut for end in ends))


def test_of_a_broken_reply_only_turns_that_pass_are_kept() -> None:
    text = reply(trajectory(turn_3=BAD_ACTION))
    turns, verdict = verify_trajectory(WORLD, text[: text.index('"turn": 9')])
    assert (verdict.signal, len(turns)) == ("JSON", 3)
    assert "fly to the moon" in verdict.mistakes[1]


def test_fences_prose_and_thinking_around_the_reply_do_no_harm() -> None:
    text = reply(TRAJECTORY)
    for around in (
        f"```json\n{text}\n```",
        f"Here is [the] list:\n{text}\nEnjoy!",
        f"<think>{{not this}} [{{]</think>\n{text}",
        f"\ufeff{text}",
    ):
        assert verify(around) == ("OK", 29), around[:20]


def test_nul_and_direction_marks_survive_and_do_not_matter() -> None:
    """Half a surrogate pair, which no file can hold, is spelt out, as wherever JSON is read."""
    odd = "a\x00b \u202e \ud800 \x1b[31m"
    text = reply(trajectory(turn_2={"Observation": odd}, turn_3={"Thought": odd}))
    turns, verdict = verify_trajectory(WORLD, text)
    assert verdict.signal is Signal.OK
    second = turns[2]
    assert isinstance(second, MasterTurn)
    assert second.observation == whole_characters(odd)


def test_messages_to_train_on() -> None:
    """The error turns are masked, the turns after them marked as refining."""
    turns = [read_turn(value, place) for place, value in enumerate(TRAJECTORY)]
    messages = mark_messages(turns)
    assert [m.role for m in messages] == ["user", "assistant"] * 14
    players = messages[1::2]
    assert [m.error for m in players if m.error] == [("logic",), ("parameter",)]
    assert [i for i, m in enumerate(players) if m.loss is False] == [2, 5]
    assert [i for i, m in enumerate(players) if m.refine] == [3, 6]
    assert players[0].content.startswith("Thought: The clock has to be wound")
    assert players[0].content.endswith("\nAction: open cabinet")
    assert count_error_turns(turns) == 2
    world = [m.content for m in messages[::2]]
    assert not world[0].startswith("Observation: ")
    assert all(text.startswith("Observation: ") for text in world[1:])


def without_errors() -> list[dict[str, Any]]:
    return json.loads(
        PROMPTS.ask_trajectory(WORLD, [], [], errors=False)[1]["content"]
        .split("is played like this:\n")[1]
        .split("\n\n")[0]
    )["trajectory"]


def test_a_set_without_errors_is_asked_for_and_checked() -> None:
    game = without_errors()
    assert verify(json.dumps(game), errors="none") == ("OK", 25)
    assert verify(json.dumps(game)) == ("TOO_FEW", 25)
    assert verify(reply(TRAJECTORY), errors="none") == ("ERRS", 5)
    asked, usual = (
        PROMPTS.ask_trajectory(WORLD, [], [], errors=errors)[1]["content"] for errors in (False, True)
    )
    assert "The Player makes no error" in asked
    assert "At least two times" not in asked
    assert "At least two times" in usual
    assert "{errors}" not in asked + usual
    own = PROMPTS.trajectory.model_copy(update={"instruction": "Play {script}."})
    words = replace(PROMPTS, trajectory=own).ask_trajectory(WORLD, [], [], errors=False)[1]["content"]
    assert "The Player makes no error" in words


def test_a_label_that_the_model_wrote_is_not_written_twice() -> None:
    turns = [
        read_turn(value, place)
        for place, value in enumerate(
            trajectory(turn_1={"Thought": "Thought: I look.", "Action": "Action: open cabinet"})
        )
    ]
    assert mark_messages(turns)[1].content == "Thought: I look.\nAction: open cabinet"


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["turn", "role", "Thought", "Observation", "x"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(_json)
def test_whatever_json_comes_there_is_a_verdict(value: Any) -> None:
    for text in (json.dumps(value), json.dumps(value)[:-1], reply([value]), reply([*TRAJECTORY[:3], value])):
        assert verify(text)[0] != "OK"
        assert verify_script(text)[1].signal is not Signal.OK


@given(st.text(max_size=200))
def test_whatever_text_comes_there_is_a_verdict(text: str) -> None:
    assert verify_trajectory(WORLD, text)[1].signal is not Signal.OK
    assert verify_script(text)[1].signal is not Signal.OK


def test_no_flag_means_no_error() -> None:
    assert verify(reply(trajectory(turn_6=NO_FLAG, turn_12=NO_FLAG)))[0] == "ACTION"
