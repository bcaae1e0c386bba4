"""Sample the turns to judge, equally many from each environment family."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from evalharness.base.errors import UserError
from evalharness.judge.verdict import Rater, TurnKey, Verdict, format_key
from evalharness.records.episode import Episode, Turn
from evalharness.records.identity import digest
from evalharness.records.manifest import Manifest
from evalharness.records.store import read_manifest
from evalharness.results.tables import read_sorted_episodes


def draw(turns: Mapping[str, Iterable[TurnKey]], count: int | None, seed: int) -> list[TurnKey]:
    """Return `count` turns (None: all), in an order that depends only on the seed. Families take turns.

    `turns` has the turns of each family. A larger count begins with the same turns, so more can be judged later.
    """

    def place(key: TurnKey) -> bytes:
        return hashlib.sha256(f"{seed}/{'/'.join(map(str, key))}".encode()).digest()

    shuffled = [sorted(turns[family], key=place) for family in sorted(turns)]
    mixed = [key for row in zip_longest(*shuffled) for key in row if key is not None]
    return mixed if count is None else mixed[:count]


@dataclass(frozen=True)
class DrawnTurn:
    """A turn to judge, with its episode."""

    episode: Episode
    number: int
    """Number of the turn, from 1."""

    @property
    def key(self) -> TurnKey:
        return self.episode.task_id, self.episode.sample, self.number

    @property
    def family(self) -> str:
        return self.episode.family

    @property
    def sha256(self) -> str:
        """Hash of the goal and of all turns up to this one."""
        first, turns = self.since(self.number)
        played = [(turn.thought, turn.action, turn.reply, turn.observation) for turn in turns]
        text = json.dumps([self.episode.goal, first, played])
        return hashlib.sha256(text.encode()).hexdigest()

    def since(self, earlier: int) -> tuple[str, Sequence[Turn]]:
        """Return the turns up to and including this one, with at most `earlier` turns before it, and the observation
        that precedes the first of them."""
        first = max(0, self.number - 1 - earlier)
        before = self.episode.turns[first - 1].observation if first else self.episode.first_observation
        return before, self.episode.turns[first : self.number]


@dataclass(frozen=True)
class JudgedRun:
    """A run with all its turns, for raters."""

    folder: Path
    manifest: Manifest
    turns: Mapping[TurnKey, DrawnTurn]
    """All turns, sorted by family, task, sample and turn number."""

    @property
    def digest(self) -> str:
        """Hash of the run's identity. The number of samples is left out, so that judgements stay valid if it grows."""
        identity = self.manifest.identity.to_json()
        config = {key: value for key, value in identity["config"].items() if key != "samples"}
        return digest({**identity, "config": config})

    def draw_turns(self, count: int | None, seed: int) -> list[DrawnTurn]:
        """Sample `count` turns; None means all turns. Raises UserError if the run has no turns."""
        by_family: dict[str, list[TurnKey]] = {}
        for key, turn in self.turns.items():
            by_family.setdefault(turn.family, []).append(key)
        if not by_family:
            raise UserError(
                f"{self.folder} has no turns to judge; finish some episodes with: evalharness run"
            )
        return [self.turns[key] for key in draw(by_family, count, seed)]

    def draw_balanced_turns(self, count: int, seed: int, judge: Rater) -> list[DrawnTurn]:
        """Sample half of the turns from those the judge calls right, half from the wrong ones (poster, figure 10)."""
        every = self.draw_turns(None, seed)
        keys: set[TurnKey] = set()
        for wrong, word in ((False, "right"), (True, "wrong")):
            called = [
                t.key for t in every if t.key in judge.verdicts and judge.verdicts[t.key].wrong is wrong
            ]
            if len(called) < count // 2:
                raise UserError(
                    f"--balanced: {judge.name} calls {len(called)} turns {word}, and {count // 2} are needed; judge "
                    "more turns with evalharness judge, or give a smaller --turns"
                )
            keys.update(called[: count // 2])
        return [turn for turn in every if turn.key in keys]

    def find_unknown(self, verdicts: Mapping[TurnKey, Verdict]) -> list[TurnKey]:
        """Return the judged turns that are not in this run, or whose content differs from what the rater saw."""
        return sorted(
            key
            for key, verdict in verdicts.items()
            if key not in self.turns or verdict.turn_sha256 not in (None, self.turns[key].sha256)
        )

    def require_known(self, verdicts: Mapping[TurnKey, Verdict], source: str) -> None:
        """Raise UserError if a judged turn is not in this run, or differs from what the rater saw."""
        if unknown := self.find_unknown(verdicts):
            has = "another" if unknown[0] in self.turns else "no"
            more = f" (and {len(unknown) - 1} more)" if len(unknown) > 1 else ""
            raise UserError(
                f"{source}: {self.folder} has {has} {format_key(unknown[0])}{more}; is it of another run?"
            )


def load_turns(folder: Path) -> JudgedRun:
    """Load the run of a folder. Raises UserError if the folder has no run."""
    manifest = read_manifest(folder)
    turns: Sequence[DrawnTurn] = [
        DrawnTurn(episode, number)
        for episode in read_sorted_episodes(folder)
        for number in range(1, len(episode.turns) + 1)
    ]
    return JudgedRun(folder, manifest, {turn.key: turn for turn in turns})
