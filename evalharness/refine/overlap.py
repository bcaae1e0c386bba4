"""Tasks that must not be trained on: suite seed 0 and the published suite, and whatever is the same up to renaming."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from envs.base import EnvSpec, InvalidTaskError, MissingDataError, Task
from evalharness.refine.worlds import World, content_form
from evalharness.suites.open import FROZEN_SEED, frozen_proofs

EVALUATED = "suite seed 0"
PUBLISHED = "published suite"


@dataclass
class Excluded:
    """What a family's tasks are compared with. Counts what was refused."""

    hashes: dict[str, str]
    """Content hash -> the suite that it is of."""
    forms: dict[str, str]
    compared: dict[str, Any]
    """Suite -> how it was compared, for the manifest."""
    world: World
    refused: dict[str, int] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    """Forms of the tasks that were let through: nothing is used twice under two seeds."""

    def why_not(self, task: Task) -> str | None:
        """The reason why a task is refused, counted; None when it may be used, and is then taken."""
        forms = {*self.world.forms(task), *content_form(task)}
        reason = self.hashes.get(task.content_hash) or next(
            (self.forms[form] for form in sorted(forms) if form in self.forms), None
        )
        if reason is None and forms & self.taken:
            reason = "taken already"
        if reason is not None:
            self.refused[reason] = self.refused.get(reason, 0) + 1
            return reason
        self.taken |= forms
        return None


def excluded(spec: EnvSpec, world: World, data: Path | None) -> Excluded:
    """The tasks of suite seed 0 and of the published suite as far as they are at hand.

    Without the published data its tasks are known by what the environment itself keeps of them.
    """
    hashes = {
        row.task_hash: EVALUATED
        for task_id, row in frozen_proofs().items()
        if task_id.startswith(f"{spec.family}/")
    }
    forms: dict[str, str] = {}

    def add(tasks: Iterable[Task], suite: str) -> int:
        count = 0
        for task in tasks:
            count += 1
            hashes[task.content_hash] = suite
            forms.update(dict.fromkeys([*_forms(world, task), *content_form(task)], suite))
        return count

    compared: dict[str, Any] = {}
    known = set(world.published_forms())
    forms.update(dict.fromkeys(known, PUBLISHED))
    for suite in sorted(spec.expected.keys() - {"open"}):
        published: int | None = None
        with contextlib.suppress(MissingDataError, InvalidTaskError, KeyError, ValueError):
            published = add(spec.load_tasks(suite, data, FROZEN_SEED), PUBLISHED)
        compared[PUBLISHED] = {"tasks": published, "forms_kept": len(known)}
    if spec.expected.get("open"):
        compared[EVALUATED] = {"tasks": add(spec.load_tasks("open", None, FROZEN_SEED), EVALUATED)}
    return Excluded(hashes, forms, compared, world)


def _forms(world: World, task: Task) -> list[str]:
    """A published task can lack what a form is made of; its content is compared all the same."""
    try:
        return world.forms(task)
    except (KeyError, ValueError, TypeError, AttributeError, InvalidTaskError):
        return []
