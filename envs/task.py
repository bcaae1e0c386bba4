"""A task, an environment's information beside its observations, and the errors of tasks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, Literal, TypedDict

from evalharness.base.errors import EvalharnessError

MAX_TURNS = 30
"""Turns of an episode in AgentBoard and AgentRefine: the default of a run, and the limit of open suites' plans."""
MIN_TURNS = 3
"""Turns of the shortest plan that an open suite's task may have."""

Suite = str
"""`agentboard` (published, needs data), `open` (generated), or the name of a family's own suite."""
Difficulty = Literal["easy", "hard"]
LabelSource = Literal["official", "ours", "simulator"]


class MissingDataError(EvalharnessError):
    """Data that the user must supply is missing; the message ends with the commands that get it."""

    def __init__(self, what: str, how: str | None = None) -> None:
        """`how`: the command that gets it, if not the one for the published suite."""
        super().__init__(
            f"{what}; get the data with: "
            + (how or "evalharness data fetch, or from a folder: evalharness data import DIR")
        )


class ImportRefusedError(EvalharnessError):
    """`OwnBenchmark.import_data` cannot use the given file; the message says what is wrong with it."""


class InvalidTaskError(EvalharnessError):
    """A task cannot be played: the adapter does not accept its payload, files or labels."""


class SuiteExhaustedError(EvalharnessError):
    """A generator finds no further suitable task that differs from those taken."""

    def __init__(self, title: str, suite_seed: int, what: str) -> None:
        """`what`: what ran out."""
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

    `payload` is JSON data that the family's adapter understands; it holds no absolute path, so that `content_hash` is
    the same on every machine.
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
    """Its group in the family (level, task type, domain, game), for grouping and display."""
    labels: LabelSource = "official"
    """The source of the subgoals that measure progress."""
    subgoals: tuple[str, ...] = ()
    payload: Mapping[str, Any] = field(default_factory=dict)
    suite_seed: int | None = field(default=None, compare=False)
    """Seed of its open suite. Neither stored with the task nor hashed: runs store it once."""

    @property
    def name(self) -> str:
        """Return `babyai/open-3/017`: the id with the suite seed, since the suites of all seeds have the same ids."""
        if self.suite_seed is None:
            return self.id
        return f"{self.family}/{self.suite}-{self.suite_seed}/{self.id.rpartition('/')[2]}"

    @property
    def words(self) -> str:
        """Return the name of its game's own words (`Wording.games`); empty: those of the family."""
        return str(self.payload.get("words", ""))

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 over the canonical JSON of `to_json`: changes whenever the task does. Cached: a run needs it five
        times, and a task's payload may be long."""
        text = json.dumps(self.to_json(), sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """Return what a run stores: every field except the suite seed."""
        return {name: value for name, value in asdict(self).items() if name != "suite_seed"}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Task:
        return cls(**{**data, "subgoals": tuple(data["subgoals"])})


def tasks_hash(tasks: Sequence[Task]) -> str:
    """Return the SHA-256 over the tasks' content hashes in order."""
    return hashlib.sha256("\n".join(task.content_hash for task in tasks).encode()).hexdigest()


class OptionalInfo(TypedDict, total=False):
    """Information that only some environments return beside the observation."""

    no_effect: bool
    """The last action was valid and more than a look, a talk or a wait, but did not change the world: AgentRefine's
    logic error. Missing if the environment cannot tell, or counts such an action as not valid."""
    published_valid: bool
    """`valid` by the published rule, if ours differs: recordings of the original are compared with this one."""
    halted: bool
    """The last action halted the simulator itself, with an error or without an answer; the episode is over."""
    figures: Mapping[str, float]
    """Further figures of the episode so far, as named in `OwnBenchmark.scores`."""


class Info(OptionalInfo):
    """The information that `reset` and `step` return beside the observation."""

    progress: float
    """Progress rate so far, 0..1, by the suite's labels."""
    success: bool
    """The task counts as solved by the suite's labels."""
    solved: bool
    """The simulator's own verdict, which can differ from the label's."""
    valid: bool
    """The last action was grounded: the environment understood it and could carry it out."""
    subgoals_completed: tuple[int, ...]
    """Indices into `Task.subgoals` completed by this step (empty on reset)."""


def content_form(task: Task) -> list[str]:
    """Return a form that is equal for tasks that differ only in their number."""
    data = [task.family, task.kind, task.goal, list(task.subgoals), dict(task.payload)]
    return [digest(json.dumps(data, sort_keys=True))]


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def task_of(options: Mapping[str, Any] | None) -> Task:
    """Return the task in gymnasium's reset options, or raise a clear error."""
    task = (options or {}).get("task")
    if not isinstance(task, Task):
        raise InvalidTaskError(
            'reset() needs options={"task": Task}; load one with SPEC.suites.load_tasks(...)'
        )
    return task
