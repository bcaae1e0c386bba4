"""Convert run folders to the data of the page: a small index, and the trajectories in blocks."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from evalharness.base.errors import UserError
from evalharness.base.paths import real_path
from evalharness.records.episode import Episode
from evalharness.records.manifest import Manifest
from evalharness.records.store import EpisodeKey
from evalharness.records.summary import Summary
from evalharness.results.behaviour.figures import FIGURES
from evalharness.results.behaviour.rows import ALL, BehaviourCounter, RunBehaviour, behaviour_rows
from evalharness.results.comparison import comparable_groups, compare_runs
from evalharness.results.exports.conversation import Protocol
from evalharness.results.report.prompts import Prompts
from evalharness.results.report.records import COLUMNS, ENDED_BY, TROUBLES, Judgements, list_row, trajectory
from evalharness.results.run_labels import labels_of, letter
from evalharness.results.scored_run import require_same, scored_run
from evalharness.results.summarize import SummaryBuilder, earlier_timing
from evalharness.results.tables import episodes_at, sort_offsets
from evalharness.results.terminal.answers import answer_of_comparison, answer_of_run
from evalharness.results.terminal.table import notes, performance_lines, token_lines, warnings

SCHEMA = 1
BLOCK_BYTES = 200_000
"""Approximate size of a block of trajectories. It unpacks in a few milliseconds, and it compresses well."""

BehaviourRow = tuple[str, str, float, float, float]
"""(title of the figure, family, value, ends of the interval). The family is "" for all families together."""
EpisodeJudgements = Mapping[EpisodeKey, Judgements]
JudgementsOf = Callable[[Path], EpisodeJudgements]
"""Function that maps a run folder to the judgements of its turns."""


def behaviour_figures(run: RunBehaviour) -> Sequence[BehaviourRow]:
    """Return the figures of `evalharness show --behaviour`; shares are in percent."""
    figures = {figure.name: figure for figure in FIGURES}
    rows = []
    for row in behaviour_rows(run):
        figure = figures[row.figure]
        title, times = (f"{figure.title} %", 100) if figure.share else (figure.title, 1)
        family = "" if row.family == ALL else row.family
        rows.append((title, family, times * row.value, times * row.low, times * row.high))
    return rows


def compress_json(value: Any) -> bytes:
    """Return the value as gzipped JSON; the same value gives the same bytes."""
    return gzip_text(json.dumps(value, separators=(",", ":")))


def gzip_text(text: str) -> bytes:
    return gzip.compress(text.encode(), compresslevel=6, mtime=0)


@dataclass
class TaskTable:
    positions: dict[str, int] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)

    def position(self, episode: Episode) -> int:
        if episode.task_id not in self.positions:
            self.positions[episode.task_id] = len(self.rows)
            self.rows.append(
                {
                    "id": episode.task_id,
                    "family": episode.family,
                    "kind": episode.kind,
                    "difficulty": episode.difficulty,
                    "goal": episode.goal,
                }
            )
        return self.positions[episode.task_id]


@dataclass
class RunRecords:
    """The page's data about the episodes of one run; the caller adds one episode after the other."""

    tasks: TaskTable
    prompts: Prompts
    manifest: Manifest
    judged: EpisodeJudgements = field(default_factory=dict)
    rows: list[tuple[float, ...]] = field(default_factory=list)
    _closed: list[bytes] = field(default_factory=list)
    _open: list[str] = field(default_factory=list)
    _open_bytes: int = 0
    _curves: dict[str, list[float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._protocol = Protocol.of(self.manifest)
        self._max_turns = max(self.manifest.turn_limits.values())

    def add(self, episode: Episode) -> None:
        self._count_progress(episode)
        row = list_row(episode, self.tasks.position(episode), len(self._closed), len(self._open))
        self.rows.append(row)
        record = trajectory(
            episode,
            self.prompts.of(episode, self._protocol),
            self.judged.get((episode.task_id, episode.sample)),
            self.prompts.sent(episode, self._protocol),
        )
        self._open.append(json.dumps(record, separators=(",", ":")))
        self._open_bytes += len(self._open[-1])
        if self._open_bytes >= BLOCK_BYTES:
            self._closed.append(self._pack())
            self._open, self._open_bytes = [], 0

    def blocks(self) -> list[bytes]:
        """Return the blocks: gzipped JSON lists of trajectories."""
        return [*self._closed, self._pack()] if self._open else self._closed

    def _pack(self) -> bytes:
        return gzip_text(f"[{','.join(self._open)}]")

    def columns(self) -> dict[str, list[float]]:
        return {name: [row[i] for row in self.rows] for i, name in enumerate(COLUMNS)}

    def _count_progress(self, episode: Episode) -> None:
        """Add the progress after each turn to the sums of the family. An ended episode keeps its last progress."""
        sums = self._curves.setdefault(episode.family, [0.0] * (self._max_turns + 1))
        reached = [turn.progress for turn in episode.turns[: self._max_turns]]
        for turn, progress in enumerate(reached + [episode.progress] * (self._max_turns - len(reached))):
            sums[turn] += progress
        sums[-1] += 1

    def curves(self) -> dict[str, list[float]]:
        """Map each family to its mean progress after turn 1, 2, ..."""
        return {
            family: [round(total / sums[-1], 4) for total in sums[:-1]]
            for family, sums in sorted(self._curves.items())
        }


def run_entry(
    manifest: Manifest,
    summary: Summary,
    label: str,
    behaviour: Sequence[BehaviourRow] = (),
) -> dict[str, Any]:
    """Return the page's data about a run, without its episodes. `label`: the run's name on the page."""
    titles = manifest.titles
    return {
        "name": manifest.display_name,
        "label": label,
        "folder": summary.run,
        "suite": manifest.suite,
        "suite_seed": manifest.config.suite_seed,
        "perturbation": summary.perturbation,
        "max_turns": summary.max_turns,
        "samples": summary.samples,
        "temperature": manifest.config.temperature,
        "started": manifest.sessions[0].started,
        "evalharness": manifest.sessions[-1].evalharness,
        "summary": summary.to_json(),
        "notes": notes(summary, titles),
        "details": [*token_lines(summary, titles), *performance_lines(summary.performance)],
        "warnings": warnings(summary, titles),
        "behaviour": [list(row) for row in behaviour],
    }


class ReadRun:
    """Scores, summary and behaviour of a run folder, computed while its episodes are read once."""

    def __init__(self, folder: Path) -> None:
        """Read all episodes. Raise UserError if `folder` has no finished episode."""
        self._builder = SummaryBuilder(folder)
        counter = BehaviourCounter(folder, self._builder.manifest)

        def count(episode: Episode) -> None:
            self._builder.add(episode)
            counter.add(episode)

        self.offsets = sort_offsets(folder, count)
        self.scored = scored_run(folder, self._builder.manifest, self._builder.scores)
        self.behaviour = behaviour_figures(counter.behaviour())

    @cached_property
    def summary(self) -> Summary:
        return self._builder.summary(earlier_timing(self.scored.folder))

    def entry(self, label: str) -> dict[str, Any]:
        return run_entry(self.scored.manifest, self.summary, label, self.behaviour)


def read_comparable(folders: Sequence[Path]) -> list[ReadRun]:
    """Read several run folders. Raise UserError if the suites differ, or if a folder has no finished episode."""
    if len({real_path(folder) for folder in folders}) < len(folders):
        raise UserError("the same run folder was given twice")
    read = [ReadRun(folder) for folder in folders]
    runs = [each.scored for each in read]
    require_same(runs, "suite", lambda run: run.suite, "make a report of each")
    return read


@dataclass(frozen=True)
class Comparisons:
    answers: list[str]
    """First lines of the page: the better run of each comparison, or without a comparison the score of each run."""
    differences: list[dict[str, Any]]
    """The comparisons as JSON objects; `numbers` has the positions of the two compared runs."""
    not_compared: list[str]
    """Reasons why a run is not compared with the first run of the page."""


def compare_read(read: Sequence[ReadRun], labels: Sequence[str]) -> Comparisons:
    """Group the comparable runs (`comparable_groups`), and compare each run with the first run of its group."""
    runs = [each.scored for each in read]
    groups, reasons = comparable_groups(runs)
    differences, answers = [], []
    for group in groups:
        compared = compare_runs([runs[i] for i in group], group) if len(group) > 1 else []
        for number, comparison in zip(group[1:], compared, strict=True):
            differences.append({"numbers": [group[0], number], **comparison.to_json()})
            pair = (labels[group[0]], labels[number])
            answers.append(answer_of_comparison(comparison, pair, runs[number].titles, len(compared)))
    if not answers:
        of_run = [answer_of_run(each.summary, each.scored.titles) for each in read]
        several = len(read) > 1
        answers = [f"{label}: {one}" if several else one for label, one in zip(labels, of_run, strict=True)]
    return Comparisons(
        answers, differences, [f"{letter(position)}: {why}" for position, why in reasons.items()]
    )


def make_index(
    entries: Iterable[dict[str, Any]],
    records: Sequence[RunRecords],
    tasks: TaskTable,
    titles: dict[str, str],
    compared: Comparisons,
) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "titles": titles,
        "troubles": TROUBLES,
        "ended_by": ENDED_BY,
        "tasks": tasks.rows,
        "runs": [
            {**entry, "episodes": record.columns(), "curves": record.curves()}
            for entry, record in zip(entries, records, strict=True)
        ],
        "answers": compared.answers,
        "comparisons": compared.differences,
        "not_compared": compared.not_compared,
    }


@dataclass(frozen=True)
class Bundle:
    index: dict[str, Any]
    records: Sequence[RunRecords]
    prompts: Prompts


def load_bundle(
    folders: Sequence[Path],
    *,
    prompts: Path | None = None,
    judgements: JudgementsOf = lambda folder: {},
) -> Bundle:
    """Read the run folders. Raise UserError if a folder has no run or no finished episode, or if the suites differ."""
    read = read_comparable(folders)
    runs = [each.scored for each in read]
    tasks, prompt_parts = TaskTable(), Prompts(prompts)
    records: list[RunRecords] = []
    titles: dict[str, str] = {}
    for run, each in zip(runs, read, strict=True):
        titles |= dict(run.titles)
        record = RunRecords(tasks, prompt_parts, run.manifest, judgements(run.folder))
        for episode in episodes_at(run.folder, each.offsets):
            record.add(episode)
        records.append(record)
    labels = labels_of(runs)
    entries = [each.entry(label) for each, label in zip(read, labels, strict=True)]
    index = make_index(entries, records, tasks, titles, compare_read(read, labels))
    return Bundle(index, records, prompt_parts)
