"""Conversations in which user and assistant do not take turns: named by kind and repaired.

Trainers and chat templates want the system's text first, then user and assistant in turns, the user first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from evalharness.training.datasets.conversation import Conversation, Counted, MarkedMessage

BEGINS, REPEATS, SYSTEM, TOOLS, EMPTY = (
    "begins with the assistant's turn",
    "one speaker twice in a row",
    "a system message that is not the first",
    "a tool's turns",
    "an empty turn",
)


def faults(messages: Iterable[MarkedMessage], *, tools: bool = False) -> list[str]:
    """What is wrong with the order, each kind once; empty where nothing is. `tools`: some of them were a tool's."""
    found = [TOOLS] if tools else []
    before: MarkedMessage | None = None
    for at, message in enumerate(messages):
        if message.role == "system" and at:
            found.append(SYSTEM)
        if _is_empty(message):
            found.append(EMPTY)
        if message.role == "assistant" and (before is None or before.role == "system"):
            found.append(BEGINS)
        if before is not None and message.role == before.role != "system":
            found.append(REPEATS)
        before = message
    return list(dict.fromkeys(found))


def repaired(messages: Iterable[MarkedMessage]) -> tuple[MarkedMessage, ...]:
    """Empty turns go, later system messages become the user's, what one speaker says in a row is joined, and
    the assistant's turns before the user's first go. A joined turn is trained where all its parts are."""
    done: list[MarkedMessage] = []
    for at, message in enumerate(messages):
        if _is_empty(message):
            continue
        turn = replace(message, role="user", loss=None) if message.role == "system" and at else message
        if turn.role == "assistant" and (not done or done[-1].role == "system"):
            continue
        if done and done[-1].role == turn.role:
            done[-1] = _joined(done[-1], turn)
        else:
            done.append(turn)
    return tuple(done)


def _is_empty(message: MarkedMessage) -> bool:
    """An empty reply that is marked as an error is what a model did, and stays."""
    return not message.content.strip() and not message.error


def _joined(first: MarkedMessage, second: MarkedMessage) -> MarkedMessage:
    content = f"{first.content}\n\n{second.content}"
    if first.role != "assistant":
        return replace(first, content=content)
    return replace(
        first,
        content=content,
        loss=first.trained and second.trained,
        error=tuple(dict.fromkeys((*first.error, *second.error))),
        refine=first.refine or second.refine,
    )


@dataclass
class OrderCheck(Counted):
    """One pass over conversations. Call it with each; None where it is left out."""

    kinds: Counter[str] = field(default_factory=Counter)
    """Kind of fault -> conversations."""
    repaired: int = 0
    dropped: int = 0

    def __call__(self, conversation: Conversation, *, tools: bool = False) -> Conversation | None:
        found = faults(conversation.messages, tools=tools)
        if not found:
            return conversation
        self.kinds.update(found)
        messages = repaired(conversation.messages)
        if not any(message.role == "assistant" for message in messages):
            self.dropped += 1
            return None
        self.repaired += 1
        return conversation.retold(messages)

    def of(self, conversations: Iterable[Conversation]) -> Iterator[Conversation]:
        """Those that stay."""
        for conversation in conversations:
            if (chosen := self(conversation)) is not None:
                yield chosen

    def _said(self) -> str:
        return ", ".join(f"{count:,} {kind}" for kind, count in sorted(self.kinds.items()))

    def lines(self) -> list[str]:
        """What was found and done, for the person at the terminal; empty where every order is right."""
        if not self.kinds:
            return []
        return [
            f"{self.repaired:,} conversations repaired and {self.dropped:,} dropped for the order of their turns "
            f"({self._said()})"
        ]
