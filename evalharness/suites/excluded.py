"""Tasks that must not be trained on: suite seed 0, the published suite, other suite seeds that the user names, and any
task that equals one of these up to renaming. Training data and served tasks are checked here."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evalharness.envs.base import EnvSpec, InvalidTaskError, MissingDataError, Task, content_form
from evalharness.suites.open import FROZEN_SEED, frozen_proofs
from evalharness.suites.selection import family_tasks

EVALUATED = "suite seed 0"
PUBLISHED = "published suite"


@dataclass
class Excluded:
    """The tasks that a family's tasks are compared with. Counts refused tasks."""

    hashes: dict[str, str]
    """Content hash -> the task's suite."""
    forms: dict[str, str]
    compared: dict[str, Any]
    """Suite -> how it was compared, for the manifest."""
    spec: EnvSpec
    refused: Counter[str] = field(default_factory=Counter)
    taken: set[str] = field(default_factory=set)
    """Forms of the accepted tasks: no task is used twice under two seeds."""

    def reason(self, content_hash: str | None, forms: Iterable[str]) -> str | None:
        """Return the suite of the task, or of a task that is the same up to renaming; None if there is none."""
        suite = self.hashes.get(content_hash or "")
        return suite or next((self.forms[form] for form in sorted(forms) if form in self.forms), None)

    def why_not(self, task: Task) -> str | None:
        """Return the reason why a task is refused, and count it; or None, and mark the task as taken."""
        known = set(task_forms(self.spec, task))
        reason = self.reason(task.content_hash, known)
        if reason is None and known & self.taken:
            reason = "taken already"
        if reason is not None:
            self.refused[reason] += 1
            return reason
        self.taken |= known
        return None


def load_excluded(
    spec: EnvSpec, data: Path | None, seeds: Sequence[int] = (), *, evaluated: bool = False
) -> Excluded:
    """Collect the tasks of suite seed 0 and of the published suite, if available (`evaluated`: these may be used), and
    of the open suites of `seeds`.

    Without the published data its tasks are known by the hashes in the environment itself. Missing suites of
    `seeds` are made now, which is reported and can take minutes. Raises UserError.
    """
    hashes: dict[str, str] = {}
    forms: dict[str, str] = {}

    def add(tasks: Iterable[Task], suite: str) -> int:
        count = 0
        for task in tasks:
            count += 1
            hashes[task.content_hash] = suite
            forms.update(dict.fromkeys(task_forms(spec, task), suite))
        return count

    compared: dict[str, Any] = {}
    if not evaluated:
        hashes |= {
            row.task_hash: EVALUATED
            for task_id, row in frozen_proofs().items()
            if task_id.startswith(f"{spec.family}/")
        }
        known = set(spec.suites.published_forms())
        forms.update(dict.fromkeys(known, PUBLISHED))
        published: int | None = None
        for suite in sorted(
            spec.suites.expected.keys() - {"open"} - spec.suites.whole - spec.suites.training
        ):
            with contextlib.suppress(MissingDataError, InvalidTaskError, KeyError, ValueError):
                # Two suites may hold the same tasks in different wording; count them once, so take
                # the largest number, not the sum.
                published = max(
                    published or 0, add(spec.suites.load_tasks(suite, data, FROZEN_SEED), PUBLISHED)
                )
        compared[PUBLISHED] = {"tasks": published, "forms_kept": len(known)}
    if spec.suites.expected.get("open"):
        for seed in sorted({*seeds} | (set() if evaluated else {FROZEN_SEED})):
            name = f"suite seed {seed}"
            frozen = seed == FROZEN_SEED  # suite seed 0 is known without making and checking it
            tasks = (
                spec.suites.load_tasks("open", None, seed)
                if frozen
                else family_tasks(spec, "open", data, seed)
            )
            compared[name] = {"tasks": add(tasks, name)}
    return Excluded(hashes, forms, compared, spec)


def task_forms(spec: EnvSpec, task: Task) -> list[str]:
    """Return digests that identify a task: equal tasks share one. A published task can lack the data for a form of its
    family; its content is compared all the same."""
    try:
        own = spec.suites.forms(task)
    except (KeyError, ValueError, TypeError, AttributeError, InvalidTaskError):
        own = []
    return sorted({*own, *content_form(task)})
