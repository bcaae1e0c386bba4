"""Open suites for one command alone: those that a folder from elsewhere names, and that nobody here has frozen."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from evalharness.base.errors import UserError
from evalharness.envs.base import EnvSpec, Suite, Task
from evalharness.suites.open import FROZEN_SEED, read_frozen, suite_command
from evalharness.suites.selection import family_tasks

_LOG = logging.getLogger("evalharness")


class NotMadeError(UserError):
    """An open suite is not on this machine, and is not made unasked."""


def refuse(suite_seed: int) -> None:
    """Raises NotMadeError."""
    raise NotMadeError(
        f"its tasks are of the open suite of seed {suite_seed}, which is not on this machine; make and keep it with: "
        f"{suite_command(suite_seed)}"
    )


@dataclass
class TemporarySuites:
    """Loads tasks as `family_tasks` does, but makes what is not frozen in a folder of its own."""

    folder: Path | None = None
    """Where suites are made; None: nowhere."""
    allow: Callable[[int], None] = refuse
    """Asked before each family's suite of that seed is made; raises UserError where it must not be."""
    seconds: float = 0.0
    """That all making may take together."""
    _spent: float = 0.0

    def tasks(self, spec: EnvSpec, suite: Suite, data: Path | None, suite_seed: int) -> list[Task]:
        """All tasks of a family. Raises UserError, also where making them was refused or took too long."""
        if suite != "open" or suite_seed == FROZEN_SEED or spec.suites.generate is None:
            return family_tasks(spec, suite, data, suite_seed)
        rows = read_frozen(spec, suite_seed)
        if rows is None and self.folder is not None:
            rows = read_frozen(spec, suite_seed, self.folder / str(suite_seed))
        if rows is None:
            self.allow(suite_seed)
            assert self.folder is not None
            self._make(spec, suite_seed, self.folder / str(suite_seed))
            rows = read_frozen(spec, suite_seed, self.folder / str(suite_seed))
        assert rows is not None
        return [row.task for row in rows]

    def _make(self, spec: EnvSpec, suite_seed: int, folder: Path) -> None:
        """In a process of its own, which can be ended in the middle of a task; it shows its progress itself."""
        command = suite_command(suite_seed, spec.family)
        _LOG.info(f"making the open suite of seed {suite_seed}, to be removed at the end: {spec.title}")
        began = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", *command.split(), "-o", str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # so that what it starts (a JVM) ends with it
        )
        try:
            failed = process.wait(max(self.seconds - self._spent, 0.0))
        except subprocess.TimeoutExpired:
            raise UserError(
                f"making the open suite of seed {suite_seed} took too long; allow more time with --make-suites MINUTES,"
                f" or make and keep it with: {command}"
            ) from None
        finally:
            self._spent += time.monotonic() - began
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if failed:
            raise UserError(f"the open suite of seed {suite_seed} could not be made; see: {command}")


NO_SUITES = TemporarySuites()
"""Makes none."""


@contextmanager
def temporary_suites(allow: Callable[[int], None], seconds: float) -> Iterator[TemporarySuites]:
    """The folder is removed at the end."""
    with TemporaryDirectory(prefix="evalharness-suites-") as folder:
        yield TemporarySuites(Path(folder), allow, seconds)
