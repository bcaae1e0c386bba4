"""The report of decisions: rules, what is rare, and what looks equal and is decided differently."""

from __future__ import annotations

from evalharness.training.datasets.conversation import Conversation, MarkedMessage
from evalharness.training.datasets.decisions import balanced, decisions_of, lines, rules_of


def conversation(
    number: int, *turns: tuple[str, str, str], world: str = "maze", rules: list[str] | None = None
) -> Conversation:
    """`turns`: (thought, action, the answer)."""
    messages = [MarkedMessage("system", "Play."), MarkedMessage("user", "A hall.")]
    for thought, action, answer in turns:
        messages += [
            MarkedMessage("assistant", f"Thought: {thought}\nAction: {action}", loss=True),
            MarkedMessage("user", answer),
        ]
    metadata = {} if rules is None else {"rules": rules}
    return Conversation(str(number), "test", world, None, tuple(messages[:-1]), metadata)


def test_equal_views_that_are_decided_differently_are_counted_with_and_without_the_last_reply() -> None:
    there = conversation(0, ("One way.", "north", "A hall."), ("Still there is west.", "west", "A cave."))
    back = conversation(1, ("Another way.", "north", "A hall."), ("East.", "east", "A cave."))
    row = decisions_of([there, back])["maze"]
    assert (row.views.repeated, row.views.conflicts) == (1, 1)  # the hall: north, west, east
    assert (row.exchanges.repeated, row.exchanges.conflicts) == (
        1,
        0,
    )  # the opening; the replies differ later
    again = conversation(2, ("One way.", "north", "A hall."), ("East.", "east", "A cave."))
    row = decisions_of([there, again])["maze"]
    assert (row.exchanges.repeated, row.exchanges.conflicts) == (2, 1)


def test_a_turn_that_is_not_trained_is_no_decision() -> None:
    whole = conversation(
        0, ("Wrong.", "dance", "No."), ("Right.", "north", "A cave."), rules=["error", "way"]
    )
    wrong = MarkedMessage("assistant", whole.messages[2].content, loss=False, error=("logic",))
    data = Conversation(
        "0", "test", "maze", None, (*whole.messages[:2], wrong, *whole.messages[3:]), whole.metadata
    )
    assert decisions_of([data])["maze"].rules == {"way": 1}


def test_rules_are_named_by_the_data_else_by_the_action() -> None:
    turns = (("So.", "go north", "A cave."), ("So.", "take lamp", "Taken."))
    assert rules_of(conversation(0, *turns)) == ["go", "take"]
    assert rules_of(conversation(0, *turns, rules=["exit", "lamp"])) == ["exit", "lamp"]


def test_rare_decisions_come_first_up_to_a_half_and_the_order_stays() -> None:
    common = [conversation(n, *[("So.", "go north", "A hall.")] * 10) for n in range(30)]
    rare = [conversation(40 + n, ("So.", "sing", "A hall.")) for n in range(3)]
    rarest = [conversation(50, ("So.", "pray", "A hall."))]
    chosen = balanced([*common, *rare, *rarest], 6)
    assert [s.id for s in chosen] == ["0", "1", "2", "40", "41", "50"]
    (line, *rest) = lines({"Maze": decisions_of([*common, *rare, *rarest])["maze"].to_json()})
    assert line.startswith("Maze: 304 decisions in 34 conversations")
    assert ["rare: in 3" in text for text in rest] == [False, True, False]
    assert balanced(common[:3], 8) == common[:3]
    assert lines({"": decisions_of(rarest)["maze"].to_json()})[0].startswith("without a family: 1 decisions")
