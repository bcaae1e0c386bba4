"""List run folders and their scores. Scores come from summaries if possible, because reading episodes is slow."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from evalharness.base.errors import DamageWarning, UserError
from evalharness.base.reading import open_file, read_bytes, read_known, read_object
from evalharness.records.files import STUDY
from evalharness.records.store import EPISODES, LOCK, MANIFEST, SUMMARY, read_manifest
from evalharness.records.summary import Scores, Summary
from evalharness.results.score import ESTIMATED, HELD_OUT, POOLED
from evalharness.results.summarize import hash_sources, summarize
from evalharness.runs.find_runs import below
from evalharness.runs.study_file import read_study

State = Literal["complete", "running", "part", "damaged"]
_MEASURES = ("success", "progress")
_WORST: tuple[State, ...] = ("running", "damaged", "part")


@dataclass(frozen=True)
class RunEntry:
    """A run, or a study with its runs."""

    folder: Path
    state: State
    model: str = ""
    suite: str = ""
    """Name and seed, such as `agentboard`, `open`, or `open, seed 3`."""
    perturbation: str | None = None
    families: tuple[str, ...] = ()
    tasks: int = 0
    done: int = 0
    episodes: int = 0
    played: float = 0.0
    """Start of the last session (Unix time)."""
    part: bool = False
    """Whether the run selects only some tasks of a family (`--limit`, `--draw`, a range of tasks)."""
    scores: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """A family, `held_out`, `held_out_estimate` or `pooled` -> measure (`success` or `progress`) -> fraction 0..1."""
    labels: Mapping[str, str] = field(default_factory=dict)
    study: str | None = None
    """Kind of the study, such as `sweep`; None for a run."""
    runs: tuple[RunEntry, ...] = ()
    why: str = ""
    """Why the state is `damaged`."""

    def headline(self, measure: str) -> float | None:
        """Return the run's main score: the held-out score, otherwise its estimate, otherwise the pooled score,
        otherwise the score of the only family. Return None if none of these exists."""
        scores = self.scores.get(self.headline_of or (self.families[0] if len(self.scores) == 1 else ""))
        return None if scores is None else scores[measure]

    @property
    def headline_of(self) -> str | None:
        """Return the key in `scores` of the main score: `held_out`, `held_out_estimate` or `pooled`. Return None if the
        main score is that of a family, or does not exist."""
        return next((name for name in (HELD_OUT, ESTIMATED, POOLED) if name in self.scores), None)

    def to_json(self) -> dict[str, Any]:
        data = asdict(self) | {"folder": str(self.folder), "runs": [run.to_json() for run in self.runs]}
        return data | {measure: self.headline(measure) for measure in _MEASURES}


def is_being_written(folder: Path) -> bool:
    """Return whether a process holds the lock of the folder, or of a run directly below a study's folder. Read the
    kernel's list of locks (Linux only), because taking the lock could make a run fail that starts at this moment."""
    try:
        files = (folder / LOCK, *folder.glob(f"*/{LOCK}"))
        inodes = {path.stat().st_ino for path in files if path.exists()}
        locks = Path("/proc/locks").read_text(encoding="ascii") if inodes else ""
    except OSError:
        return False
    held = [line.split() for line in locks.splitlines()]
    return any(words[1:2] == ["FLOCK"] and int(words[5].rpartition(":")[2]) in inodes for words in held)


def list_folder(folder: Path) -> list[RunEntry]:
    """Return every run and study at or below `folder`, sorted by path."""
    return [_study(one) if (one / STUDY).is_file() else _run(one) for one in below(folder) if _is_ours(one)]


def _is_ours(folder: Path) -> bool:
    """Return whether evalharness wrote the folder, even if a file is damaged; other programs write manifests, too."""
    if (folder / STUDY).is_file():
        return True
    try:
        return not read_object(read_bytes(folder / MANIFEST)).keys().isdisjoint({"digest", "identity"})
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError):
        return True


def _lines(path: Path) -> int:
    try:
        with open_file(path) as file:
            return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))
    except OSError:
        return 0


def _run(folder: Path) -> RunEntry:
    try:
        manifest = read_manifest(folder)
        config = manifest.config
        tasks = sum(manifest.counts.values())
        done, episodes = _lines(folder / EPISODES), tasks * config.samples
        scores = _scores(folder) if done else {}
    except UserError as error:
        return RunEntry(folder, "damaged", why=str(error))
    state: State = "running" if is_being_written(folder) else "complete" if done >= episodes else "part"
    return RunEntry(
        folder,
        state,
        model=manifest.display_name,
        suite=manifest.suite_name,
        perturbation=config.perturb,
        families=tuple(sorted(manifest.counts)),
        tasks=tasks,
        done=done,
        episodes=episodes,
        played=max(start.started for start in manifest.sessions),
        part=any(count < manifest.expected[family] for family, count in manifest.counts.items()),
        scores=scores,
        labels=manifest.user_labels,
    )


def _scores(folder: Path) -> dict[str, dict[str, float]]:
    """Read the scores from the summary; compute them if the summary is not of these episodes. Raises UserError."""
    try:
        stored = read_object(read_bytes(folder / SUMMARY))
        if stored.get("made_from") == hash_sources(folder, stored):
            return _of_summary(Summary.of(stored))
    except (OSError, ValueError):
        pass
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DamageWarning)
        return _of_summary(summarize(folder))


def _of_summary(summary: Summary) -> dict[str, dict[str, float]]:
    groups: dict[str, Scores] = {**summary.families}
    total = summary.held_out or summary.held_out_estimate or summary.pooled
    scores = {
        group: {measure: float(getattr(score, f"{measure}_rate") or 0) for measure in _MEASURES}
        for group, score in groups.items()
        if score.n
    }
    if total is not None:
        name = HELD_OUT if summary.held_out else ESTIMATED if summary.held_out_estimate else POOLED
        scores[name] = {measure: float(getattr(total, f"{measure}_rate") or 0) for measure in _MEASURES}
    return scores


def _study(folder: Path) -> RunEntry:
    try:
        study = read_study(folder)
        assert study is not None
        runs = [_run(folder / path) for path in study[1].values() if (folder / path / MANIFEST).is_file()]
    except UserError as error:
        return RunEntry(folder, "damaged", why=str(error))
    states: set[State] = {run.state for run in runs}
    if is_being_written(folder):
        states.add("running")
    if read_known(folder / STUDY).get("left"):
        states.add("part")
    state: State = next((worst for worst in _WORST if worst in states), "complete")
    return RunEntry(
        folder,
        state,
        model=_join_values(run.model for run in runs),
        suite=_join_values(run.suite for run in runs),
        families=tuple(sorted({family for run in runs for family in run.families})),
        tasks=max((run.tasks for run in runs), default=0),
        done=sum(run.done for run in runs),
        episodes=sum(run.episodes for run in runs),
        played=max((run.played for run in runs), default=0.0),
        part=any(run.part for run in runs),
        study=study[0],
        runs=tuple(runs),
    )


def _join_values(values: Any) -> str:
    return ", ".join(dict.fromkeys(filter(None, values)))


def newest_first(entries: Iterable[RunEntry]) -> list[RunEntry]:
    return sorted(entries, key=lambda entry: (-entry.played, str(entry.folder)))
