"""The study of one training: where it is, whether an evaluation is due, and which ones are complete."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from evalharness.base.errors import UserError
from evalharness.base.terminal import say
from evalharness.base.text import printable
from evalharness.envs.base import EnvSpec, Task, teaching_of
from evalharness.records.files import MANIFEST, STUDY
from evalharness.records.lines import LineFile
from evalharness.records.manifest import Disjoint
from evalharness.records.store import require_own_folder
from evalharness.results.training_log import TRAINING_LOG, Evaluated, TrainingLog, read_training_log
from evalharness.runs.checkpoints import axis_and_number, is_named
from evalharness.runs.study import WATCHED, add_runs, read_study
from evalharness.training.datasets.overlap import Excluded, task_forms
from evalharness.training.heldout.trainer import EnvServer, step_of

_SHOWN = 3


def prove_disjoint(
    server: str, trained: Sequence[Mapping[str, Any]], evaluated: Sequence[Task], specs: Mapping[str, EnvSpec]
) -> Disjoint:
    """`trained`: tasks as the environment server describes them. Raises UserError where one of them is evaluated, or
    does not say what it is."""
    families: dict[str, Excluded] = {}
    for family in sorted({task.family for task in evaluated}):
        world = teaching_of(specs[family])
        own = [task for task in evaluated if task.family == family]
        families[family] = Excluded(
            hashes={task.content_hash: task.id for task in own},
            forms={form: task.id for task in own for form in task_forms(world, task)},
            compared={"evaluated": len(own), "trained": 0},
            world=world,
        )
    same, seeds = [], set[int]()
    for task in trained:
        try:
            name, family, seed = str(task["id"]), task["family"], task["suite_seed"]
            content, forms = str(task["task_hash"]), [str(form) for form in task["task_forms"]]
        except (KeyError, TypeError):
            raise UserError(
                f"--env {server}: it does not say what its tasks are (`task_hash`, `task_forms`); start it with this "
                "version of evalharness"
            ) from None
        if isinstance(seed, int):
            seeds.add(seed)
        if (found := families.get(family)) is None:
            continue
        found.compared["trained"] += 1
        if (twin := found.reason(content, forms)) is not None:
            same.append(f"{twin} is {name}")
    if same:
        listed = printable("; ".join(same[:_SHOWN]), single_line=True)
        more = f" and {len(same) - _SHOWN} more" if len(same) > _SHOWN else ""
        raise UserError(
            f"not held out: {len(same)} of the {len(trained)} training tasks are evaluated ({listed}{more}); evaluate "
            "other families (--tasks) or another suite seed, or serve the trainer other --train-seeds"
        )
    return Disjoint.of(
        {
            "env": server,
            "train_seeds": sorted(seeds),
            "train_tasks": len(trained),
            "compared": {family: dict(found.compared) for family, found in families.items()},
        }
    )


_LOOK_EVERY = 20.0
"""Seconds."""


class HeldOutCurve:
    """One writer of a study's `training.jsonl`. Positions are steps of the trainer's log, or, without one, episodes
    that the environment server has served to the trainer."""

    def __init__(self, folder: Path, env: EnvServer, log: Path | None, every: int) -> None:
        """Raises UserError where `folder` holds something else."""
        self.folder, self.env, self.log, self.every = folder, env, log, every
        self.axis = "episode" if log is None else "step"
        study = read_study(folder)
        require_own_folder(folder, STUDY)
        if study is not None and study[0] != WATCHED:
            raise UserError(f"{folder} holds a {study[0]} study; choose another folder with -o DIR")
        others = {axis_and_number(name)[0] for name in self._begun()} - {self.axis}
        if others:
            with_log = "with" if "step" in others else "without"
            raise UserError(
                f"{folder} goes by {others.pop()}: give the command {with_log} --log, or another -o DIR"
            )
        folder.mkdir(parents=True, exist_ok=True)
        if study is None:  # before the first run is complete: a kill leaves a folder that goes on
            add_runs(WATCHED, folder, {})
        self._told = False
        """That the log has no step."""
        self._file = LineFile(folder / TRAINING_LOG)
        self._file.drop_torn_line()

    @property
    def known(self) -> TrainingLog:
        return read_training_log(self.folder)

    def look(self) -> int:
        """Where the training is now; kept where it has moved. Raises UserError."""
        step = None
        if self.log is not None and (step := step_of(self.log)) is None:
            step = 0
            if not self._told:
                self._told = True
                say(
                    f"evalharness: {self.log} has no line with a `step` yet: the training is taken to be at step 0"
                )
        now = self.env.look(step)
        last = self.known.last
        if last is None or (now.started, now.step, now.counts) != (last.started, last.step, last.counts):
            self._file.append(now.to_json())
        return self.known.episodes if now.step is None else now.step

    def is_due(self, position: int) -> bool:
        done = [each.began for each in self.known.evaluated]
        return not done or position // self.every > max(done) // self.every

    def name(self, position: int) -> str:
        return f"{self.axis}-{position}"

    def complete(self, position: int) -> None:
        """The evaluation that began at `position` has all its episodes."""
        ended: int | None = None
        with contextlib.suppress(UserError):  # the training is over, and its server gone
            ended = max(position, self.look())
        line = Evaluated(run=self.name(position), began=position, ended=ended)
        self._file.append(line.to_json())

    def unfinished(self, position: int) -> Sequence[str]:
        """Names of evaluations that were begun and cannot go on: the policy of that time is gone."""
        done = {each.run for each in self.known.evaluated} | {self.name(position)}
        return [name for name in self._begun() if name not in done]

    def _begun(self) -> list[str]:
        """Names of the run folders, also of one that a kill has kept out of `study.json`."""
        return sorted(
            path.parent.name for path in self.folder.glob(f"*/{MANIFEST}") if is_named(path.parent.name)
        )

    def wait(
        self,
        minutes: float,
        *,
        pause: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> bool:
        """Until an evaluation is due; False when the training has not moved for so long. A server that does not answer
        has not moved."""
        moved = clock()
        before: int | None = None
        while (left := moved + 60 * minutes - clock()) > 0:
            position = before
            with contextlib.suppress(UserError):
                position = self.look()
            if position is not None and self.is_due(position):
                return True
            if position != before:
                moved, before = clock(), position
            pause(min(_LOOK_EVERY, left))
        return False

    def close(self) -> None:
        self._file.close()
