"""Reasoning in the marks of many models, an action weighed and dropped inside it."""

from __future__ import annotations

import time

import pytest

from evalharness.protocol.react import parse
from evalharness.protocol.reasoning import find_unknown_marks

WEIGHED = "I could do this:\nAction: move forward\nBut no."
SAID = "Thought: I go on.\nAction: turn left"
PAIRS = [
    ("<think>\n", "</think>"),
    ("", "</think>"),  # the template has opened it
    ("<thinking>\n", "</thinking>\n"),
    ("<Reasoning>\n", "\n</Reasoning>\n"),
    ("<thought>", "</thought>"),
    ("<seed:think>", "</seed:think>"),
    ("<mm:think>", "</mm:think>"),
    ("<ifm|think>", "</ifm|think>"),
    ("<reflection>", "</reflection>\n"),
    ("<scratchpad>", "</scratchpad>\n"),
    ("<longcat_think>", "</longcat_think>"),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
    ("<|begin_of_thought|>", "<|end_of_thought|>\n<|begin_of_solution|>"),
    ("<|START_THINKING|>", "<|END_THINKING|><|START_RESPONSE|>"),
    ("<|thinking_start|>", "<|thinking_end|>"),
    ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
    (
        "<|channel|>analysis<|message|>",
        "<|end|><|start|>assistant<|channel|>final <|constrain|>text<|message|>",
    ),
    ("<|im_start|>think\n", "<|im_end|>\n<|im_start|>answer\n"),
    ("<|channel>thought\n", "<channel|>"),
    ("<unused94>thought\n", "<unused95>"),
    ("analysisWe have it. ", "assistantfinal"),
    ("Here is my thought process: ", "\nHere is my response: "),
    ("Here are my reasoning steps:\n", "\n[BEGIN FINAL RESPONSE]\n"),
]
UNKNOWN = [
    ("<ponder>\n", "\n</ponder>\n"),
    ("[MULL]", "[/MULL]\n"),
    ("◁mull▷", "◁/mull▷"),
    ("<|begin_of_x|>", "<|end_of_x|>"),
    ("<|begin_mull|>", "<|end_mull|>"),
    ("<|mull_start|>", "<|mull_end|>"),
    ("<|mull|>", "<|/mull|>"),
    ("<思考>", "</思考>\n"),
    ("【思考】", "【/思考】\n"),
    ('<ponder type="x">', "</ponder>\n"),
    ("＜mull＞", "＜/mull＞\n"),
    ("&lt;mull&gt;", "&lt;/mull&gt;\n"),
    ("(mull)", "(/mull)\n"),
    ("{{mull}}", "{{/mull}}\n"),
]


@pytest.mark.parametrize(("opening", "closing"), PAIRS)
def test_an_action_that_is_weighed_in_the_reasoning_is_not_played(opening: str, closing: str) -> None:
    parsed = parse(f"{opening}{WEIGHED}{closing}{SAID}")
    assert (parsed.action, parsed.kept, parsed.errors) == ("turn left", SAID, ())
    assert parsed.reasoning.endswith(WEIGHED)
    assert find_unknown_marks(f"{opening}{WEIGHED}{closing}{SAID}") == []


@pytest.mark.parametrize("opening", [opening for opening, _ in PAIRS if opening])
def test_nothing_behind_a_mark_that_is_never_closed_is_played(opening: str) -> None:
    parsed = parse(f"{opening}{WEIGHED} I sh", truncated=True)
    assert (parsed.action, parsed.errors) == (None, ("reasoning_truncated",))


@pytest.mark.parametrize(("opening", "closing"), UNKNOWN)
def test_an_action_in_marks_of_unknown_names_is_not_played_and_the_marks_are_named(
    opening: str, closing: str
) -> None:
    reply = f"{opening}{WEIGHED}{closing}{SAID}"
    parsed = parse(reply)
    assert (parsed.action, parsed.reasoning.strip(), parsed.thought) == (
        "turn left", f"{opening}{WEIGHED}{closing}".strip(), "I go on.",
    )  # fmt: skip
    assert find_unknown_marks(reply) == [opening.strip()]


@pytest.mark.parametrize(
    ("reply", "named"),
    [
        (f"<ponder>\n{WEIGHED}", ["<ponder>"]),  # never closed
        (f"<ponder>\n{WEIGHED}\n</ponder>", ["<ponder>"]),  # and nothing else
        (f"<ponder>{SAID}</ponder>", []),  # the whole reply, wrapped
        (f"<ponder>Hm.</ponder>{SAID}", []),
        (f"<answer>{SAID}</answer>", []),
        (f"<response>\n{SAID}\n</response>", []),
        (f"<|im_start|>assistant\n{SAID}<|im_end|>", []),
        (f"(sighs) {SAID}", []),
        ("Thought: the door <red> is [open].\nAction: turn left", []),
    ],
)
def test_which_marks_are_taken_for_reasoning(reply: str, named: list[str]) -> None:
    assert find_unknown_marks(reply) == named
    assert (parse(reply).action is None) == bool(named)


@pytest.mark.parametrize(
    "part", ["<think>", "</think>", "<ponder>", "[MULL]", "<|channel|>analysis", "analysis", "<", "◁think▷"]
)
def test_a_repeated_mark_takes_time_that_grows_with_the_reply_alone(part: str) -> None:
    began = time.process_time()
    find_unknown_marks(part * 20_000)
    parse(part * 20_000)
    assert time.process_time() - began < 2
