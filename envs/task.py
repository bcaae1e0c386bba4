"""Define a task, the information that an environment returns beside its observations, and the errors of tasks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, Literal, TypedDict

from evalharness.base.errors import EvalharnessError

MAX_TURNS = 30
"""Turn limit in AgentBoard and AgentRefine; it is the default of a run, and the limit for plans of open suites."""
MIN_TURNS = 3
"""Minimum number of turns in the plan of an open suite's task."""

Suite = str
"""`agentboard` (published, needs data), `open` (generated), or a suite that a family defines."""
Difficulty = Literal["easy", "hard"]
LabelSource = Literal["official", "ours", "simulator"]


class MissingDataError(EvalharnessError):
    """Data that the user must supply is missing; the message ends with the command that gets the data."""

    def __init__(self, what: str, how: str | None = None) -> None:
        """`how`: command that gets the data, if it is not the command for the published suite."""
        super().__init__(
            f"{what}; get the data with: "
            + (how or "evalharness data fetch, or from a folder: evalharness data import DIR")
        )


class ImportRefusedError(EvalharnessError):
    """`OwnBenchmark.import_data` cannot use the given file; the message says why."""


class InvalidTaskError(EvalharnessError):
    """A task cannot be played: the adapter does not accept its payload, files or labels."""


class SuiteExhaustedError(EvalharnessError):
    """A generator finds no new suitable task that differs from the accepted tasks."""

    def __init__(self, title: str, suite_seed: int, what: str) -> None:
        """`what`: description of the missing tasks."""
        super().__init__(
            f"the open {title} suite of seed {suite_seed} cannot be made: {what}; use another suite seed"
        )


class NoEpisodeError(InvalidTaskError):
    """An environment was asked about its episode before its first `reset`."""

    def __init__(self) -> None:
        super().__init__('no episode yet: call reset(options={"task": task}) first')


@dataclass(frozen=True)
class Task:
    """One problem of a suite.

    `payload` is JSON data for the family's adapter. It contains no absolute path, so that `content_hash` is the same on
    every machine.
    """

    id: str
    """`family/suite/index`, for example `babyai/agentboard/017`."""
    family: str
    suite: Suite
    index: int
    """Position in the suite's table of this family, from 0."""
    goal: str
    difficulty: Difficulty
    kind: str
    """Kind of task in the family (level, task type, domain, game)."""
    labels: LabelSource = "official"
    """Source of the subgoals that measure progress."""
    subgoals: tuple[str, ...] = ()
    payload: Mapping[str, Any] = field(default_factory=dict)
    suite_seed: int | None = field(default=None, compare=False)
    """Seed of the open suite. It is not stored with the task and not hashed, because a run stores it once."""

    @property
    def name(self) -> str:
        """Id with the suite seed (`babyai/open-3/017`), because the suites of all seeds have the same ids."""
        if self.suite_seed is None:
            return self.id
        return f"{self.family}/{self.suite}-{self.suite_seed}/{self.id.rpartition('/')[2]}"

    @property
    def words(self) -> str:
        """Return the name of its game's own words (`Wording.games`); empty: those of the family."""
        return str(self.payload.get("words", ""))

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of the canonical JSON of `to_json`. It is cached, because a run needs it five times, and a task's
        payload may be long."""
        text = json.dumps(self.to_json(), sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """Return every field except the suite seed."""
        return {name: value for name, value in asdict(self).items() if name != "suite_seed"}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Task:
        return cls(**{**data, "subgoals": tuple(data["subgoals"])})


def tasks_hash(tasks: Sequence[Task]) -> str:
    """Return the SHA-256 of the tasks' content hashes in order."""
    return hashlib.sha256("\n".join(task.content_hash for task in tasks).encode()).hexdigest()


class OptionalInfo(TypedDict, total=False):
    """Information that only some environments return beside the observation."""

    no_effect: bool
    """Whether a valid last action did not change the world, although it was not a look, a talk or a wait (AgentRefine's
    logic error). Missing if the environment does not know this, or if it counts such an action as not valid."""
    published_valid: bool
    """`valid` by the published rule, if our rule differs; recordings of the original are compared with this value."""
    halted: bool
    """Whether the last action halted the simulator, with an error or without an answer. The episode is then over."""
    figures: Mapping[str, float]
    """Other figures of the episode so far, with names from `OwnBenchmark.scores`."""


class Info(OptionalInfo):
    """The information that `reset` and `step` return beside the observation."""

    progress: float
    """Progress rate so far, 0..1, by the suite's labels."""
    success: bool
    """Whether the task is solved by the suite's labels."""
    solved: bool
    """Whether the task is solved by the simulator's own verdict, which can differ from the labels."""
    valid: bool
    """Whether the environment understood the last action and could carry it out (grounding)."""
    subgoals_completed: tuple[int, ...]
    """Indices in `Task.subgoals` of the subgoals that this step completed; empty after a reset."""


def content_form(task: Task) -> list[str]:
    """Return a digest that is equal for tasks that differ only in their number."""
    data = [task.family, task.kind, task.goal, list(task.subgoals), dict(task.payload)]
    return [digest(json.dumps(data, sort_keys=True))]


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def task_of(options: Mapping[str, Any] | None) -> Task:
    """Return the task in gymnasium's reset options. Raise InvalidTaskError if there is none."""
    task = (options or {}).get("task")
    if not isinstance(task, Task):
        raise InvalidTaskError(
            'reset() needs options={"task": Task}; load one with SPEC.suites.load_tasks(...)'
        )
    return task
