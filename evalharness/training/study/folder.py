"""A study's folder: one process at a time, its file as it was given, `study.json` for whoever reads its runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import IO

from evalharness.base.errors import UserError
from evalharness.records.files import LOCK, MANIFEST, STUDY
from evalharness.records.store import hold_folder, require_own_folder, write_atomically
from evalharness.runs.study import SCHEMA, TRAININGS, read_study
from evalharness.training.study.jobs import LEDGER, LOGS, StudyProgress
from evalharness.training.study.plan import PROBES, Plan

FILE = "study.yaml"


class StudyFolder:
    """The one writer. Raises UserError where another process has it, or where something else lies there."""

    def __init__(self, folder: Path, kind: str = TRAININGS) -> None:
        self.folder = folder
        self.kind = kind
        self._lock: IO[bytes] | None = None

    def __enter__(self) -> StudyFolder:
        require_own_folder(self.folder, STUDY, (FILE, LEDGER, LOGS, LOCK, "data", "models", "runs", PROBES))
        known = read_study(self.folder)
        if known is not None and known[0] != self.kind:
            raise UserError(f"{self.folder} holds a {known[0]} study; choose another folder with -o DIR")
        self._lock = hold_folder(self.folder)
        for name in ("data", "models", "runs"):
            (self.folder / name).mkdir(exist_ok=True)
        return self

    def __exit__(self, *exception: object) -> None:
        if self._lock is not None:
            self._lock.close()

    def begin(self, file: str, plan: Plan) -> None:
        """`study.json` with every run that the study will have, and those that an earlier file had played. `file`: its
        text."""
        write_atomically(self.folder / FILE, file)
        self._write(plan, {})

    def note(self, progress: StudyProgress) -> None:
        """Which runs are not there, and why."""
        missing = {}
        for cell in progress.plan.cells:
            for name in cell.runs:
                state = progress.states[name]
                if state.status in ("failed", "blocked"):
                    lost = (n for n in (*cell.before, name) if progress.states[n].status == "failed")
                    first = next(lost, name)
                    missing[_run(name)] = f"{first} failed: {progress.states[first].why}"
        self._write(progress.plan, missing)

    def _write(self, plan: Plan, missing: dict[str, str]) -> None:
        known = read_study(self.folder)
        earlier = known[1] if known else {}
        runs = {
            **{name: where for name, where in earlier.items() if (self.folder / where / MANIFEST).exists()},
            **{_run(job.name): f"runs/{job.makes.name}" for job in plan.runs},
        }
        text = json.dumps({"schema": SCHEMA, "kind": self.kind, "runs": runs, "missing": missing}, indent=2)
        write_atomically(self.folder / STUDY, text + "\n")


def _run(job: str) -> str:
    return job.removeprefix("run ")
