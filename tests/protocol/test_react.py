"""What the parser makes of replies, good and bad."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalharness.protocol.react import FormatError, correction, parse


def test_plain_reply() -> None:
    parsed = parse("Thought: the ball is left.\nAction: turn left")
    assert (parsed.thought, parsed.action, parsed.errors) == ("the ball is left.", "turn left", ())
    assert parsed.kept == "Thought: the ball is left.\nAction: turn left"


@pytest.mark.parametrize(
    ("reply", "action"),
    [
        ("Action: go to desk 1", "go to desk 1"),
        ("thought: x\naction: go to desk 1", "go to desk 1"),
        ("**Thought:** x\n**Action:** go to desk 1", "go to desk 1"),
        ("Thought 3: x\nAction 3: go to desk 1", "go to desk 1"),
        ("Thought: x\nAction: `go to desk 1`", "go to desk 1"),
        ('Thought: x\nAction: "go to desk 1"', "go to desk 1"),
        ("Thought: x\nAction:\n\ngo to desk 1", "go to desk 1"),
        ("Thought: x. Action: go to desk 1", "go to desk 1"),
        ("- Action: go to desk 1", "go to desk 1"),
        ("Thought\uff1a x\nAction\uff1a go to desk 1", "go to desk 1"),
        ("Thought: x\nAction: go to desk 1\nThis should help.", "go to desk 1"),
        ("Thought: x\nAction: say 'hi'", "say 'hi'"),
        ("<think>hm\nAction: open door</think>\nThought: x\nAction: go to desk 1", "go to desk 1"),
        ("Thought: the next action is to move\nAction: go to desk 1", "go to desk 1"),
        ("Thought: x\nAction:\n```\ngo to desk 1\n```", "go to desk 1"),
        ("Thought: x\nAction: ```bash\ngo to desk 1\n```", "go to desk 1"),
        ("Thought: x\nAction: ```go to desk 1```", "go to desk 1"),
        ("Thought: I see the desk **Action:** go to desk 1", "go to desk 1"),
        ("Thought: x\nMy next action: go to desk 1", "go to desk 1"),
        ("Thought: I see the desk Action: go to desk 1", "go to desk 1"),
        ("Thought: the previous action: look, failed. Action: go to desk 1", "go to desk 1"),
    ],
)
def test_the_action_is_found_in_many_forms(reply: str, action: str) -> None:
    parsed = parse(reply)
    assert parsed.action == action
    assert parsed.errors == ()


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        ("", FormatError.EMPTY),
        (" \n\t", FormatError.EMPTY),
        ("I would go to the desk.", FormatError.NO_ACTION),
        ("Thought: x\nAction:", FormatError.NO_ACTION),
        ("Thought: I will go to the desk.", FormatError.THOUGHT_ONLY),
        ("<think>I will go to the desk.</think>", FormatError.THOUGHT_ONLY),
        ("<think>I will go to the", FormatError.THOUGHT_ONLY),
        ("<think>Thought: x\nAction: go to desk 1", FormatError.THOUGHT_ONLY),
        ("Sure.\n<think>\nThought: x\nAction: go to desk 1", FormatError.NO_ACTION),
        ("<think>x</think>", FormatError.THOUGHT_ONLY),
        ("Thought: The previous action: move north failed so I will wait.", FormatError.THOUGHT_ONLY),
        ("Thought: The previous Action: move north failed so I will wait.", FormatError.THOUGHT_ONLY),
        ("Thought: x\nAction: ```", FormatError.NO_ACTION),
        ("Thought: x\nAction: ``", FormatError.NO_ACTION),
        ("Thought: x\nAction: **", FormatError.NO_ACTION),
    ],
)
def test_a_reply_without_action_is_named(reply: str, kind: FormatError) -> None:
    parsed = parse(reply)
    assert parsed.action is None
    assert parsed.errors == (kind,)
    assert "Action:" in correction(parsed)


def test_a_hallucinated_second_action_is_never_the_one_carried_out() -> None:
    parsed = parse(
        "Thought: a\nAction: go to desk 1\nObservation: You see a pen.\nThought: b\nAction: take pen 1"
    )
    assert parsed.action == "go to desk 1"
    assert parsed.errors == (FormatError.INVENTED_OBSERVATION,)
    assert parsed.kept == "Thought: a\nAction: go to desk 1"


def test_an_invented_observation_comes_to_light_by_the_stop_sequence_too() -> None:
    assert parse("Thought: a\nAction: look", stopped_by="\nObservation:").errors == (
        FormatError.INVENTED_OBSERVATION,
    )


@pytest.mark.parametrize(
    "reply", ["Thought: a\nAction: one\nThought: b\nAction: two", "Action: one Action: two"]
)
def test_of_several_actions_the_first_is_carried_out_and_kept(reply: str) -> None:
    parsed = parse(reply)
    assert parsed.action == "one"
    assert parsed.errors == (FormatError.SEVERAL_ACTIONS,)
    assert "two" not in parsed.kept


def test_an_observation_before_the_thought_is_passed_over() -> None:
    parsed = parse("Observation: You are in a room.\nThought: a\nAction: look")
    assert (parsed.thought, parsed.action, parsed.kept) == ("a", "look", "Thought: a\nAction: look")
    assert parsed.errors == (FormatError.ECHOED_OBSERVATION,)
    again = parse("Observation: o\nAction: look\nObservation: p\nAction: wait")
    assert (again.action, again.kept) == ("look", "Action: look")
    assert again.errors == (FormatError.ECHOED_OBSERVATION, FormatError.INVENTED_OBSERVATION)
    assert parse("Observation: o").errors == (FormatError.INVENTED_OBSERVATION, FormatError.NO_ACTION)


def test_reasoning_is_kept_apart_from_the_thought() -> None:
    parsed = parse("<think>\nThe desk is near.\n</think>\nThought: a\nAction: look")
    assert (parsed.reasoning, parsed.thought, parsed.kept) == (
        "The desk is near.",
        "a",
        "Thought: a\nAction: look",
    )
    assert parsed.conversation_text() == parsed.kept
    assert (
        parsed.conversation_text(keep_thinking=True)
        == "<think>\nThe desk is near.\n</think>\n\nThought: a\nAction: look"
    )
    assert parse("Action: look", reasoning="The desk is near.\n").reasoning == "The desk is near."


def test_an_action_that_stands_only_in_the_reasoning_is_not_carried_out() -> None:
    parsed = parse("", reasoning="Thought: a\nAction: look")
    assert (parsed.action, parsed.thought, parsed.errors) == (None, "", (FormatError.THOUGHT_ONLY,))
    assert parsed.conversation_text() == "(no reply)"


@pytest.mark.parametrize(("reply", "reasoning"), [("<think>on and on", ""), ("", "on and on"), (" \n", "on")])
def test_a_reply_cut_off_inside_its_reasoning_is_a_kind_of_its_own(reply: str, reasoning: str) -> None:
    parsed = parse(reply, reasoning=reasoning, truncated=True)
    assert (parsed.action, parsed.errors) == (None, (FormatError.REASONING_TRUNCATED,))
    assert "reasoning was too long" in correction(parsed)


def test_a_reply_cut_off_after_its_reasoning_is_truncated() -> None:
    assert parse("<think>x</think>Thought: on", truncated=True).errors == (FormatError.TRUNCATED,)


def test_half_an_action_is_not_carried_out() -> None:
    parsed = parse("Thought: a\nAction: go to cab", truncated=True)
    assert parsed.action is None
    assert parsed.errors == (FormatError.TRUNCATED,)


def test_a_whole_action_before_the_cut_is_carried_out() -> None:
    assert parse("Thought: a\nAction: go to desk 1\nThought: and th", truncated=True).action == "go to desk 1"


def test_a_thought_cut_off_is_named_truncated() -> None:
    assert parse("Thought: on and on", truncated=True).errors == (FormatError.TRUNCATED,)


@given(st.text(), st.booleans())
def test_any_text_parses(reply: str, truncated: bool) -> None:
    parsed = parse(reply, truncated=truncated)
    assert parsed.action is None or parsed.action.strip() == parsed.action != ""
    assert parsed.action is not None or parsed.errors


_word = st.text(alphabet="abcdefghij 123", min_size=1).map(str.strip).filter(bool)


@given(_word, _word)
def test_what_is_said_plainly_is_understood(thought: str, action: str) -> None:
    parsed = parse(f"Thought: {thought}\nAction: {action}")
    assert (parsed.thought, parsed.action, parsed.errors) == (thought, action, ())


@pytest.mark.slow
@pytest.mark.parametrize(
    "reply",
    [
        "*" * 2_000_000,
        "_*" * 500_000 + "action",
        "action" + " " * 1_000_000 + "x",
        "action 1" + " " * 500_000 + "*" * 500_000,
        "I think of the action: look. " * 50_000,
        "the action: " * 100_000,
        "Action: " + "*" * 2_000_000,
        "Action: " + "`\"'" * 500_000,
        "Thought: " * 200_000,
        "<think>" * 200_000,
        "\n> " * 500_000 + "x",
        "```\n" * 300_000,
    ],
    ids=lambda reply: f"{reply[:12]!r}",
)
def test_a_reply_that_repeats_itself_without_end_is_read_in_time_that_grows_with_its_length(
    reply: str,
) -> None:
    """What grows with its square here takes minutes at the least, and the suite's timeout ends the test."""
    for truncated in (False, True):
        assert parse(reply, truncated=truncated).thought in reply
