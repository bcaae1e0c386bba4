"""Thoughts in hindsight: a served model reads what was done and says, in a sentence or two, why.

It is shown the conversation so far and the action that comes; what it writes must fit on a line and must not name
what only later turns bring. Where it does not, the rule's thought stands, and that is counted.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from evalharness.config import make_config
from evalharness.errors import UserError
from evalharness.policy.base import ContextOverflowError, Player, PolicyStoppedError
from evalharness.policy.completion import RequestRefusedError
from evalharness.policy.opened import Reports
from evalharness.policy.resolve import prepare
from evalharness.protocol import react
from evalharness.protocol.prompt import Message
from evalharness.refine.draft import Turn
from evalharness.refine.replayed import Thinker
from evalharness.refine.scene import mentions
from evalharness.refine.thoughts import NUMBERED, foretells
from evalharness.workers.timing import CallTimes

MOST_WORDS = 60
_MAX_TOKENS = 96
_MOST_REFUSED = 8
"""Requests refused before any was answered, until that is taken for a mistake in the request."""


def request(messages: Sequence[Message], turn: Turn, rule: str) -> list[Message]:
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


def usable(reply: str, turn: Turn, conversation: str = "") -> str | None:
    """The thought in a model's reply; None where it has none that may be used.

    `conversation` is all that was said so far, errors included: a numbered thing that is not in it is invented.
    """
    parsed = react.parse(f"{reply}\nAction: {turn.said}")
    text = " ".join(parsed.thought.split())
    if not text or len(text.split()) > MOST_WORDS or "action:" in text.lower():
        return None
    if (
        not text.isprintable()
        or react.parse(f"Thought: {text}\nAction: {turn.said}").action != turn.said.strip()
    ):
        return None
    known = f"{conversation}\n{turn.scene.seen}\n{turn.said}"
    if any(not mentions(known, name) for name in NUMBERED.findall(text.lower())):
        return None
    return None if foretells(text, turn.scene, turn.said) else text


@asynccontextmanager
async def thinking(
    model: str | None, name: str | None, key_env: str | None, seed: int, output: Path
) -> AsyncIterator[Thinker | None]:
    """The writer of thoughts that `model` means, served for as long as the context is open; None for thoughts by rule.

    Raises UserError.
    """
    if model is None:
        yield None
        return
    flags = {
        "model": model, "model_name": name, "api_key_env": key_env, "seed": seed,
        "temperature": 0.7, "max_tokens": _MAX_TOKENS,
    }  # fmt: skip
    config = make_config({key: value for key, value in flags.items() if value is not None})
    if config.is_scripted:
        raise UserError(f"--thoughts {model}: give a model that writes, not a scripted policy")
    from envs import specs

    prepared = prepare(config, specs(), lambda text: None)
    answered, refused = False, 0
    logs = output.parent
    logs.mkdir(parents=True, exist_ok=True)
    async with prepared.open(logs, Reports()) as opened:

        async def think(messages: list[Message], turns: Sequence[Turn], number: int, rule: str) -> str | None:
            nonlocal answered, refused
            turn = turns[number]
            player: Player = opened.policy.player(turn.scene.task, seed, _NoEnvironment())
            try:
                reply = await player.reply(request(messages, turn, rule), turn=number + 1)
            except (ContextOverflowError, PolicyStoppedError):
                return None
            except RequestRefusedError:
                # Mostly it is what this conversation says that is refused (a content filter).
                refused += 1
                if not answered and refused >= _MOST_REFUSED:
                    raise
                return None
            answered = True
            return usable(reply.text, turn, "\n".join(message["content"] for message in messages))

        yield think


class _NoEnvironment:
    """A served model never looks at the environment."""

    last_call = CallTimes()

    async def _nothing(self, *_: object) -> Any:
        raise PolicyStoppedError("there is no environment")

    reset = step = valid_actions = oracle = reference_plans = _nothing
