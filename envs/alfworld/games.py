"""Read ALFWorld's own data folder, which `alfworld-download` makes: `json_2.1.1/SPLIT/TASK/TRIAL/game.tw-pddl`.

Each split of the folder is a suite: `alfworld-seen` (140 games), `alfworld-unseen` (134 games), and `alfworld-train`
for training only. `games.csv` has the hashes of the evaluated games in both releases. The action to put a thing down
is `put X in/on Y` in the older release and `move X to Y` in the later release.
"""

from __future__ import annotations

import csv
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from evalharness.envs.base import ImportProgress, ImportRefusedError, InvalidTaskError, MissingDataError, Task

SPLITS = {
    "alfworld-seen": "valid_seen",
    "alfworld-unseen": "valid_unseen",
    "alfworld-train": "train",
}
"""Suite -> name of the split's folder."""
TRAIN = "alfworld-train"
TRAIN_GAMES = 3553
KINDS = {
    "pick_and_place_simple": "put",
    "pick_clean_then_place_in_recep": "clean",
    "pick_heat_then_place_in_recep": "heat",
    "pick_cool_then_place_in_recep": "cool",
    "look_at_obj_in_light": "examine",
    "pick_two_obj_and_place": "puttwo",
}
"""ALFWorld's task type -> AgentBoard's short name for it."""
GAME_NAME = re.compile(r"[A-Za-z_]+-[\w.]+-[\w.]+-[\w.]+-\d+/trial_[\w.]+")
FIX = "evalharness data import --alfworld DIR"

_FILE = "game.tw-pddl"
_MOVE = re.compile(r'action PutObject \{\s*template :: "move ')
_GOAL = re.compile(r'"Your task is to: (.*?)"')
_TEXTS = ("pddl_domain", "grammar", "pddl_problem")


@cache
def read_evaluated_games() -> dict[str, dict[str, tuple[str, str]]]:
    """Return split -> name of a game -> (its hash in ALFWorld's older release, its hash in the later release)."""
    games: dict[str, dict[str, tuple[str, str]]] = {"valid_seen": {}, "valid_unseen": {}}
    with Path(__file__).with_name("games.csv").open(newline="", encoding="ascii") as file:
        for row in csv.DictReader(file):
            games[row["split"]][row["name"]] = (row["put_sha256"], row["move_sha256"])
    return games


def parse_game(content: bytes) -> dict[str, Any]:
    """Parse a game file. Raise InvalidTaskError if it is invalid."""
    try:
        game = json.loads(content)
    except ValueError as error:
        raise InvalidTaskError(f"the game file is not JSON ({error})") from None
    if not isinstance(game, dict) or not all(isinstance(game.get(text), str) for text in _TEXTS):
        raise InvalidTaskError(f"the game file does not hold a JSON object with {', '.join(_TEXTS)}")
    return game


