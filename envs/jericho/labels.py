"""Our own annotation of the published games (labels.yaml): subgoals and plans."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml


@dataclass(frozen=True)
class GameLabels:
    """What we know of one game."""

    subgoals: tuple[str, ...]
    """Phrases of game text, in the order in which the plan meets them; empty where official ones exist."""
    plan: tuple[str, ...]
    """Commands from the start that complete all subgoals."""


@cache
def game_labels() -> Mapping[str, GameLabels]:
    """By the game's name."""
    text = Path(__file__).with_name("labels.yaml").read_text(encoding="utf-8")
    return {
        str(game): GameLabels(
            subgoals=tuple(subgoal["match"] for subgoal in entry.get("subgoals", ())),
            plan=tuple(entry["plan"]),
        )
        for game, entry in yaml.safe_load(text).items()
    }
