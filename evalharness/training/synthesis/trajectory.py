"""The turns of a trajectory: one model plays Dungeon Master and player (appendix H of the paper)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from evalharness.training.datasets.conversation import MarkedMessage
from evalharness.training.datasets.modes import mark_turns
from evalharness.training.synthesis.script import KeysError, mistakes_of

KINDS = ("parameter", "place", "logic")
SUCCEEDED = "Task Succeed"
"""What the last observation contains."""
MOST_TURNS = 200


class _Turn(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")

    turn: int
    """As the model counts; its place in the list is what counts."""
    thought: str = Field(alias="Thought")

    def to_json(self) -> dict[str, Any]:
        return self.model_dump(mode="json", by_alias=True)


class MasterTurn(_Turn):
    """The world's side: what is seen, and what was wrong with the action before."""

    role: Literal["DM"]
    observation: str = Field(alias="Observation")
    parameter_error: bool
    """The last action is not in the format of any available one."""
    place_error: bool
    """It was done in the wrong place."""
    logic_error: bool
    """It changes nothing, or goes back to what has been."""
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
    """The turn at `place` (from 0: the Dungeon Master's are even). Raises KeysError."""
    try:
        turn = _TURN.validate_python(value)
    except ValidationError as error:
        raise KeysError([f"turn {place}: {line}" for line in mistakes_of(error)]) from None
    expected = "Player" if place % 2 else "DM"
    if turn.role != expected:
        raise KeysError([f"turn {place} has to be of {expected}, and it is of {turn.role}"])
    return turn.model_copy(update={"turn": place})


def error_turns(turns: Sequence[Turn]) -> int:
    """Turns of the Dungeon Master that say that the player erred."""
    return sum(isinstance(turn, MasterTurn) and bool(turn.errors) for turn in turns)


def progress_of(turns: Sequence[Turn]) -> list[float]:
    """After each of the player's turns, as the Dungeon Master says."""
    return [turn.progress_rate for turn in turns[1:] if isinstance(turn, MasterTurn)]


_LABEL = re.compile(r"^\s*(?:thought|action)\s*:\s*", re.IGNORECASE)


def reply_text(turn: PlayerTurn) -> str:
    """The player's turn as an agent says it. A label that the model wrote itself is not written twice."""
    thought, action = (_LABEL.sub("", text).strip() for text in (turn.thought, turn.action))
    return f"Thought: {thought}\nAction: {action}"


def marked_messages(turns: Sequence[Turn]) -> tuple[MarkedMessage, ...]:
    """The conversation to train on: the Dungeon Master's observations are the user's.

    A player's turn is trained when the turn after it has no error flag (the paper's section 3.3). The last
    observation answers the last action and nobody reads it: it is left out.
    """
    messages: list[MarkedMessage] = []
    for turn, following in pairwise(turns):
        if isinstance(turn, MasterTurn):
            # As in an episode: the first message says the task, the later ones are observations.
            text = f"Observation: {turn.observation}" if messages else turn.observation
            messages.append(MarkedMessage("user", text))
            continue
        assert isinstance(following, MasterTurn)
        messages.append(MarkedMessage("assistant", reply_text(turn), error=following.errors))
    return mark_turns(messages)
