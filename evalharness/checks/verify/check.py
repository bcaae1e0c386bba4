"""Check one run folder: read it, replay its actions, and recompute its numbers."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

from evalharness.base.errors import InfrastructureError, UserError
from evalharness.base.machine import usable_cores
from evalharness.base.reading import open_file
from evalharness.checks.verify.described import (
    DescriptionCheck,
    check_description,
    find_missing,
    task_findings,
)
from evalharness.checks.verify.findings import Finding, FolderCheck
from evalharness.checks.verify.options import config_findings, config_notes, manifest_findings, turn_findings
from evalharness.checks.verify.replay import ReplayRules, replay
from evalharness.checks.verify.totals import Tables, summary_findings
from evalharness.config import PolicyConfig, is_scripted
from evalharness.envs import specs as installed_specs
from evalharness.models.event_loop import run_to_end
from evalharness.play.progress import FamilyProgress, Progress
from evalharness.play.scheduler import PendingEpisode, Scheduler
from evalharness.play.sizing import make_pools, request_slots
from evalharness.play.workers.process import RemoteEnvironment
from evalharness.protocol.perturb import PlayedSurface, surfaces
from evalharness.protocol.played_prompt import played_prompt
from evalharness.protocol.prompt import Adaptation, PromptFile
from evalharness.records.episode import Episode, read_episode
from evalharness.records.files import CONFIG
from evalharness.records.lines import locate_lines
from evalharness.records.manifest import Manifest
from evalharness.records.store import (
    EPISODES,
    ERRORS,
    MANIFEST,
    SUMMARY,
    EpisodeKey,
    read_failures,
    read_manifest,
)
from evalharness.results.score import EpisodeScore
from evalharness.results.task_range import list_changed_families, mark_changed
from evalharness.runs.evaluation import Watch, watch_nothing
from evalharness.suites.selection import load_existing_tasks

_TRIES = 3
"""Maximum number of replays of an episode. It is replayed again only if its simulator fails."""


def verify(
    folder: Path,
    *,
    data: Path | None = None,
    watch: Watch = watch_nothing,
) -> FolderCheck:
    """Replay every episode of a run folder and recompute all its numbers.

    Raise UserError if nothing can be checked: no run folder, missing data or suite, or a family that is not installed.
    """
    began = time.monotonic()
    _require_files(folder)
    manifest = read_manifest(folder)
    about = check_description(manifest, installed_specs(), data, load_existing_tasks)
    check = _Check(folder, manifest, about, data)
    check.findings += manifest_findings(manifest, installed_specs()) + config_findings(folder, manifest)
    check.read()
    check.play(watch)
    return check.verdict(time.monotonic() - began)


_FILES = (MANIFEST, CONFIG, EPISODES, ERRORS, SUMMARY, "episodes.parquet", "turns.parquet")


def _require_files(folder: Path) -> None:
    """Raise UserError if a file of the run is a pipe, a device or a folder: reading a pipe could wait forever."""
    for name in _FILES:
        path = folder / name
        if path.exists() and not path.is_file():
            raise UserError(f"{path} is not a regular file")


@dataclass
class _Check:
    folder: Path
    manifest: Manifest
    about: DescriptionCheck
    data: Path | None
    findings: list[Finding] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    scores: list[EpisodeScore] = field(default_factory=list)
    turns: int = 0
    _offsets: dict[EpisodeKey, int] = field(default_factory=dict)
    """Offset of each episode's line in `episodes.jsonl`. Lines are read again for the replay, to save memory."""
    _jobs: list[PendingEpisode] = field(default_factory=list)
    _of_episodes: dict[EpisodeKey, list[Finding]] = field(default_factory=dict)

    def read(self) -> None:
        """Read every line of `episodes.jsonl` without replaying it."""
        tables = Tables(self.folder, self.manifest)
        samples = self.about.selection.samples
        for number, offset, episode in self._lines():
            where = f"{EPISODES}, line {number}"
            if isinstance(episode, str):
                self.findings.append(Finding("damaged", where, episode))
                continue
            key = (episode.task_id, episode.sample)
            task = self.about.tasks.get(episode.task_id)
            if key in self._offsets:
                self.findings.append(Finding("repeated", where, f"{key[0]}, sample {key[1]}, a second time"))
            elif task is None or episode.sample >= samples:
                what = "none of the run's tasks" if task is None else f"the run has {samples} a task"
                self.findings.append(Finding("added", where, f"{key[0]}, sample {key[1]}: {what}"))
            else:
                self._offsets[key] = offset
                self._jobs.append(PendingEpisode(task, episode.sample, float(len(episode.turns))))
                self.findings += task_findings(episode, task, self.manifest)
                self.findings += turn_findings(episode, self.manifest.options)
                tables.check(episode)
        self.findings += find_missing(
            set(self._offsets), list(self.about.tasks), samples, self._read_given_up()
        )
        self.findings += tables.end()

    def _lines(self) -> Iterator[tuple[int, int, Episode | str]]:
        """Yield for each line: its number, its offset, and the episode, or why the line contains no episode."""

        def read(line: bytes) -> Episode | str:
            try:
                return read_episode(line)
            except ValueError as error:
                return str(error) if line.endswith(b"\n") else "cut off"

        return locate_lines(self.folder / EPISODES, "", read)

    def _read_given_up(self) -> set[EpisodeKey]:
        try:
            return {
                (line["task_id"], line["sample"]) for line in read_failures(self.folder) if line.get("final")
            }
        except UserError as error:
            self.findings.append(Finding("damaged", "errors.jsonl", str(error)))
            return set()

    def play(self, watch: Watch) -> None:
        families = sorted({job.task.family for job in self._jobs})
        family_surfaces = surfaces(installed_specs(), families, self.about.agent.perturb)
        counts = {f: FamilyProgress(sum(job.task.family == f for job in self._jobs)) for f in families}
        progress = Progress(counts)
        progress.turns_left = {(job.task.id, job.sample): job.expected_turns for job in self._jobs}
        if self._jobs:
            with watch(progress):
                run_to_end(self._replay_all(family_surfaces, progress))

    async def _replay_all(self, family_surfaces: Mapping[str, PlayedSurface], progress: Progress) -> None:
        limits = self.manifest.turn_limits
        scripted = is_scripted(str(self.manifest.options.get("model")))
        agent = self.manifest.config.chosen_agent
        keep_thinking = self.manifest.options.get("history_thinking") == "keep"

        async def one(job: PendingEpisode, environment: RemoteEnvironment) -> Episode:
            family = job.task.family
            progress.families[family].running += 1
            try:
                recorded = self._episode(job)
                how = ReplayRules(
                    limits[family], agent, self._prompt_of(recorded), keep_thinking,
                    self.manifest.model_text, scripted,
                )  # fmt: skip
                played, findings = await replay(recorded, job.task, environment, family_surfaces[family], how)
            finally:
                progress.families[family].running -= 1
            self._of_episodes[job.task.id, job.sample] = list(findings)
            return played

        def keep(episode: Episode) -> None:
            self.scores.append(EpisodeScore.of(episode))
            self.turns += len(episode.turns)
            progress.turns += len(episode.turns)
            progress.finish(episode)

        def note_failure(job: PendingEpisode, number: int, error: InfrastructureError, final: bool) -> None:
            if final:
                self.failures.append(f"{job.task.id}, sample {job.sample}: {str(error).splitlines()[0]}")
                progress.give_up(job.task.family, job.task.id, job.sample)

        cores = usable_cores()
        pools = make_pools(
            {},
            installed_specs(),
            self._jobs,
            cores,
            scripted=True,
            data=self.data,
            log=None,
        )
        async with AsyncExitStack() as stack:
            for pool in pools.values():
                stack.push_async_callback(pool.close)
            scheduler = Scheduler(
                pools=pools,
                play=one,
                on_episode=keep,
                on_failure=note_failure,
                slots=request_slots(PolicyConfig(model="oracle"), 0, len(self._jobs), cores),
                tries=_TRIES,
                cores=cores,
            )
            await scheduler.run(self._jobs)

    def _prompt_of(self, episode: Episode) -> PromptFile | None:
        """Return the episode's prompt; None if no installed prompt file has the recorded hash."""
        prompt = played_prompt(
            episode.family, episode.kind, episode.perturbation, episode.prompt_hash,
            adaptation=Adaptation.of(self.manifest.options), words=episode.words,
        )  # fmt: skip
        return None if prompt is None else prompt[0]

    def _episode(self, job: PendingEpisode) -> Episode:
        with open_file(self.folder / EPISODES) as file:
            file.seek(self._offsets[job.task.id, job.sample])
            return read_episode(file.readline())

    def verdict(self, seconds: float) -> FolderCheck:
        findings = [*self.about.findings, *self.findings]
        for key in sorted(self._of_episodes):
            findings += self._of_episodes[key]
        notes = [*self.about.notes, *config_notes(self.folder, self.manifest, installed_specs())]
        labels = mark_changed(self.manifest.labels, {(s.task_id, s.task_hash) for s in self.scores})
        if changed := list_changed_families(labels, self.manifest.titles):
            notes.append(f"data changed: the tasks of {changed} are not the published ones")
        if not self.failures:
            try:
                differing, more = summary_findings(self.folder, self.manifest, self.scores)
            except UserError:  # errors.jsonl is damaged, and `_read_given_up` has reported that
                differing, more = [], ["the totals were not checked"]
            findings, notes = [*findings, *differing], [*notes, *more]
        return FolderCheck(
            self.folder,
            len(self.scores),
            self.turns,
            seconds,
            tuple(findings),
            tuple(notes),
            tuple(self.failures),
        )
