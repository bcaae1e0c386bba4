"""A small study, and one call of its command with a program that makes nothing real."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import study_program

from evalharness.training.study.folder import StudyFolder
from evalharness.training.study.jobs import StudyProgress, read_progress, work
from evalharness.training.study.plan import Plan

PROGRAM_FILE = Path(study_program.__file__ or "")
STUDY = """\
exhibit: table2
axes:
  mode: [full, all_turns]
  data_size: 8
  base_model: demo-base
  training_seed: [0, 1]
  perturbation: [plain, P1]
data:
  grounded: {tasks: alfworld, suite_seed: 201}
tune: {max_steps: 3}
run: {suite: open, tasks: alfworld}
"""


def session(plan: Plan, folder: Path, notes: Path, slots: tuple[str | None, ...] = (None,)) -> StudyProgress:
    """One call of the study's command, with a program that makes nothing real."""
    notes.mkdir(exist_ok=True)
    with StudyFolder(folder) as store:
        store.begin((folder.parent / "s.yaml").read_text(), plan)
        progress = read_progress(plan, folder)
        asyncio.run(work(progress, folder, slots, (sys.executable, str(PROGRAM_FILE), str(notes))))
        store.note(progress)
    return progress


def starts(notes: Path) -> list[list[str]]:
    return [line.split() for line in (notes / "starts").read_text().splitlines()]
