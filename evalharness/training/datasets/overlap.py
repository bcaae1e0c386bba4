"""Tasks that must not be trained on: suite seed 0 and the published suite, other suite seeds that the user names, and
whatever is the same up to renaming. Every way into training data asks here."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from evalharness.base.errors import UserError
from evalharness.envs import specs
from evalharness.envs.base import EnvSpec, InvalidTaskError, MissingDataError, Task, teaching_of
from evalharness.envs.teaching import Teaching, content_form
from evalharness.suites.open import FROZEN_SEED, frozen_proofs
from evalharness.suites.selection import family_tasks
from evalharness.suites.temporary import NO_SUITES, NotMadeError
from evalharness.training.datasets.conversation import Conversation
from evalharness.training.datasets.openings import evaluated_openings

EVALUATED = "suite seed 0"
PUBLISHED = "published suite"
REASON = "of a task that models are evaluated on ({})"


@dataclass
class Excluded:
    """What a family's tasks are compared with. Counts what was refused."""

    hashes: dict[str, str]
    """Content hash -> the suite that it is of."""
    forms: dict[str, str]
    compared: dict[str, Any]
    """Suite -> how it was compared, for the manifest."""
    world: Teaching
    refused: Counter[str] = field(default_factory=Counter)
    taken: set[str] = field(default_factory=set)
    """Forms of the tasks that were let through: nothing is used twice under two seeds."""

    def reason(self, content_hash: str | None, forms: Iterable[str]) -> str | None:
        """The suite that a task is of, or one that is the same up to renaming; None where it is of none."""
        found = self.hashes.get(content_hash or "")
        return found or next((self.forms[form] for form in sorted(forms) if form in self.forms), None)

    def why_not(self, task: Task) -> str | None:
        """The reason why a task is refused, counted; None when it may be used, and is then taken."""
        known = set(task_forms(self.world, task))
        reason = self.reason(task.content_hash, known)
        if reason is None and known & self.taken:
            reason = "taken already"
        if reason is not None:
            self.refused[reason] += 1
            return reason
        self.taken |= known
        return None


def excluded(
    spec: EnvSpec, world: Teaching, data: Path | None, seeds: Sequence[int] = (), *, evaluated: bool = False
) -> Excluded:
    """The tasks of suite seed 0 and of the published suite as far as they are at hand (`evaluated`: these may be used),
    and those of the open suites of `seeds`.

    Without the published data its tasks are known by what the environment itself keeps of them. A suite of `seeds`
    that was never made is made now, which is reported and can take minutes. Raises UserError.
    """
    hashes: dict[str, str] = {}
    forms: dict[str, str] = {}

    def add(tasks: Iterable[Task], suite: str) -> int:
        count = 0
        for task in tasks:
            count += 1
            hashes[task.content_hash] = suite
            forms.update(dict.fromkeys(task_forms(world, task), suite))
        return count

    compared: dict[str, Any] = {}
    if not evaluated:
        hashes |= {
            row.task_hash: EVALUATED
            for task_id, row in frozen_proofs().items()
            if task_id.startswith(f"{spec.family}/")
        }
        known = set(world.published_forms())
        forms.update(dict.fromkeys(known, PUBLISHED))
        published: int | None = None
        for suite in sorted(spec.suites.expected.keys() - {"open"} - spec.suites.whole):
            with contextlib.suppress(MissingDataError, InvalidTaskError, KeyError, ValueError):
                # An engine's own words for the same tasks add none to the number.
                published = max(
                    published or 0, add(spec.suites.load_tasks(suite, data, FROZEN_SEED), PUBLISHED)
                )
        compared[PUBLISHED] = {"tasks": published, "forms_kept": len(known)}
    if spec.suites.expected.get("open"):
        for seed in sorted({*seeds} | (set() if evaluated else {FROZEN_SEED})):
            name = f"suite seed {seed}"
            frozen = seed == FROZEN_SEED  # these are known without being made and checked
            tasks = (
                spec.suites.load_tasks("open", None, seed)
                if frozen
                else family_tasks(spec, "open", data, seed)
            )
            compared[name] = {"tasks": add(tasks, name)}
    return Excluded(hashes, forms, compared, world)


def task_forms(world: Teaching, task: Task) -> list[str]:
    """What a task is known by again: digests, of which equal tasks share one. A published task can lack what a form of
    its family is made of; its content is compared all the same."""
    try:
        own = world.forms(task)
    except (KeyError, ValueError, TypeError, AttributeError, InvalidTaskError):
        own = []
    # Those of the task that one with distractors was made of: where that is refused, so is this.
    base = task.payload.get("forms_without_distractors", ())
    return sorted({*own, *content_form(task), *base})


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
                None
                if spec is None
                else excluded(spec, teaching_of(spec), self.data, self.seeds, evaluated=self.evaluated)
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
    return tuple(name for spec in specs().values() for name in teaching_of(spec).evaluated_names())


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
            tasks = NO_SUITES.tasks(specs()[family], suite, self.data, suite_seed)
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
        return [] if task is None else task_forms(teaching_of(specs()[family]), task)
