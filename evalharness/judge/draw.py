"""Which turns are judged: drawn by seed, as many of each family as there are. Pure but for reading the run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from evalharness.base.errors import UserError
from evalharness.judge.verdict import TurnKey, shown_key
from evalharness.records.episode import Episode, Turn
from evalharness.records.identity import digest
from evalharness.records.manifest import Manifest
from evalharness.records.store import read_manifest
from evalharness.results.tables import sorted_episodes


def draw(turns: Mapping[str, Iterable[TurnKey]], count: int | None, seed: int) -> list[TurnKey]:
    """`count` turns (None: all) in a fixed random order, families in turn: the first, the second ... of each.

    `turns`: family -> its turns. A larger count begins with the same turns, so that more can be judged later.
    """

    def place(key: TurnKey) -> bytes:
        return hashlib.sha256(f"{seed}/{'/'.join(map(str, key))}".encode()).digest()

    shuffled = [sorted(turns[family], key=place) for family in sorted(turns)]
    mixed = [key for row in zip_longest(*shuffled) for key in row if key is not None]
    return mixed if count is None else mixed[:count]


@dataclass(frozen=True)
class DrawnTurn:
    """A turn, and the episode it is of."""

    episode: Episode
    number: int
    """From 1."""

    @property
    def key(self) -> TurnKey:
        return self.episode.task_id, self.episode.sample, self.number

    @property
    def family(self) -> str:
        return self.episode.family

    def since(self, earlier: int) -> tuple[str, Sequence[Turn]]:
        """What was observed before, and the turns up to this one: at most so many earlier ones."""
        first = max(0, self.number - 1 - earlier)
        before = self.episode.turns[first - 1].observation if first else self.episode.first_observation
        return before, self.episode.turns[first : self.number]


def played_digest(manifest: Manifest) -> str:
    """Of what was played. A run that got more samples of each task is still the same run."""
    identity = manifest.identity.to_json()
    config = {key: value for key, value in identity["config"].items() if key != "samples"}
    return digest({**identity, "config": config})


@dataclass(frozen=True)
class JudgedRun:
    """A run as raters see it."""

    folder: Path
    manifest: Manifest
    turns: Mapping[TurnKey, DrawnTurn]
    """All of them, by family, task, sample and turn."""

    @property
    def digest(self) -> str:
        return played_digest(self.manifest)

    def drawn(self, count: int | None, seed: int) -> list[DrawnTurn]:
        """Raises UserError when the run has no turns."""
        by_family: dict[str, list[TurnKey]] = {}
        for key, turn in self.turns.items():
            by_family.setdefault(turn.family, []).append(key)
        if not by_family:
            raise UserError(
                f"{self.folder} has no turns to judge; finish some episodes with: evalharness run"
            )
        return [self.turns[key] for key in draw(by_family, count, seed)]

    def require(self, keys: Iterable[TurnKey], source: str) -> None:
        """Raises UserError naming the first turn that this run does not have."""
        missing = sorted(key for key in keys if key not in self.turns)
        if missing:
            more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
            raise UserError(
                f"{source}: {self.folder} has no {shown_key(missing[0])}{more}; is it of another run?"
            )


def load_turns(folder: Path) -> JudgedRun:
    """Raises UserError when `folder` holds no run."""
    manifest = read_manifest(folder)
    turns: Sequence[DrawnTurn] = [
        DrawnTurn(episode, number)
        for episode in sorted_episodes(folder)
        for number in range(1, len(episode.turns) + 1)
    ]
    return JudgedRun(folder, manifest, {turn.key: turn for turn in turns})
