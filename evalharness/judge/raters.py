"""Read raters: a judge's folder, a person's folder, a CSV file of labels, the simulator, and a data set's marks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from evalharness.base.errors import UserError
from evalharness.base.paths import real_path
from evalharness.base.reading import read_known
from evalharness.judge import judging, labels
from evalharness.judge.agreement import compare_raters
from evalharness.judge.draw import DrawnTurn, JudgedRun, load_turns
from evalharness.judge.truth import truth
from evalharness.judge.verdict import KINDS, Rater, TurnKey, Verdict, add_folder_names, format_key
from evalharness.records.data_set import MARK_SUFFIX, TRAINING_DATA
from evalharness.records.store import MANIFEST

SIMULATOR = "simulator"
MARKS = "marks"
"""Rater of a data set: the errors marked by the model that simulated the environment, or by the generating program."""


def simulator_of(run: JudgedRun) -> Rater:
    """Judge every turn of the run by the rules in `truth`. Raises UserError for data that no simulator produced."""
    if is_data(run) and not run.manifest.identity.model.get("simulated"):
        raise UserError(
            f"{run.folder}: a model wrote these observations, not a simulator; compare with: {MARKS}"
        )
    verdicts: dict[tuple[str, int, int], Verdict] = {}
    episodes = {turn.key[:2]: turn.episode for turn in run.turns.values()}
    for (task_id, sample), episode in episodes.items():
        for turn, verdict in zip(episode.turns, truth(episode), strict=True):
            verdicts[task_id, sample, turn.turn] = verdict
    return Rater(SIMULATOR, verdicts, _families(run), run.digest)


def is_data(run: JudgedRun) -> bool:
    """Return whether the folder was made from a training data set, not by playing."""
    return run.manifest.identity.model.get("kind") == TRAINING_DATA


def marks_of(run: JudgedRun) -> Rater:
    """Return the data set's error marks as verdicts: a turn without a mark is right. Raises UserError for a played
    run."""
    if not is_data(run):
        raise UserError(f"{run.folder} was played: only training data has {MARKS}")
    return Rater(
        MARKS, {key: _read_mark(turn) for key, turn in run.turns.items()}, _families(run), run.digest
    )


def _read_mark(drawn: DrawnTurn) -> Verdict:
    marks = drawn.episode.turns[drawn.number - 1].format_errors
    kind = marks[0].removesuffix(MARK_SUFFIX) if marks else None
    return Verdict(bool(marks), kind if kind in KINDS else None, ", ".join(marks))


def _families(run: JudgedRun) -> dict[tuple[str, int, int], str]:
    return {key: turn.family for key, turn in run.turns.items()}


def read_raters(names: Sequence[str], run_folder: Path | None) -> list[Rater]:
    """Read the raters of one run: `run_folder`, or the run that contains a judge's or person's folder.

    Raises UserError for a name that is no rater, for labels of unknown turns, and for raters of two runs.
    """
    given = [Path(name) for name in names if name not in _OF_RUN]
    folder = run_folder or next((around for path in given if (around := _run_around(path)) is not None), None)
    run = load_turns(folder) if folder is not None else None
    if len({name if name in _OF_RUN else str(real_path(name)) for name in names}) < len(names):
        raise UserError("the same rater was given twice")
    raters = []
    for name in names:
        rater = _of_run(name, run) if name in _OF_RUN else _read(Path(name))
        if run is not None:
            if rater.run_digest not in (None, run.digest):
                raise UserError(f"{name} is of another run than {run.folder}")
            run.require_known(rater.verdicts, name)
            rater = replace(
                rater, families=_families(run), run_digest=run.digest, missing=_missing(rater, run)
            )
        raters.append(rater)
    _require_one_run(raters)
    return add_folder_names(raters, [Path(name).name for name in names])


def _require_one_run(raters: Sequence[Rater]) -> None:
    """Raise UserError if two raters saw different contents of one turn, which is possible if no run was given."""
    first: dict[TurnKey, str] = {}
    for rater in raters:
        for key, verdict in rater.verdicts.items():
            shown = verdict.turn_sha256
            if shown is not None and first.setdefault(key, shown) != shown:
                raise UserError(
                    f"{rater.name} judged another run than the other raters: {format_key(key)} differs"
                )


def _missing(rater: Rater, run: JudgedRun) -> int:
    drawn = {turn.key for count, seed in rater.draws for turn in run.draw_turns(count, seed)}
    return len(drawn - rater.verdicts.keys())


_OF_RUN = {SIMULATOR: simulator_of, MARKS: marks_of}
"""Raters that are computed from the run, without a file of verdicts."""


def _of_run(name: str, run: JudgedRun | None) -> Rater:
    if run is None:
        raise UserError(f"{name} needs the run or data set to judge; give it with --run RUN|DATA")
    return _OF_RUN[name](run)


def _run_around(path: Path) -> Path | None:
    """Return RUN if `path` is RUN/judgements/NAME or RUN/labels/NAME."""
    run = real_path(path).parent.parent
    return run if path.is_dir() and (run / MANIFEST).exists() else None


def _read(path: Path) -> Rater:
    if path.is_file():
        return Rater(path.stem, labels.read_labels_csv(path))
    identity = read_known(path / MANIFEST).get("identity")
    kind = identity.get("kind") if isinstance(identity, dict) else None
    if kind == labels.KIND:
        return labels.read_labels(path)
    if kind == judging.KIND:
        return judging.read_judge(path)
    raise UserError(
        f"{path} is no rater: give {SIMULATOR}, {MARKS}, a folder RUN/{judging.FOLDER}/NAME (evalharness judge), "
        f"RUN/{labels.FOLDER}/NAME (evalharness judge label), or a CSV file of labels"
    )


def agreements_in(run_folder: Path) -> list[dict[str, Any]]:
    """Compare every person with every judge of a run, and return flat rows. For a data set, rows that compare its marks
    with each person and judge come first.

    Raises UserError if a folder is not readable.
    """

    def below(name: str) -> list[str]:
        folder = run_folder / name
        return [str(path) for path in sorted(folder.iterdir()) if path.is_dir()] if folder.is_dir() else []

    people, judges = below(labels.FOLDER), below(judging.FOLDER)
    pairs = [(person, judge) for person in people for judge in judges]
    if (people or judges) and is_data(load_turns(run_folder)):
        pairs = [(MARKS, rater) for rater in (*people, *judges)] + pairs
    return [row.flat() for pair in pairs for row in compare_raters(*read_raters(pair, run_folder))[:1]]
