"""Refuse conversations on evaluation tasks (listed by `evalharness.suites.excluded`), because a model trained on a task
cannot be evaluated on it. Every command that makes training data calls this check."""

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
from evalharness.suites.selection import NotMadeError, load_existing_tasks
from evalharness.training.datasets.conversation import Conversation
from evalharness.training.datasets.openings import load_openings

REASON = "of a task that models are evaluated on ({})"


@dataclass
class Exclusion:
    """Checks whether conversations are on evaluation tasks, and counts those that are refused."""

    seeds: tuple[int, ...] = ()
    """Seeds of further generated suites (`--suite open`) whose tasks are refused."""
    data: Path | None = None
    evaluated: bool = False
    """Whether evaluation tasks (suite seed 0 and published suites) are allowed."""
    refused: Counter[str] = field(default_factory=Counter)
    """Reason -> number of conversations."""
    by_hash_alone: int = 0
    """Conversations with a task hash, but without the hashes of the same task with other object names."""
    by_text: int = 0
    """Conversations without a task hash: their text is searched for task ids, goals and first observations."""
    _families: dict[str, Excluded | None] = field(default_factory=dict)

    def check(self, conversation: Conversation) -> str | None:
        """Return the reason for refusing the conversation, or None if it is allowed. Counts refusals. If the
        conversation has no task hash, its text is compared."""
        excluded = self._load_excluded(conversation.world) if conversation.task_hash else None
        if excluded is None:
            self.by_text += 1
            suite = self._find_named_suite(conversation)
            if suite is None and not self.evaluated:
                suite = load_openings().find_suite(_first_texts(conversation))
        else:
            forms = conversation.metadata.get("task_forms")
            known = [form for form in forms if isinstance(form, str)] if isinstance(forms, list) else []
            self.by_hash_alone += not known
            suite = excluded.reason(conversation.task_hash, known)
        if suite is None:
            return None
        reason = REASON.format(suite)
        self.refused[reason] += 1
        return reason

    def _find_named_suite(self, conversation: Conversation) -> str | None:
        """Return the suite of an excluded task whose id, or whose path in published data, is in the conversation."""
        values = [value for value in _walk_values(conversation.metadata) if isinstance(value, str)]
        texts = (message.content for message in conversation.messages)
        text = "\n".join((conversation.id, *values, *texts)).replace("\\", "/")
        own_seed = next(
            (v for k, v in conversation.metadata.items() if k.rpartition(".")[2] == "suite_seed"), None
        )
        for match in _compile_task_names().finditer(text):
            if match["suite"].lower() != "open":
                if not self.evaluated:
                    return PUBLISHED
                continue
            seed = int(match["seed"] or (own_seed if isinstance(own_seed, int) else FROZEN_SEED))
            if seed in self.seeds or (seed == FROZEN_SEED and not self.evaluated):
                return f"suite seed {seed}"
        names = () if self.evaluated else _list_evaluated_names()
        return PUBLISHED if any(name in text for name in names) else None

    def _load_excluded(self, family: str) -> Excluded | None:
        if family not in self._families:
            spec = specs().get(family)
            self._families[family] = (
                None if spec is None else load_excluded(spec, self.data, self.seeds, evaluated=self.evaluated)
            )
        return self._families[family]

    def lines(self) -> list[str]:
        """Return messages about refused conversations and about those that could not be fully compared."""
        lines = [f"{count:,} left out: {reason}" for reason, count in sorted(self.refused.items())]
        if self.by_hash_alone:
            lines.append(
                f"{self.by_hash_alone:,} compared by the task's content hash alone: they were made by an earlier "
                "version, and the same task with other names is not recognised"
            )
        if self.by_text and self.seeds:
            lines.append(
                f"{self.by_text:,} without a task hash: compared with the suites of --exclude-suite-seeds only by the "
                "task ids in them"
            )
        return lines

    def to_json(self) -> dict[str, Any]:
        return {
            "suite_seeds": list(self.seeds),
            "evaluated_tasks": "allowed, not checked" if self.evaluated else "left out",
            "refused": dict(sorted(self.refused.items())),
            "by_hash_alone": self.by_hash_alone,
            "by_text": self.by_text,
            "compared_with": {
                family: excluded.compared
                for family, excluded in sorted(self._families.items())
                if excluded is not None
            }
            | ({"by_text": self._list_compared()} if self.by_text else {}),
        }

    def _list_compared(self) -> dict[str, Any]:
        """Return suite -> number of tasks that conversations without a task hash were compared with."""
        known = {} if self.evaluated else load_openings().tasks
        seeds = {f"suite seed {seed}": "not checked but for ids" for seed in self.seeds}
        return {**{suite: {"tasks": count} for suite, count in sorted(known.items())}, **seeds}


_SEEN_FIRST = 3
"""Number of messages searched for the first observation: system text and instruction can come before the observation.
"""


def _first_texts(conversation: Conversation) -> list[str]:
    texts = [message.content for message in conversation.messages if message.role != "assistant"]
    return texts[:_SEEN_FIRST]


def _walk_values(value: object) -> Iterator[object]:
    if isinstance(value, Mapping):
        for each in value.values():
            yield from _walk_values(each)
    elif isinstance(value, list):
        for each in value:
            yield from _walk_values(each)
    else:
        yield value


@cache
def _compile_task_names() -> re.Pattern[str]:
    """Return the pattern of task ids (`babyai/agentboard/000`, `babyai/open/000`, `babyai/open-1/000`), also with
    dashes, as in file names (`babyai-open-000`)."""
    families = "|".join(map(re.escape, specs()))
    suites = "|".join(
        sorted({re.escape(suite) for spec in specs().values() for suite in spec.suites.expected})
    )
    return re.compile(
        rf"(?<![a-z0-9])(?:{families})[/_-](?P<suite>{suites})(?:-(?P<seed>\d{{1,9}}))?[/_-]\d{{3,}}(?![a-z0-9])",
        re.IGNORECASE,
    )


@cache
def _list_evaluated_names() -> tuple[str, ...]:
    return tuple(name for spec in specs().values() for name in spec.suites.evaluated_names())


@dataclass
class PlayedTasks:
    """Finds the tasks of episodes in the suites on this machine. Missing suites are not built."""

    data: Path | None
    _known: dict[tuple[str, str, int], dict[str, Task]] = field(default_factory=dict)

    def find(self, family: str, suite: str, suite_seed: int, task_hash: str) -> Task | None:
        """Return the task; None if its suite has no such task. Raises UserError or InvalidTaskError if the suite is not
        on this machine; NotMadeError if it is a generated suite (`--suite open`) that was not built here."""
        key = (family, suite, suite_seed)
        if key not in self._known:
            tasks = load_existing_tasks(specs()[family], suite, self.data, suite_seed)
            self._known[key] = {task.content_hash: task for task in tasks}
        return self._known[key].get(task_hash)

    def forms(self, family: str, suite: str, suite_seed: int, task_hash: str) -> list[str]:
        """Return the hashes of the task and of the same task with other object names. Empty if the task is not on this
        machine (another version of the suite, or missing data). Raises NotMadeError."""
        try:
            task = self.find(family, suite, suite_seed, task_hash)
        except NotMadeError:
            raise
        except (UserError, InvalidTaskError, KeyError):
            self._known[family, suite, suite_seed] = {}  # do not try to load this suite again
            return []
        return [] if task is None else task_forms(specs()[family], task)
