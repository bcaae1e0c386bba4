"""Load the tasks. The user's data has the goals and openings of the published games; some subgoals are ours."""

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
"""Suite of the published games in their own words and with their own score, as TALES plays them."""
FOLDER: Final = "agentboard/jericho"
GOALS: Final = "partial_labels.jsonl"
OFFICIAL: Final = "test.jsonl"
TEXTS: Final = "game_texts.json"

GAMES: Final = (
    "905", "acorncourt", "afflicted", "balances", "dragon", "jewel", "library", "omniquest", "reverb",
    "snacktime", "zenon", "zork1", "zork2", "zork3", "detective", "night", "pentari", "weapon", "huntdark",
    "loose",
)  # fmt: skip
"""The published games in the published order, the order of rows in the official label file."""


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
    """Return game -> (path of the story in the data folder, SHA-256 of the version that the labels are for)."""
    table = json.loads(Path(__file__).with_name("published.json").read_text(encoding="utf-8"))
    return {
        Path(name).stem: (f"{FOLDER}/{name}", digest)
        for name, digest in table["files"].items()
        if name.startswith("roms/")
    }


def _rows(folder: Path, name: str) -> list[dict[str, Any]]:
    return label_rows(folder, "Jericho", name) if (folder / name).is_file() else []


def _texts(path: Path) -> dict[str, dict[str, Any]]:
    """Return goal and opening of each game from AgentBoard's source code, if it was imported."""
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

    Goals and opening texts come from the file that lists them by game, so that `huntdark` has them, too. AgentBoard
    looks for the wrong name `darkhunt`, and plays the game with "Not written yet." as goal and opening.
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
        goal="",  # the game itself states its goal and keeps the score
        difficulty="hard",
        kind=game,
        labels="simulator",
        subgoals=(),
        payload={"game": game, "story": story, "sha256": digest},
    )


def published_story(task: Task, data: Path | None) -> Path:
    """Return the story file, if it has the hash of the version that the labels are for."""
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
    """Our annotation of one published game (labels.yaml)."""

    subgoals: tuple[str, ...]
    """Phrases of game text in the order of the plan; empty if official ones exist."""
    plan: tuple[str, ...]
    """Commands from the start that complete all subgoals."""


@cache
def game_labels() -> Mapping[str, GameLabels]:
    """Return the labels by the game's name."""
    text = Path(__file__).with_name("labels.yaml").read_text(encoding="utf-8")
    return {
        str(game): GameLabels(
            subgoals=tuple(subgoal["match"] for subgoal in entry.get("subgoals", ())),
            plan=tuple(entry["plan"]),
        )
        for game, entry in yaml.safe_load(text).items()
    }
