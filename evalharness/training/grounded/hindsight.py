"""Thoughts in hindsight: a served model reads what was done and says, in a sentence or two, why.

It is shown the conversation so far and the action that comes; what it writes must fit on a line and must not name
what only later turns bring. Where it does not, the rule's thought stands, and that is counted.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from evalharness.config import PolicyConfig, make_part
from evalharness.models.asking import RefusedEarlyError, asked, refuse_scripted
from evalharness.models.endpoint import TURN_FORM
from evalharness.models.opened import Prepared
from evalharness.models.resolve import prepare
from evalharness.models.slots import MOST
from evalharness.models.work import WorkProgress
from evalharness.protocol import react
from evalharness.protocol.prompt import Message
from evalharness.records.identity import telling
from evalharness.training.grounded.draft import DraftedTurn
from evalharness.training.grounded.replayed import Thinker
from evalharness.training.grounded.thoughts import NUMBERED, foretells
from evalharness.training.teachers.scene import mentions

MOST_WORDS = 60
_MAX_TOKENS = 96


def request(messages: Sequence[Message], turn: DraftedTurn, rule: str) -> list[Message]:
    """What the model is asked. `rule` is the thought by rule: it knows what was wrong, and the model may say it."""
    asked = (
        f"You now take this action: {turn.said}\n"
        f"Notes: {rule}\n"
        "Write the thought that leads to this action, in the first person and in one or two short sentences. Use "
        "only what was observed so far. If an action of yours has just failed, say what was wrong with it. Reply "
        "with the thought alone."
    )
    *before, last = messages
    return [*before, {"role": "user", "content": f"{last['content']}\n\n{asked}"}]


def usable(reply: str, turn: DraftedTurn, conversation: str = "") -> str | None:
    """The thought in a model's reply; None where it has none that may be used.

    `conversation` is all that was said so far, errors included: a numbered thing that is not in it is invented.
    """
    # Checked before it is parsed: the parser takes marks out that steer a terminal.
    if not " ".join(reply.split()).isprintable():
        return None
    parsed = react.parse(f"{reply}\nAction: {turn.said}")
    text = " ".join(parsed.thought.split())
    if not text or len(text.split()) > MOST_WORDS or "action:" in text.lower():
        return None
    if react.parse(f"Thought: {text}\nAction: {turn.said}").action != turn.said.strip():
        return None
    known = f"{conversation}\n{turn.scene.seen}\n{turn.said}"
    if any(not mentions(known, name) for name in NUMBERED.findall(text.lower())):
        return None
    return None if foretells(text, turn.scene, turn.said) else text


def prepare_writer(model: str, name: str | None, key_env: str | None, seed: int) -> Prepared:
    """The model that writes the thoughts. Raises UserError."""
    given = {
        "model": model, "model_name": name, "api_key_env": key_env, "seed": seed,
        "temperature": 0.7, "max_tokens": _MAX_TOKENS,
    }  # fmt: skip
    policy = make_part(PolicyConfig, given)
    refuse_scripted(policy, "--thoughts")
    return prepare(policy, {}, lambda text: None)


@asynccontextmanager
async def thinking(
    writer: Prepared | None, seed: int, output: Path
) -> AsyncIterator[tuple[Thinker | None, dict[str, Any]]]:
    """The writer at work, served for as long as the context is open, and what its replies say of the model; no writer
    for thoughts by rule. Raises UserError."""
    if writer is None:
        yield None, {}
        return
    logs = output.parent
    logs.mkdir(parents=True, exist_ok=True)
    at_work = asked(
        writer,
        logs,
        TURN_FORM,
        WorkProgress("thoughts"),
        lambda *failure: None,  # who makes the trajectories tries again
        attempts=1,
        concurrency=MOST,  # the simulators bound how much is asked at once
    )
    async with at_work as asking:

        async def think(
            messages: list[Message], turns: Sequence[DraftedTurn], number: int, rule: str
        ) -> str | None:
            turn = turns[number]
            question = request(messages, turn, rule)
            try:
                answer = await asking.answer(turn.scene.task.id, question, number=number + 1, sample=seed)
            except RefusedEarlyError:
                return None
            if answer.refusal is not None:
                return None
            return usable(answer.reply, turn, "\n".join(message["content"] for message in messages))

        yield think, telling(asking.facts)
