"""Marks around a reply, its lines or its action change nothing of what is carried out."""

from __future__ import annotations

import pytest

from evalharness.envs import specs
from evalharness.protocol.react import FormatError, parse, template_token_in
from tests.support.contracts import FAMILIES

LINE_MARKS = (
    "**{}**", "__{}__", "*{}*", "***{}***", "~~{}~~", "`{}`", "``{}``", "```{}```", '"{}"', "'{}'", "“{}”", "‘{}’",
    "«{}»", "({})", "[{}]", "<answer>{}</answer>", "<response><b>{}</b></response>", "\\boxed{{{}}}", "{}</answer>",
    "**`{}`**", "<answer>**{}**</answer>", "\u200b{}\ufeff",
    "„{}”", "‚{}‘", "‹{}›", "»{}«", "《{}》", "【{}】", "（{}）", "⟨{}⟩", "\\text{{{}}}", "\u2066{}\u2069",
)  # fmt: skip
"""Around all of the reply, each of its lines, its last line or its action."""
REPLY_MARKS = (
    "```\n{}\n```", "<answer>\n{}\n</answer>", "<|im_start|>assistant\n{}<|im_end|>", "<s>{}</s>", "{}<|eot_id|>",
    "{}</s></s>", "{}<end_of_turn>\n<start_of_turn>user\nGo", "{}<｜end▁of▁sentence｜>", "{}[|endofturn|]",
    "[/INST] {} [INST] x", "{} Observation: You see a door.", "{} **Observation:** You see",
    "{} | Observation: You see", "{} Thought: and then",
    '**{}** ("as planned")',
)  # fmt: skip
"""Around all of the reply."""
THOUGHT = "I see 'it', and I'm sure."


def dressed(action: str) -> list[str]:
    lines = [f"Thought: {THOUGHT}", f"Action: {action}"]
    replies = [mark.format("\n".join(lines)) for mark in (*LINE_MARKS, *REPLY_MARKS)]
    for mark in LINE_MARKS:
        replies.append("\n".join(map(mark.format, lines)))
        replies.append(f"{lines[0]}\n{mark.format(lines[1])}")
        replies.append(f"{lines[0]}\nAction: {mark.format(action)}")
    doubled = (f"Action: {lines[1]}", f"Action:\n{lines[1]}", f"**Action:** **{lines[1]}**")
    return [*replies, *doubled, "\n".join(lines).replace(" ", "\u00a0")]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_oracle_acts_the_same_in_every_mark(family: str) -> None:
    spec = specs()[family]
    environment = spec.make()
    try:
        environment.reset(options={"task": spec.suites.load_tasks("open", None, 0)[0]})
        plan = environment.oracle()
    finally:
        environment.close()
    for action in plan[:5]:
        for reply in dressed(action):
            parsed = parse(reply)
            assert parsed.action == action, reply
            assert set(parsed.errors) <= {FormatError.INVENTED_OBSERVATION}, reply
            assert ("Observation" in reply) == bool(parsed.errors)


@pytest.mark.parametrize(
    "action",
    [
        'say "hello"', "say 'hi'", "ask bob about the boys'", 'write "open * sesame"', "dial *69*", "type 2*3",
        "put (red) ball", 'Search["foo" (bar)]', '"x" or "y"', "look at <sign>", "say $5", "examine __init__",
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "mark", ["Action: {}", "**Action: {}**", "`Action: {}`", "Action: **{}**", "<answer>Action: {}</answer>"]
)
def test_what_an_action_says_in_quotes_or_stars_stays(action: str, mark: str) -> None:
    assert parse(f"Thought: x\n{mark.format(action)}").action == action


@pytest.mark.parametrize(
    ("reply", "action", "token"),
    [
        ("Action: look<|eot_id|>", "look", "<|eot_id|>"),
        ("Action: look<eos>\nAction: wait", "look", "<eos>"),
        ("Action: look<EOS_TOKEN>", "look", "<EOS_TOKEN>"),
        ("Action: look<unk>", "look", "<unk>"),
        ("Action: look", "look", ""),
        ("<|tool_call|>look", None, ""),
        ("<think>The token </s> ends it.</think>\nAction: look", "look", ""),
    ],
)
def test_the_text_ends_at_a_token_of_the_template(reply: str, action: str | None, token: str) -> None:
    parsed = parse(reply, truncated=bool(token))
    assert (parsed.action, template_token_in(reply)) == (action, token)
    assert not token or (parsed.errors == () and token not in parsed.kept)


@pytest.mark.parametrize(
    ("line", "action"),
    [
        ('{"action": "turn left"}', "turn left"),
        ('{"name": "act", "arguments": {"command": "turn left"}}', "turn left"),
        ('`{"name": "act", "arguments": "{\\"command\\": \\"turn left\\"}"}`', "turn left"),
        (
            '[{"type": "function", "function": {"name": "act", "arguments": {"command": "turn left"}}}]',
            "turn left",
        ),
        (
            '{"name": "go", "arguments": {"command": "left"}}',
            '"name": "go", "arguments": {"command": "left"}',
        ),
        ("`turn left`.", "turn left"),
        ("\\boxed{\\text{turn left}}", "turn left"),
        ("turn \u00a0left", "turn left"),
        ("turn\tleft", "turn left"),
    ],
)
def test_what_an_action_is_written_in(line: str, action: str) -> None:
    assert parse(f"Thought: x\nAction: {line}").action == action


def test_words_of_an_action_may_stand_in_marks() -> None:
    assert parse("Action: put **apple 1** in `fridge 1`").action == "put apple 1 in fridge 1"
    assert parse("Action: go **to desk 1").action == "go **to desk 1", "no pair: the environment refuses it"
