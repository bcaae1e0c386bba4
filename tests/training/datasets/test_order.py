"""Conversations in which user and assistant do not take turns: named by kind, and repaired."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalharness.cli import main
from evalharness.training.datasets import order
from evalharness.training.datasets.conversation import (
    Conversation,
    MarkedMessage,
    Role,
    read_data,
    read_manifest,
)
from evalharness.training.datasets.order import find_faults, repair

SPEAKERS: dict[str, Role] = {"s": "system", "u": "user", "a": "assistant"}


def alternates(conversation: Conversation) -> bool:
    """Whether user and assistant take turns after the system's text, the user first: what ShareGPT readers demand."""
    roles = [message.role for message in conversation.messages]
    if roles and roles[0] == "system":
        roles = roles[1:]
    return bool(roles) and all(role == ("user", "assistant")[i % 2] for i, role in enumerate(roles))


def conversation(text: str) -> list[MarkedMessage]:
    """`s:be kind|u:hello|a:hi` as messages."""
    return [MarkedMessage(SPEAKERS[part[0]], part[2:]) for part in text.split("|")]


def written(messages: tuple[MarkedMessage, ...]) -> str:
    return "|".join(f"{message.role[0]}:{message.content}" for message in messages)


@pytest.mark.parametrize(
    ("text", "kinds", "after"),
    [
        ("s:be kind|u:1|a:2|u:3|a:4", [], "s:be kind|u:1|a:2|u:3|a:4"),
        ("a:hello|u:1|a:2", [order.BEGINS], "u:1|a:2"),
        ("s:x|a:hello|a:more|u:1|a:2", [order.BEGINS, order.REPEATS], "s:x|u:1|a:2"),
        ("u:1|u:2|a:3|a:4", [order.REPEATS], "u:1\n\n2|a:3\n\n4"),
        ("u:1|a:2|s:now|u:3|a:4", [order.SYSTEM], "u:1|a:2|u:now\n\n3|a:4"),
        ("u:1|a:2|u:  |a:3", [order.EMPTY], "u:1|a:2\n\n3"),
        ("u:1|a:|u:2|a:3", [order.EMPTY], "u:1\n\n2|a:3"),
        ("a:alone", [order.BEGINS], ""),
    ],
)
def test_each_kind_of_bad_order_and_its_repair(text: str, kinds: list[str], after: str) -> None:
    messages = conversation(text)
    assert find_faults(messages) == kinds
    assert written(repair(messages)) == after


messages = st.lists(
    st.builds(
        MarkedMessage,
        st.sampled_from(sorted(SPEAKERS.values())),
        st.text(max_size=6),
    ),
    max_size=12,
)


@given(messages)
def test_what_was_repaired_takes_turns_and_loses_no_word_of_the_users(found: list[MarkedMessage]) -> None:
    done = repair(found)
    assert find_faults(done) == []
    assert repair(done) == done
    if any(message.role == "assistant" for message in done):
        assert alternates(Conversation("x", "y", "", None, done))
    kept = "\n\n".join(message.content for message in done if message.role == "user")
    assert all(
        message.content in kept for message in found if message.role == "user" and message.content.strip()
    )


def test_a_joined_turn_keeps_its_marks_and_is_trained_where_all_of_it_is() -> None:
    wrong = MarkedMessage("assistant", "Action: a", loss=False, error=("place",))
    right = MarkedMessage("assistant", "Action: b", refine=True)
    (_, joined) = repair([MarkedMessage("user", "go"), wrong, right])
    assert (joined.trained, joined.error, joined.refine) == (False, ("place",), True)
    empty = MarkedMessage("assistant", "", loss=False, error=("format",))
    assert find_faults([MarkedMessage("user", "go"), empty]) == []


SHAREGPT = [
    [{"from": "gpt", "value": "Hello!"}, {"from": "human", "value": "hi"}, {"from": "gpt", "value": "yes"}],
    [{"from": "human", "value": "1"}, {"from": "human", "value": "2"}, {"from": "gpt", "value": "3"}],
    [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}],
    [{"from": "gpt", "value": "alone"}],
]  # fmt: skip
KINDS = {order.BEGINS: 2, order.REPEATS: 1}


@pytest.fixture
def sharegpt(tmp_path: Path) -> Path:
    path = tmp_path / "sharegpt.json"
    path.write_text(json.dumps([{"conversations": turns} for turns in SHAREGPT]))
    return path


def test_sharegpt_is_read_as_it_is(
    sharegpt: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out.jsonl"
    assert main(["refine", "read", str(sharegpt), "-o", str(output)]) == 0
    assert "and 1 dropped" in capsys.readouterr().err
    conversations = list(read_data(output, []))
    assert len(conversations) == 3
    assert all(alternates(conversation) for conversation in conversations)
    manifest = read_manifest(output)
    assert manifest is not None
    assert manifest["made"]["order"] == {"kinds": KINDS, "repaired": 2, "dropped": 1}


def test_mix_takes_it_too(sharegpt: Path, tmp_path: Path) -> None:
    agent = tmp_path / "agent.json"
    agent.write_text(
        json.dumps(
            [[{"role": "user", "content": f"{n}"}, {"role": "assistant", "content": "ok"}] for n in range(8)]
        )
    )
    for share, wanted in ((0.2, 3), (0.4, 3), (0.5, 6), (0.6, 4), (0.8, 3)):
        output = tmp_path / f"mixed-{share}.jsonl"
        assert main(["refine", "mix", f"{agent}:{1 - share}", f"{sharegpt}:{share}", "-o", str(output)]) == 0
        assert len(list(read_data(output, []))) >= wanted
