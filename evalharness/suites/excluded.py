"""Exclude tasks from training: suite seed 0, the published suite, other suite seeds that the user names, and any task
that is equal to one of these except for names. Training data and served tasks are checked here."""

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
    """The excluded tasks of a family, and counts of refused tasks."""

    hashes: dict[str, str]
    """Content hash -> suite of the excluded task."""
    forms: dict[str, str]
    compared: dict[str, Any]
    """Suite -> facts about the comparison, for the manifest."""
    spec: EnvSpec
    refused: Counter[str] = field(default_factory=Counter)
    taken: set[str] = field(default_factory=set)
    """Forms of the accepted tasks, so that the same task of two seeds is used only once."""

    def reason(self, content_hash: str | None, forms: Iterable[str]) -> str | None:
        """Return the suite that excludes the task, or a task that differs only in names; None if there is none."""
        suite = self.hashes.get(content_hash or "")
        return suite or next((self.forms[form] for form in sorted(forms) if form in self.forms), None)

    def why_not(self, task: Task) -> str | None:
        """Return the reason why a task is refused, and count it. For an accepted task return None and remember it."""
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
    """Collect the tasks of suite seed 0, of the published suite, and of the open suites of `seeds`. `evaluated`: allow
    the tasks of suite seed 0 and of the published suite.

    Without the published data, the environment's own hashes identify its tasks. If a suite of `seeds` is missing, it is
    built; this is reported and can take minutes. Raise UserError if a suite cannot be built.
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
                # Two suites may have the same tasks in different words, so take the largest number, not the sum.
                published = max(
                    published or 0, add(spec.suites.load_tasks(suite, data, FROZEN_SEED), PUBLISHED)
                )
        compared[PUBLISHED] = {"tasks": published, "forms_kept": len(known)}
    if spec.suites.expected.get("open"):
        for seed in sorted({*seeds} | (set() if evaluated else {FROZEN_SEED})):
            name = f"suite seed {seed}"
            frozen = seed == FROZEN_SEED  # suite seed 0 need not be built and checked
            tasks = (
                spec.suites.load_tasks("open", None, seed)
                if frozen
                else family_tasks(spec, "open", data, seed)
            )
            compared[name] = {"tasks": add(tasks, name)}
    return Excluded(hashes, forms, compared, spec)


def task_forms(spec: EnvSpec, task: Task) -> list[str]:
    """Return digests that identify a task: tasks that are equal except for names share a digest. If a published task
    lacks data for the family's own digests, use only the digest of its content."""
    try:
        own = spec.suites.forms(task)
    except (KeyError, ValueError, TypeError, AttributeError, InvalidTaskError):
        own = []
    return sorted({*own, *content_form(task)})
