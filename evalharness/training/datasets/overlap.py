"""Conversations of tasks that must not be trained on (`evalharness.suites.excluded`). Every way into training data asks
here."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from evalharness.base.errors import UserError
from evalharness.envs import specs
from evalharness.envs.base import InvalidTaskError, Task
from evalharness.suites.excluded import PUBLISHED, Excluded, load_excluded, task_forms
from evalharness.suites.open import FROZEN_SEED
from evalharness.suites.selection import NotMadeError, tasks_at_hand
from evalharness.training.datasets.conversation import Conversation
from evalharness.training.datasets.openings import evaluated_openings

REASON = "of a task that models are evaluated on ({})"


@dataclass
class Exclusion:
    """The check of conversations that come from runs or files, of all families."""

    seeds: tuple[int, ...] = ()
    """Open suites besides seed 0."""
    data: Path | None = None
    evaluated: bool = False
    """Tasks of suite seed 0 and of published suites may be used."""
    refused: Counter[str] = field(default_factory=Counter)
    """Reason -> conversations."""
    by_hash_alone: int = 0
    """Conversations that name their task, and not what it is the same as."""
    by_text: int = 0
    """Conversations that have no task's hash: compared by the names in them, their goals and first observations."""
    _families: dict[str, Excluded | None] = field(default_factory=dict)

    def why_not(self, conversation: Conversation) -> str | None:
        """The reason why a conversation is refused, counted. One without a task's hash is compared by its text."""
        found = self._of(conversation.world) if conversation.task_hash else None
        if found is None:
            self.by_text += 1
            suite = self._named(conversation)
            if suite is None and not self.evaluated:
                suite = evaluated_openings().suite_in(_opening(conversation))
        else:
            forms = conversation.metadata.get("task_forms")
            known = [form for form in forms if isinstance(form, str)] if isinstance(forms, list) else []
            self.by_hash_alone += not known
            suite = found.reason(conversation.task_hash, known)
        if suite is None:
            return None
        reason = REASON.format(suite)
        self.refused[reason] += 1
        return reason

    def _named(self, conversation: Conversation) -> str | None:
        """The suite of a task that the conversation names: by our id, or by a path of published data."""
        values = [value for value in _within(conversation.metadata) if isinstance(value, str)]
        texts = (message.content for message in conversation.messages)
        text = "\n".join((conversation.id, *values, *texts)).replace("\\", "/")
        said = next(
            (v for k, v in conversation.metadata.items() if k.rpartition(".")[2] == "suite_seed"), None
        )
        for match in _task_names().finditer(text):
            if match["suite"].lower() != "open":
                if not self.evaluated:
                    return PUBLISHED
                continue
            seed = int(match["seed"] or (said if isinstance(said, int) else FROZEN_SEED))
            if seed in self.seeds or (seed == FROZEN_SEED and not self.evaluated):
                return f"suite seed {seed}"
        names = () if self.evaluated else _evaluated_names()
        return PUBLISHED if any(name in text for name in names) else None

    def _of(self, family: str) -> Excluded | None:
        if family not in self._families:
            spec = specs().get(family)
            self._families[family] = (
                None if spec is None else load_excluded(spec, self.data, self.seeds, evaluated=self.evaluated)
            )
        return self._families[family]

    def lines(self) -> list[str]:
        """What was left out and what could not be compared, for the person at the terminal."""
        found = [f"{count:,} left out: {reason}" for reason, count in sorted(self.refused.items())]
        if self.by_hash_alone:
            found.append(
                f"{self.by_hash_alone:,} compared by the task's content hash alone, not up to renaming: they were made "
                "by an earlier version"
            )
        if self.by_text and self.seeds:
            found.append(
                f"{self.by_text:,} without a task's hash: not checked against the suites of --exclude-suite-seeds, "
                "but for the ids that they name"
            )
        return found

    def to_json(self) -> dict[str, Any]:
        return {
            "suite_seeds": list(self.seeds),
            "evaluated_tasks": "allowed, not checked" if self.evaluated else "left out",
            "refused": dict(sorted(self.refused.items())),
            "by_hash_alone": self.by_hash_alone,
            "by_text": self.by_text,
            "compared_with": {
                family: found.compared
                for family, found in sorted(self._families.items())
                if found is not None
            }
            | ({"by_text": self._compared_by_text()} if self.by_text else {}),
        }

    def _compared_by_text(self) -> dict[str, Any]:
        """Suite -> the tasks whose ids, goals and first observations were looked for."""
        known = {} if self.evaluated else evaluated_openings().tasks
        seeds = {f"suite seed {seed}": "not checked but for ids" for seed in self.seeds}
        return {**{suite: {"tasks": count} for suite, count in sorted(known.items())}, **seeds}


_SEEN_FIRST = 3
"""Messages of others that can hold a first observation: an instruction may come before it, and a system text."""


def _opening(conversation: Conversation) -> list[str]:
    texts = [message.content for message in conversation.messages if message.role != "assistant"]
    return texts[:_SEEN_FIRST]


def _within(value: object) -> Iterator[object]:
    if isinstance(value, Mapping):
        for each in value.values():
            yield from _within(each)
    elif isinstance(value, list):
        for each in value:
            yield from _within(each)
    else:
        yield value


@cache
def _task_names() -> re.Pattern[str]:
    """Our ids: `babyai/agentboard/000`, `babyai/open/000`, `babyai/open-1/000`, in file names `babyai-open-000`."""
    families = "|".join(map(re.escape, specs()))
    suites = "|".join(
        sorted({re.escape(suite) for spec in specs().values() for suite in spec.suites.expected})
    )
    return re.compile(
        rf"(?<![a-z0-9])(?:{families})[/_-](?P<suite>{suites})(?:-(?P<seed>\d{{1,9}}))?[/_-]\d{{3,}}(?![a-z0-9])",
        re.IGNORECASE,
    )


@cache
def _evaluated_names() -> tuple[str, ...]:
    return tuple(name for spec in specs().values() for name in spec.suites.evaluated_names())


@dataclass
class PlayedTasks:
    """The tasks that episodes were played on, where they are at hand. No suite is made: a run's manifest names it."""

    data: Path | None
    _known: dict[tuple[str, str, int], dict[str, Task]] = field(default_factory=dict)

    def find(self, family: str, suite: str, suite_seed: int, task_hash: str) -> Task | None:
        """None where its suite has no such task. Raises UserError, InvalidTaskError where the suite is not at hand:
        NotMadeError where it is an open one that was never made here."""
        key = (family, suite, suite_seed)
        if key not in self._known:
            tasks = tasks_at_hand(specs()[family], suite, self.data, suite_seed)
            self._known[key] = {task.content_hash: task for task in tasks}
        return self._known[key].get(task_hash)

    def forms(self, family: str, suite: str, suite_seed: int, task_hash: str) -> list[str]:
        """Empty where the task is not at hand: another version of its suite, or data that is not there. Raises
        NotMadeError."""
        try:
            task = self.find(family, suite, suite_seed, task_hash)
        except NotMadeError:
            raise
        except (UserError, InvalidTaskError, KeyError):
            self._known[family, suite, suite_seed] = {}  # nobody looks again
            return []
        return [] if task is None else task_forms(specs()[family], task)
