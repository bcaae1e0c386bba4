"""Draw turns to judge at random by seed, in equal numbers from each family."""

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
from evalharness.results.tables import sorted_episodes


def draw(turns: Mapping[str, Iterable[TurnKey]], count: int | None, seed: int) -> list[TurnKey]:
    """Draw `count` turns (None: all) in a fixed random order: the first turn of each family, the second of each, and
    so on.

    `turns`: family -> its turns. A larger count begins with the same turns, so more turns can be judged later.
    """

    def place(key: TurnKey) -> bytes:
        return hashlib.sha256(f"{seed}/{'/'.join(map(str, key))}".encode()).digest()

    shuffled = [sorted(turns[family], key=place) for family in sorted(turns)]
    mixed = [key for row in zip_longest(*shuffled) for key in row if key is not None]
    return mixed if count is None else mixed[:count]


@dataclass(frozen=True)
class DrawnTurn:
    """A turn and its episode."""

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
        """Hash of the episode up to the turn."""
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
    """All turns, by family, task, sample and turn."""

    @property
    def digest(self) -> str:
        """Hash of the run's identity. A run with more samples of each task is still the same run."""
        identity = self.manifest.identity.to_json()
        config = {key: value for key, value in identity["config"].items() if key != "samples"}
        return digest({**identity, "config": config})

    def draw_turns(self, count: int | None, seed: int) -> list[DrawnTurn]:
        """Draw turns. Raises UserError if the run has no turns."""
        by_family: dict[str, list[TurnKey]] = {}
        for key, turn in self.turns.items():
            by_family.setdefault(turn.family, []).append(key)
        if not by_family:
            raise UserError(
                f"{self.folder} has no turns to judge; finish some episodes with: evalharness run"
            )
        return [self.turns[key] for key in draw(by_family, count, seed)]

    def drawn_balanced(self, count: int, seed: int, judge: Rater) -> list[DrawnTurn]:
        """Draw half the turns from those that the judge calls right, half from the wrong ones (poster, figure 10)."""
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

    def strangers(self, verdicts: Mapping[TurnKey, Verdict]) -> list[TurnKey]:
        """Return the turns that this run does not have, or that it played differently from what was judged."""
        return sorted(
            key
            for key, verdict in verdicts.items()
            if key not in self.turns or verdict.turn_sha256 not in (None, self.turns[key].sha256)
        )

    def require(self, verdicts: Mapping[TurnKey, Verdict], source: str) -> None:
        """Raise UserError that names the first of the `strangers`, if there are any."""
        if strangers := self.strangers(verdicts):
            has = "another" if strangers[0] in self.turns else "no"
            more = f" (and {len(strangers) - 1} more)" if len(strangers) > 1 else ""
            raise UserError(
                f"{source}: {self.folder} has {has} {format_key(strangers[0])}{more}; is it of another run?"
            )


def load_turns(folder: Path) -> JudgedRun:
    """Load the run of a folder. Raises UserError if the folder has no run."""
    manifest = read_manifest(folder)
    turns: Sequence[DrawnTurn] = [
        DrawnTurn(episode, number)
        for episode in sorted_episodes(folder)
        for number in range(1, len(episode.turns) + 1)
    ]
    return JudgedRun(folder, manifest, {turn.key: turn for turn in turns})
