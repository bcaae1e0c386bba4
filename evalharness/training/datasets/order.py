"""Find and repair conversations in which the messages of user and assistant do not alternate.

Trainers and chat templates require this order: system text, user, assistant, user, assistant, ...
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from evalharness.training.datasets.conversation import Conversation, JsonCounts, MarkedMessage

BEGINS, REPEATS, SYSTEM, EMPTY = (
    "begins with the assistant's turn",
    "one speaker twice in a row",
    "a system message that is not the first",
    "an empty turn",
)


def find_faults(messages: Iterable[MarkedMessage]) -> list[str]:
    """Return the kinds of fault in order of first appearance, each kind once."""
    faults: list[str] = []
    before: MarkedMessage | None = None
    for at, message in enumerate(messages):
        if message.role == "system" and at:
            faults.append(SYSTEM)
        if _is_empty(message):
            faults.append(EMPTY)
        if message.role == "assistant" and (before is None or before.role == "system"):
            faults.append(BEGINS)
        if before is not None and message.role == before.role != "system":
            faults.append(REPEATS)
        before = message
    return list(dict.fromkeys(faults))


def repair(messages: Iterable[MarkedMessage]) -> tuple[MarkedMessage, ...]:
    """Repair the order: drop empty turns, change later system messages to user messages, join neighbouring messages of
    one speaker, and drop assistant turns before the first user turn. A joined turn is trained if all its parts are
    trained."""
    result: list[MarkedMessage] = []
    for at, message in enumerate(messages):
        if _is_empty(message):
            continue
        turn = replace(message, role="user", loss=None) if message.role == "system" and at else message
        if turn.role == "assistant" and (not result or result[-1].role == "system"):
            continue
        if result and result[-1].role == turn.role:
            result[-1] = _join(result[-1], turn)
        else:
            result.append(turn)
    return tuple(result)


def _is_empty(message: MarkedMessage) -> bool:
    """Return whether the message can be dropped. An empty reply that is marked as an error is kept."""
    return not message.content.strip() and not message.error


def _join(first: MarkedMessage, second: MarkedMessage) -> MarkedMessage:
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
class OrderCheck(JsonCounts):
    """Repairs conversations and counts the repairs. Calling it returns the repaired conversation, or None if no turn of
    the assistant is left."""

    kinds: Counter[str] = field(default_factory=Counter)
    """Kind of fault -> number of conversations."""
    repaired: int = 0
    dropped: int = 0

    def __call__(self, conversation: Conversation) -> Conversation | None:
        faults = find_faults(conversation.messages)
        if not faults:
            return conversation
        self.kinds.update(faults)
        messages = repair(conversation.messages)
        if not any(message.role == "assistant" for message in messages):
            self.dropped += 1
            return None
        self.repaired += 1
        return conversation.replace_messages(messages)

    def of(self, conversations: Iterable[Conversation]) -> Iterator[Conversation]:
        """Yield the repaired conversations, without those that must be left out."""
        for conversation in conversations:
            if (chosen := self(conversation)) is not None:
                yield chosen

    def _list_kinds(self) -> str:
        return ", ".join(f"{count:,} {kind}" for kind, count in sorted(self.kinds.items()))

    def lines(self) -> list[str]:
        """Return messages about repaired and dropped conversations; empty if there are none."""
        if not self.kinds:
            return []
        return [
            f"{self.repaired:,} conversations repaired and {self.dropped:,} dropped for the order of their turns "
            f"({self._list_kinds()})"
        ]