def hash_game(game: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the three texts that define the game: domain, grammar and problem."""
    return hashlib.sha256(json.dumps([game[text] for text in _TEXTS]).encode()).hexdigest()


def game_path(data: Path | None, split: str, name: str) -> Path:
    """Return the path of a game. Raise InvalidTaskError for an invalid name, MissingDataError without a data folder."""
    if split not in SPLITS.values() or not GAME_NAME.fullmatch(name):
        raise InvalidTaskError(f"not the name of an ALFWorld game: {split}/{name!r}")
    return _root(data) / split / name / _FILE


def load_split(suite: str, data: Path | None) -> list[Task]:
    """Return the tasks of a suite in `SPLITS`, sorted by name. Raise MissingDataError if games are missing, and
    InvalidTaskError if games have changed; the messages count and name these games."""
    split, root = SPLITS[suite], _root(data)
    if suite == TRAIN:
        return [_task(suite, index, name, parse_game(path.read_bytes()))
                for index, (name, path) in enumerate(_require_train(root))]  # fmt: skip
    missing, changed, tasks = [], [], list[Task]()
    for index, (name, hashes) in enumerate(read_evaluated_games()[split].items()):
        try:
            game = parse_game(game_path(data, split, name).read_bytes())
        except FileNotFoundError:
            missing.append(name)
            continue
        except InvalidTaskError:
            changed.append(name)
            continue
        if hash_game(game) in hashes:
            tasks.append(_task(suite, index, name, game))
        else:
            changed.append(name)
    total = len(read_evaluated_games()[split])
    if missing:
        raise MissingDataError(f"{suite}: {len(missing)} of {total} games are missing: {_some(missing)}", FIX)
    if changed:
        raise InvalidTaskError(
            f"{suite}: {len(changed)} of {total} games have changed: {_some(changed)}; import them again: {FIX}"
        )
    return tasks


def import_folder(source: Path, data: Path, progress: ImportProgress) -> Sequence[str]:
    """Copy the games of a folder that `alfworld-download` made. Raise ImportRefusedError if it has no such games."""
    root = next((folder for folder in (source / "json_2.1.1", source) if _splits_in(folder)), None)
    if root is None:
        raise ImportRefusedError(
            f"{source} has no json_2.1.1/valid_seen, valid_unseen or train; name the folder of alfworld-download"
        )
    lines = []
    for split in _splits_in(root):
        known, changed, copied = read_evaluated_games().get(split), [], 0
        for name, path in _games_in(root / split):
            progress(split, copied, None)
            if known is not None and name not in known:
                continue  # ALFWorld itself leaves this game out: it is unsolvable or has another task type
            content = path.read_bytes()
            try:
                game = parse_game(content)
            except InvalidTaskError:
                changed.append(name)
                continue
            if known is None and not _is_playable(name, game):
                continue
            if known is not None and hash_game(game) not in known[name]:
                changed.append(name)
                continue
            target = game_path(data, split, name)
            target.parent.mkdir(parents=True, exist_ok=True)
            part = target.with_suffix(".part")
            part.write_bytes(content)
            part.replace(target)
            copied += 1
        line = f"{split}: {copied:,} games imported"
        if known is not None:
            missing = [name for name in known if not game_path(data, split, name).is_file()]
            line = f"{line}, {len(known) - len(missing)} of {len(known)} there"
            line += f"; missing {len(missing)}: {_some(missing)}" if missing else ""
        else:
            line += "; for training only (env serve alfworld --suite alfworld-train)"
        lines.append(line + (f"; changed and left out {len(changed)}: {_some(changed)}" if changed else ""))
    return lines


def _root(data: Path | None) -> Path:
    if data is None:
        raise MissingDataError("ALFWorld's own games need its data folder", FIX)
    return data / "alfworld" / "json_2.1.1"


def _splits_in(folder: Path) -> list[str]:
    return [split for split in SPLITS.values() if (folder / split).is_dir()]


def _games_in(folder: Path) -> Iterator[tuple[str, Path]]:
    for path in sorted(folder.glob(f"*/*/{_FILE}")):
        name = "/".join(path.parts[-3:-1])
        if GAME_NAME.fullmatch(name):
            yield name, path


def _require_train(root: Path) -> list[tuple[str, Path]]:
    evaluated = {name for names in read_evaluated_games().values() for name in names}
    games = [(name, path) for name, path in _games_in(root / "train") if name not in evaluated]
    if not games:
        raise MissingDataError("ALFWorld's train games are not imported", FIX)
    return games


def _is_playable(name: str, game: Mapping[str, Any]) -> bool:
    """Return whether ALFWorld would use a game: it is solvable, of a known task type, and without sliced objects."""
    return bool(game.get("solvable")) and name.split("-")[0] in KINDS and "Sliced" not in name


def _task(suite: str, index: int, name: str, game: Mapping[str, Any]) -> Task:
    goal = _GOAL.search(game["grammar"])
    if goal is None:
        raise InvalidTaskError(f"{name}: the game's grammar names no task")
    task_type, object_type, _, target_type, _ = name.split("/")[0].split("-")
    kind = KINDS[task_type]
    return Task(
        id=f"alfworld/{suite}/{index:03d}",
        family="alfworld",
        suite=suite,
        index=index,
        goal=goal[1],
        difficulty="easy" if kind in ("put", "examine") else "hard",
        kind=kind,
        labels="simulator",
        payload={
            "split": SPLITS[suite],
            "game": name,
            "sha256": hash_game(game),
            "object": object_type.lower(),
            "target": target_type.lower(),
            **({"words": "move"} if _MOVE.search(game["grammar"]) else {}),
        },
    )


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
