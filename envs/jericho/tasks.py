"""Load the tasks of all suites. We wrote the subgoals of the games for which AgentBoard published no subgoals."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

from evalharness.base.reading import read_text
from evalharness.envs.base import Difficulty, InvalidTaskError, LabelSource, MissingDataError, Suite, Task
from evalharness.envs.published import folder_of, label_rows

UNWRAPPED: Final = "unwrapped"
"""Suite of AgentBoard's games without AgentBoard's rules: the game's own score measures progress, as in TALES."""
FOLDER: Final = "agentboard/jericho"
GOALS: Final = "partial_labels.jsonl"
OFFICIAL: Final = "test.jsonl"
TEXTS: Final = "game_texts.json"

GAMES: Final = (
    "905", "acorncourt", "afflicted", "balances", "dragon", "jewel", "library", "omniquest", "reverb",
    "snacktime", "zenon", "zork1", "zork2", "zork3", "detective", "night", "pentari", "weapon", "huntdark",
    "loose",
)  # fmt: skip
"""AgentBoard's games, in the order of the rows in its label file."""


def load_tasks(suite: Suite, data: Path | None, seed: int) -> list[Task]:
    """Return all tasks of a suite in order; only `open` uses `seed`, only the other suites use `data`."""
    if suite == "agentboard":
        return _load_published(data)
    if suite == UNWRAPPED:
        return [_make_unwrapped(index, game) for index, game in enumerate(GAMES)]
    from evalharness.envs.jericho.open.generator import generate

    return list(generate(seed))


@cache
def _stories() -> dict[str, tuple[str, str]]:
    """Return game -> (path of its story file in the data folder, SHA-256 of the story file that the labels fit)."""
    table = json.loads(Path(__file__).with_name("published.json").read_text(encoding="utf-8"))
    return {
        Path(name).stem: (f"{FOLDER}/{name}", digest)
        for name, digest in table["files"].items()
        if name.startswith("roms/")
    }


def _rows(folder: Path, name: str) -> list[dict[str, Any]]:
    return label_rows(folder, "Jericho", name) if (folder / name).is_file() else []


def _texts(path: Path) -> dict[str, dict[str, Any]]:
    """Return the goal and the opening text of each game, which the import reads from AgentBoard's source code."""
    if not path.is_file():
        return {}
    try:
        texts = json.loads(read_text(path))
        goals, openings = texts["game_goals"], texts["game_init_obs"]
        keys = {game: "darkhunt" if game == "huntdark" else game for game in GAMES}
        return {game: {"goal": goals[key], "init_obs": openings[key]} for game, key in keys.items()}
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidTaskError(
            f"{path} was changed after the import: {error!r}; run `evalharness data verify`"
        ) from error


def _load_published(data: Path | None) -> list[Task]:
    """Return all tasks in the published order.

    The task of the game `huntdark` differs from AgentBoard. There, a wrong name (`darkhunt`) in the code has the effect
    that its goal and its opening text are "Not written yet.". We use the texts that were written for the game.
    """
    folder = folder_of(data, "jericho", "Jericho")
    written = {row["game"]: row for row in _rows(folder, GOALS)}
    official = dict(zip(GAMES, _rows(folder, OFFICIAL), strict=False))
    if not written and not official:
        raise MissingDataError(f"no {GOALS} in {folder}")
    written = written or _texts(folder / TEXTS)
    return [_task(index, game, written.get(game), official.get(game)) for index, game in enumerate(GAMES)]


def _task(index: int, game: str, written: dict[str, Any] | None, official: dict[str, Any] | None) -> Task:
    source = written or official
    if source is None:
        raise InvalidTaskError(f"the Jericho data has no goal for {game}; run `evalharness data verify`")
    published = (official or {}).get("subgoals") or (written or {}).get("subgoals")
    subgoals = tuple(published or game_labels()[game].subgoals)
    labels: LabelSource = "official" if published else "ours"
    story, digest = _stories()[game]
    difficulty: Difficulty = (official or source)["difficulty"]
    return Task(
        id=f"jericho/agentboard/{index:03d}",
        family="jericho",
        suite="agentboard",
        index=index,
        goal=source["goal"],
        difficulty=difficulty,
        kind=game,
        labels=labels,
        subgoals=subgoals,
        payload={
            "game": game,
            "story": story,
            "sha256": digest,
            "opening": source.get("init_obs", ""),
        },
    )


def _make_unwrapped(index: int, game: str) -> Task:
    story, digest = _stories()[game]
    return Task(
        id=f"jericho/{UNWRAPPED}/{index:03d}",
        family="jericho",
        suite=UNWRAPPED,
        index=index,
        goal="",  # the game itself tells the player its goal
        difficulty="hard",
        kind=game,
        labels="simulator",
        subgoals=(),
        payload={"game": game, "story": story, "sha256": digest},
    )


def find_published_story(task: Task, data: Path | None) -> Path:
    """Return the game's story file. Raise InvalidTaskError if it is not the version that the labels fit."""
    if data is None:
        raise MissingDataError("the published Jericho games need the benchmark's data")
    path = data / str(task.payload["story"])
    if not path.is_file():
        raise MissingDataError(f"no story file {path}")
    if hashlib.sha256(path.read_bytes()).hexdigest() != task.payload["sha256"]:
        raise InvalidTaskError(
            f"{path} is not the version that the labels were made for; run `evalharness data verify`"
        )
    return path


@dataclass(frozen=True)
class GameLabels:
    """The subgoals and the plan that we wrote for a published game (in labels.yaml)."""

    subgoals: tuple[str, ...]
    """Phrases that the game prints, in the order of the plan; empty if AgentBoard published subgoals for the game."""
    plan: tuple[str, ...]
    """Commands that complete all subgoals from the start of the game."""


@cache
def game_labels() -> Mapping[str, GameLabels]:
    """Return name of a game -> our labels."""
    text = Path(__file__).with_name("labels.yaml").read_text(encoding="utf-8")
    return {
        str(game): GameLabels(
            subgoals=tuple(subgoal["match"] for subgoal in entry.get("subgoals", ())),
            plan=tuple(entry["plan"]),
        )
        for game, entry in yaml.safe_load(text).items()
    }
