"""Exclude evaluated tasks from training data and from tasks that are served to trainers: the published suite, suite
seed 0, other suite seeds that the user gives, and tasks that differ from these only in names."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evalharness.envs.base import EnvSpec, InvalidTaskError, MissingDataError, Task, content_form
from evalharness.suites.open import FROZEN_SEED, read_frozen_proofs
from evalharness.suites.selection import family_tasks

EVALUATED = "suite seed 0"
PUBLISHED = "published suite"


@dataclass
class Excluded:
    """The excluded tasks of a family, and the number of tasks that were refused for each reason."""

    hashes: dict[str, str]
    """Content hash of an excluded task -> its suite."""
    forms: dict[str, str]
    compared: dict[str, Any]
    """Suite -> number of its tasks with which tasks are compared, for the manifest."""
    spec: EnvSpec
    refused: Counter[str] = field(default_factory=Counter)
    taken: set[str] = field(default_factory=set)
    """Digests (`task_forms`) of the accepted tasks, so that equal tasks of two seeds are accepted only once."""

    def reason(self, content_hash: str | None, forms: Iterable[str]) -> str | None:
        """Return the excluded suite that has this task, or a task that differs only in names; None: no such suite."""
        suite = self.hashes.get(content_hash or "")
        return suite or next((self.forms[form] for form in sorted(forms) if form in self.forms), None)

    def check(self, task: Task) -> str | None:
        """Return why a task is refused; None if it is accepted. Count a refused task, and store an accepted task."""
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
    """Collect the tasks of the published suite, of suite seed 0, and of the open suites of `seeds`. `evaluated`:
    exclude only the suites of `seeds`.

    If the user has no published data, published tasks are known by digests in the environment's package. If a suite of
    `seeds` does not exist, build it, which can take minutes. Raise UserError if a suite cannot be built.
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
            for task_id, row in read_frozen_proofs().items()
            if task_id.startswith(f"{spec.family}/")
        }
        known = set(spec.suites.published_forms())
        forms.update(dict.fromkeys(known, PUBLISHED))
        published: int | None = None
        for suite in sorted(
            spec.suites.expected.keys() - {"open"} - spec.suites.whole - spec.suites.training
        ):
            with contextlib.suppress(MissingDataError, InvalidTaskError, KeyError, ValueError):
                # Record the number of the largest suite instead of the sum: two suites may have the same tasks.
                published = max(
                    published or 0, add(spec.suites.load_tasks(suite, data, FROZEN_SEED), PUBLISHED)
                )
        compared[PUBLISHED] = {"tasks": published, "forms_kept": len(known)}
    if spec.suites.expected.get("open"):
        for seed in sorted({*seeds} | (set() if evaluated else {FROZEN_SEED})):
            name = f"suite seed {seed}"
            frozen = seed == FROZEN_SEED  # the package contains this suite, so it is not built
            tasks = (
                spec.suites.load_tasks("open", None, seed)
                if frozen
                else family_tasks(spec, "open", data, seed)
            )
            compared[name] = {"tasks": add(tasks, name)}
    return Excluded(hashes, forms, compared, spec)


def task_forms(spec: EnvSpec, task: Task) -> list[str]:
    """Return digests of a task. Two tasks that differ only in names have a common digest. If the family's own digests
    cannot be computed for a task, return only the digest of its content."""
    try:
        own = spec.suites.forms(task)
    except (KeyError, ValueError, TypeError, AttributeError, InvalidTaskError):
        own = []
    return sorted({*own, *content_form(task)})
