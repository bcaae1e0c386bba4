"""The reward that a training logged at its steps: `training.jsonl` in the folder of a study of checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Annotated

from pydantic import Field

from evalharness.base.reading import read_json, read_object
from evalharness.records.lines import LineFile, read_lines
from evalharness.records.stored import Stored

TRAINING_LOG = "training.jsonl"
REWARD = "reward"
"""Measure, and column, of the training's own episodes in tables and plots."""
Rewards = Mapping[int, float]
"""Step -> mean reward of an episode, in the order of steps."""


class Logged(Stored):
    """A step of the trainer's own log."""

    step: Annotated[int, Field(ge=0, lt=10**12)]
    reward: Annotated[float, Field(ge=-1e12, le=1e12)]


def read_rewards(folder: Path) -> Rewards:
    """Empty if there are none. Raises UserError on damage."""
    lines = read_lines(folder / TRAINING_LOG, "this part of the training's curve is lost", _read)
    return dict(sorted((line.step, line.reward) for line in lines if line is not None))


def _read(raw: bytes) -> Logged | None:
    """None for a line of an earlier version that holds no reward."""
    value = read_object(raw)
    return Logged.of(value) if "reward" in value else None


def keep_rewards(folder: Path, checkpoint: Path) -> None:
    """Add the rewards of the checkpoint's `trainer_state.json` to `training.jsonl`. Raises StoreError."""
    known = read_rewards(folder)
    new = [each for each in _rewards_in(checkpoint / "trainer_state.json") if each.step not in known]
    if new:
        with closing(LineFile(folder / TRAINING_LOG)) as file:
            file.drop_torn_line()
            for each in new:
                file.append(each.to_json())


def _rewards_in(state: Path) -> list[Logged]:
    """Empty if the file holds no rewards."""
    try:
        return [
            Logged.of({"step": entry["step"], "reward": entry["reward"]})
            for entry in read_json(state)["log_history"]
            if "reward" in entry and "step" in entry
        ]
    except (OSError, ValueError, KeyError, TypeError):
        return []
