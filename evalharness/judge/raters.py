"""Who is compared: a judge's folder, a person's folder, a CSV of labels, or the simulator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from evalharness.base.errors import UserError
from evalharness.base.paths import real_path
from evalharness.base.reading import read_json
from evalharness.judge import judging, labels
from evalharness.judge.draw import JudgedRun, load_turns
from evalharness.judge.label_csv import read_labels_csv
from evalharness.judge.truth import truth
from evalharness.judge.verdict import Rater, Verdict, told_apart
from evalharness.records.store import MANIFEST

SIMULATOR = "simulator"


def simulator_of(run: JudgedRun) -> Rater:
    """The rule's verdict on every turn of the run."""
    verdicts: dict[tuple[str, int, int], Verdict] = {}
    episodes = {turn.key[:2]: turn.episode for turn in run.turns.values()}
    for (task_id, sample), episode in episodes.items():
        for turn, verdict in zip(episode.turns, truth(episode), strict=True):
            verdicts[task_id, sample, turn.turn] = verdict
    return Rater(SIMULATOR, verdicts, _families(run), run.digest)


def _families(run: JudgedRun) -> dict[tuple[str, int, int], str]:
    return {key: turn.family for key, turn in run.turns.items()}


def read_raters(names: Sequence[str], run_folder: Path | None) -> list[Rater]:
    """Raters of one run, which is `run_folder`, or the one that a judge's or a person's folder lies in.

    Raises UserError for what is no rater, for labels of turns that the run does not have, and for raters of two runs.
    """
    given = [Path(name) for name in names if name != SIMULATOR]
    found = run_folder or next((around for path in given if (around := _run_around(path)) is not None), None)
    run = load_turns(found) if found is not None else None
    if len({real_path(name) for name in names}) < len(names):
        raise UserError("the same rater was given twice")
    raters = []
    for name in names:
        rater = _simulator(run) if name == SIMULATOR else _read(Path(name))
        if run is not None:
            if rater.run_digest not in (None, run.digest):
                raise UserError(f"{name} is of another run than {run.folder}")
            run.require(rater.verdicts, name)
            rater = replace(
                rater, families=_families(run), run_digest=run.digest, missing=_missing(rater, run)
            )
        raters.append(rater)
    return told_apart(raters, [Path(name).name for name in names])


def _missing(rater: Rater, run: JudgedRun) -> int:
    drawn = {turn.key for count, seed in rater.draws for turn in run.drawn(count, seed)}
    return len(drawn - rater.verdicts.keys())


def _simulator(run: JudgedRun | None) -> Rater:
    if run is None:
        raise UserError("the simulator is a rater of a run; name it with --run RUN")
    return simulator_of(run)


def _run_around(path: Path) -> Path | None:
    """`RUN` of `RUN/judgements/NAME` and `RUN/labels/NAME`."""
    run = real_path(path).parent.parent
    return run if path.is_dir() and (run / MANIFEST).exists() else None


def _read(path: Path) -> Rater:
    if path.is_file():
        return Rater(path.stem, read_labels_csv(path))
    try:
        kind = read_json(path / MANIFEST)["identity"]["kind"]
    except (OSError, ValueError, KeyError, TypeError):
        kind = None
    if kind == labels.KIND:
        return labels.read_labels(path)
    if kind == judging.KIND:
        return judging.read_judge(path)
    raise UserError(
        f"{path} is no rater: give {SIMULATOR}, a folder RUN/{judging.FOLDER}/NAME (evalharness judge), "
        f"RUN/{labels.FOLDER}/NAME (evalharness label), or a CSV file of labels"
    )
