"""The turns of a trajectory. One model plays both the Dungeon Master (the game's simulator) and the player (appendix H
of the paper)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from evalharness.training.datasets.conversation import MarkedMessage
from evalharness.training.datasets.modes import mark_turns
from evalharness.training.synthesis.script import KeysError, list_mistakes

KINDS = ("parameter", "place", "logic")
SUCCEEDED = "Task Succeed"
"""Text that the last observation must contain."""
MOST_TURNS = 200


class _Turn(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")

    turn: int
    """The turn's number as the model wrote it. `read_turn` replaces it by the turn's position in the list."""
    thought: str = Field(alias="Thought")

    def to_json(self) -> dict[str, Any]:
        return self.model_dump(mode="json", by_alias=True)


class MasterTurn(_Turn):
    """A turn of the Dungeon Master: an observation, and error flags about the player's previous action."""

    role: Literal["DM"]
    observation: str = Field(alias="Observation")
    parameter_error: bool
    """The player's previous action does not have the format of any available action."""
    place_error: bool
    """The player's previous action was done in the wrong place."""
    logic_error: bool
    """The player's previous action changed nothing, or returned to an earlier state."""
    progress_rate: float = Field(le=1.0, allow_inf_nan=False)
    finished: bool

    @property
    def errors(self) -> tuple[str, ...]:
        return tuple(kind for kind in KINDS if getattr(self, f"{kind}_error"))


class PlayerTurn(_Turn):
    role: Literal["Player"]
    action: str = Field(alias="Action")


Turn: TypeAlias = MasterTurn | PlayerTurn
_TURN: TypeAdapter[Turn] = TypeAdapter(Annotated[Turn, Field(discriminator="role")])


def read_turn(value: Any, place: int) -> Turn:
    """Return the turn at position `place`. The Dungeon Master has the positions 0, 2, 4, ... Raises KeysError."""
    try:
        turn = _TURN.validate_python(value)
    except ValidationError as error:
        raise KeysError([f"turn {place}: {line}" for line in list_mistakes(error)]) from None
    expected = "Player" if place % 2 else "DM"
    if turn.role != expected:
        raise KeysError([f"turn {place} has to be of {expected}, and it is of {turn.role}"])
    return turn.model_copy(update={"turn": place})


def count_error_turns(turns: Sequence[Turn]) -> int:
    """Count the Dungeon Master's turns that flag an error of the player."""
    return sum(isinstance(turn, MasterTurn) and bool(turn.errors) for turn in turns)


def list_progress(turns: Sequence[Turn]) -> list[float]:
    """Return the Dungeon Master's `progress_rate` after each turn of the player."""
    return [turn.progress_rate for turn in turns[1:] if isinstance(turn, MasterTurn)]


_LABEL = re.compile(r"^\s*(?:thought|action)\s*:\s*", re.IGNORECASE)


def write_reply(turn: PlayerTurn) -> str:
    """Return the player's turn as a reply "Thought: ... Action: ...", even if the model already wrote these labels."""
    thought, action = (_LABEL.sub("", text).strip() for text in (turn.thought, turn.action))
    return f"Thought: {thought}\nAction: {action}"


def mark_messages(turns: Sequence[Turn]) -> tuple[MarkedMessage, ...]:
    """Return the conversation to train on. The Dungeon Master's observations become user messages.

    A player's turn is trained if the next turn has no error flag (the paper's section 3.3). The observation after the
    last action is left out.
    """
    messages: list[MarkedMessage] = []
    for turn, following in pairwise(turns):
        if isinstance(turn, MasterTurn):
            # As in an episode, the first user message states the task, and later user messages are observations.
            text = f"Observation: {turn.observation}" if messages else turn.observation
            messages.append(MarkedMessage("user", text))
            continue
        assert isinstance(following, MasterTurn)
        messages.append(MarkedMessage("assistant", write_reply(turn), error=following.errors))
    return mark_turns(messages)
