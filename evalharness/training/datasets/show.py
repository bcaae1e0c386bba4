"""A conversation of a data set for a terminal. All of it may be a model's text: escaped."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from evalharness.base.text import printable
from evalharness.training.datasets.conversation import Conversation, MarkedMessage

_STYLES = {"system": "magenta", "user": "cyan", "assistant": "green"}


def conversation_lines(conversation: Conversation) -> Iterator[RenderableType]:
    yield Text(printable(conversation.id, single_line=True), style="bold")
    for message in conversation.messages:
        yield Text(f"{message.role}{_marks(message)}", style=_STYLES[message.role])
        yield Padding(Text(printable(message.content)), (0, 0, 0, 2))


def _marks(message: MarkedMessage) -> str:
    """What is said of an assistant's turn beside its words."""
    if message.role != "assistant":
        return ""
    said = ["trained" if message.trained else "not trained"]
    said += [f"error: {', '.join(message.error)}"] if message.error else []
    said += ["refinement"] if message.refine else []
    return f" ({printable('; '.join(said), single_line=True)})"
