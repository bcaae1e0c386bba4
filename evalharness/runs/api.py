"""The Python interface: `evalharness.run`, `load_run`, `compare`, `leaderboard`. Documented in docs/python-api.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalharness.base.errors import InfrastructureError, UserError
from evalharness.base.paths import data_folder
from evalharness.config import make_config
from evalharness.config.protocol import read_protocol_options
from evalharness.models.served import add_served_name
from evalharness.records.manifest import Manifest
from evalharness.records.store import read_manifest
from evalharness.records.summary import Summary
from evalharness.results.comparison import Comparison, compare_runs
from evalharness.results.leaderboard.leaderboards import make_leaderboard
from evalharness.results.leaderboard.standing_rows import Benchmark
from evalharness.results.leaderboard.standings import Leaderboard
from evalharness.results.scored_run import ScoredRun, load_scored_run
from evalharness.results.summarize import earlier_timing, summarize
from evalharness.results.trainings import join_runs
from evalharness.runs.evaluation import evaluate, watch_nothing
from evalharness.runs.study_file import read_study, some_run_folders

if TYPE_CHECKING:
    import pandas as pd

    from evalharness.records.episode import Episode


@dataclass(frozen=True)
class Run:
    """A run folder. Values are cached; load the run again to see the progress of a running evaluation."""

    folder: Path

    def __repr__(self) -> str:
        """Return one line with the run and its progress, or with the reason why the run cannot be read."""
        try:
            return self._summarise()
        except UserError as error:
            return f"<Run {str(self.folder)!r}, not readable: {error}>"

    def _summarise(self) -> str:
        families = self.summary.families.values()
        played = sum(entry.episodes for entry in families)
        of = sum(entry.episodes_selected for entry in families)
        return (
            f"<Run {self.manifest.model_name!r}, suite {self.summary.suite}, {played}/{of} episodes, "
            f"{str(self.folder)!r}>"
        )

    @cached_property
    def manifest(self) -> Manifest:
        """Return the run's description: configuration, model identity, content hashes, versions."""
        return read_manifest(self.folder)

    @cached_property
    def summary(self) -> Summary:
        """The scores, computed from the stored episodes: the content of `summary.json`. Rates are fractions 0..1."""
        return summarize(self.folder, earlier_timing(self.folder))

    @property
    def episodes(self) -> pd.DataFrame:
        """Return one row per episode, sorted by family, task and sample. A study has the rows of all its runs."""
        return self._frames[0]

    @property
    def turns(self) -> pd.DataFrame:
        """Return one row per turn, sorted by family, task, sample and turn. A study has the rows of all its runs."""
        return self._frames[1]

    @cached_property
    def _frames(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        from evalharness.results.tables import data_frames

        return data_frames(*some_run_folders([self.folder]))

    def episode(self, task_id: str, sample: int = 0) -> Episode:
        """Return one episode with all its turns. Raises KeyError if the episode has not been played."""
        from evalharness.results.tables import read_sorted_episodes

        for episode in read_sorted_episodes(self.folder):
            if (episode.task_id, episode.sample) == (task_id, sample):
                return episode
        raise KeyError((task_id, sample))

    @cached_property
    def scores(self) -> ScoredRun:
        return load_scored_run(self.folder)


class Study(Run):
    """A folder with several runs. `episodes` and `turns` have the rows of all runs; a run in `runs` has its own
    `manifest`, `summary` and `scores`."""

    def __repr__(self) -> str:
        return f"<Study of {len(self.runs)} runs, {str(self.folder)!r}>"

    @cached_property
    def runs(self) -> dict[str, Run]:
        """Map the name of each run to the run."""
        return {folder.name: Run(folder) for folder in some_run_folders([self.folder])}


AnyRun = Run | str | Path


def load_run(folder: str | Path) -> Run:
    """Load a run, or a study as a `Study`. Raises `UserError` if `folder` is neither."""
    if read_study(Path(folder)) is not None:
        return Study(Path(folder))
    run = Run(Path(folder))
    _ = run.manifest
    return run


def _scores(run: AnyRun) -> ScoredRun:
    return run.scores if isinstance(run, Run) else load_scored_run(Path(run))


def _merge_runs(runs: AnyRun | Sequence[AnyRun]) -> ScoredRun:
    if isinstance(runs, Run | str | Path):
        return _scores(runs)
    return join_runs([_scores(run) for run in runs])


def run(model: str, *, data: str | Path | None = None, show_progress: bool = False, **options: Any) -> Run:
    """Evaluate `model`, or continue its run. `options` are the options of `evalharness run`, as in `max_turns=20`.

    Returns when every episode is played. Raises `UserError` for errors that the caller can fix, and
    `InfrastructureError` if a server, simulator or disk left episodes unplayed (finished episodes are kept; the same
    call continues).
    """
    from evalharness.runs.live import watch

    folder = data_folder() if data is None else Path(data)
    if "suite" not in {**options, **read_protocol_options({"model": model, **options})}:
        options["suite"] = "agentboard" if (folder / "agentboard").is_dir() else "open"
    config = make_config({"model": model, **options})
    config = replace(config, policy=add_served_name(config.policy))
    outcome = evaluate(config, data=folder, watch=watch if show_progress else watch_nothing)
    if outcome.exit_status:
        why = outcome.stopped or "some episodes could not be played; see errors.jsonl and workers.log"
        raise InfrastructureError(f"{outcome.folder}: {why}; the same call continues")
    return Run(outcome.folder)


def compare(baseline: AnyRun | Sequence[AnyRun], run: AnyRun | Sequence[AnyRun]) -> Comparison:
    """Compare `run` with `baseline`, paired by task, like `evalharness compare`. A list joins repeats of a run, or runs
    of models that were trained with different seeds.

    Raises `UserError` if the runs are not comparable: their suites, turn limits or sources of subgoal labels differ.
    """
    return compare_runs([_merge_runs(baseline), _merge_runs(run)])[0]


def leaderboard(
    runs: Sequence[AnyRun] = (),
    *,
    published: bool = True,
    sort: str | None = None,
    held_in: Sequence[str] = (),
    table: str | None = None,
) -> Leaderboard:
    """Rank `runs`, by default together with published results. `held_in`: families on which the models of `runs` were
    trained. `table`: a family whose published results replace the main table.

    Raises `UserError` if the runs do not belong in one table.
    """
    from evalharness.envs import specs

    scores = [_scores(run) for run in runs]
    declared = {each.folder: held_in for each in scores}
    benchmark = Benchmark.of(specs(), table)
    return make_leaderboard(scores, benchmark, published=published, sort=sort, held_in=declared)
