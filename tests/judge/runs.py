"""Runs whose turns are known to be right or wrong."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from made_runs import make_run

from tests.results.report.pages import edit_episodes

REFUSED = "Nothing happens."


def make_judged_run(
    folder: Path, tasks: int = 10, turns: int = 30, wrong: float = 0.4, **options: Any
) -> Path:
    """Episodes of two families; a turn is refused with probability `wrong`, all others do something new."""
    draw = random.Random(7)
    make_run(folder, {"babyai": [(False, 0.0)] * tasks, "pddl": [(False, 0.0)] * tasks}, **options)

    def change(episode: dict[str, Any]) -> None:
        template = episode["turns"][0]
        episode["turns"] = []
        for number in range(1, turns + 1):
            refused = draw.random() < wrong
            name = f"{episode['task_id']} {number}"
            episode["turns"].append(
                {
                    **template,
                    "turn": number,
                    "thought": f"I think of {name}",
                    "action": f"go to {name}",
                    "observation": REFUSED if refused else f"You see {name}.",
                    "valid": not refused,
                }
            )

    edit_episodes(folder, change)
    return folder


def change_turn(folder: Path, number: int, **values: Any) -> None:
    """Of the first task of babyai."""

    def change(episode: dict[str, Any]) -> None:
        if episode["task_id"].endswith("babyai/agentboard/000"):
            episode["turns"][number - 1] |= values

    edit_episodes(folder, change)
