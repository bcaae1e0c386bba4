"""The turns of a trajectory, in which one model plays Dungeon Master and player (appendix H of the paper)."""

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
"""Text of the last observation."""
MOST_TURNS = 200


class _Turn(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")

    turn: int
    """The model's own number of the turn; only the place in the list counts."""
    thought: str = Field(alias="Thought")

    def to_json(self) -> dict[str, Any]:
        return self.model_dump(mode="json", by_alias=True)


class MasterTurn(_Turn):
    """A turn of the Dungeon Master: the observation, and the errors of the action before it."""

    role: Literal["DM"]
    observation: str = Field(alias="Observation")
    parameter_error: bool
    """The last action has the format of no available action."""
    place_error: bool
    """The last action was done in the wrong place."""
    logic_error: bool
    """The last action changes nothing, or returns to an earlier state."""
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
    """Return the turn at `place` (from 0; the Dungeon Master's are even). Raises KeysError."""
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
    """Return the progress after each turn of the player, as the Dungeon Master states it."""
    return [turn.progress_rate for turn in turns[1:] if isinstance(turn, MasterTurn)]


_LABEL = re.compile(r"^\s*(?:thought|action)\s*:\s*", re.IGNORECASE)


def write_reply(turn: PlayerTurn) -> str:
    """Return the player's turn as an agent's reply. A label that the model wrote itself is not repeated."""
    thought, action = (_LABEL.sub("", text).strip() for text in (turn.thought, turn.action))
    return f"Thought: {thought}\nAction: {action}"


def mark_messages(turns: Sequence[Turn]) -> tuple[MarkedMessage, ...]:
    """Return the conversation to train on. The Dungeon Master's observations are the user's messages.

    A player's turn is trained if the next turn has no error flag (the paper's section 3.3). The observation after the
    last action is left out.
    """
    messages: list[MarkedMessage] = []
    for turn, following in pairwise(turns):
        if isinstance(turn, MasterTurn):
            # As in an episode: the first message states the task, later ones are observations.
            text = f"Observation: {turn.observation}" if messages else turn.observation
            messages.append(MarkedMessage("user", text))
            continue
        assert isinstance(following, MasterTurn)
        messages.append(MarkedMessage("assistant", write_reply(turn), error=following.errors))
    return mark_turns(messages)
