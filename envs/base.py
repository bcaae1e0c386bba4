"""The environment contract: everything the harness knows of an environment is in this file."""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, TypedDict, TypeVar, Unpack

import gymnasium

from evalharness.errors import EvalharnessError

MAX_TURNS = 30
"""Turns of an episode in AgentBoard and AgentRefine: the default of a run, and the limit of open suites' plans."""
MIN_TURNS = 3
"""Turns of the shortest plan that an open suite's task may have."""

T = TypeVar("T")

Suite = str
"""`agentboard` (published, needs data), `open` (generated), or the name of a suite that a family brings of its own."""
Difficulty = Literal["easy", "hard"]
LabelSource = Literal["official", "ours", "simulator"]


class MissingDataError(EvalharnessError):
    """Data that the user has to supply is absent; the message ends with the commands that get it."""

    def __init__(self, what: str, how: str | None = None) -> None:
        """`how`: the command that gets it, where that is not the one for the published suite."""
        super().__init__(
            f"{what}; get the data with: "
            + (how or "evalharness data fetch, or from a folder: evalharness data import DIR")
        )


class ImportRefusedError(EvalharnessError):
    """A file that `EnvSpec.import_data` was given is not what it takes; the message says what is wrong with it."""


class InvalidTaskError(EvalharnessError):
    """A task cannot be played: its payload, files or labels are not what the adapter expects."""


class NoEpisodeError(InvalidTaskError):
    """An environment was asked about its episode before the first `reset` gave it a task."""

    def __init__(self) -> None:
        super().__init__('no episode yet: call reset(options={"task": task}) first')


@dataclass(frozen=True)
class Task:
    """One problem of a suite.

    `payload` is JSON data that the family's adapter understands; it holds no absolute path, so that
    `content_hash` is the same on every machine.
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
    """What sort of task of its family it is (level, task type, domain, game), for grouping and display."""
    labels: LabelSource = "official"
    """Who wrote the subgoals that progress is measured by."""
    subgoals: tuple[str, ...] = ()
    payload: Mapping[str, Any] = field(default_factory=dict)

    @property
    def content_hash(self) -> str:
        """SHA-256 over the canonical JSON of every field: changes whenever the task does."""
        text = json.dumps(asdict(self), sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Task:
        return cls(**{**data, "subgoals": tuple(data["subgoals"])})


def tasks_hash(tasks: Sequence[Task]) -> str:
    """SHA-256 over the tasks' content hashes in order."""
    return hashlib.sha256("\n".join(task.content_hash for task in tasks).encode()).hexdigest()


class OptionalInfo(TypedDict, total=False):
    """What only some environments return beside the observation."""

    no_effect: bool
    """The last action was valid and more than a look, a talk or a wait, and the world is as it was: AgentRefine's
    logic error. Absent where the environment cannot tell, or counts such an action as not valid."""
    published_valid: bool
    """`valid` by the published rule, where ours is another: recordings of the original are compared with this one."""
    figures: Mapping[str, float]
    """Further numbers about the episode so far, of those that `EnvSpec.scores` names."""


class Info(OptionalInfo):
    """What `reset` and `step` return beside the observation."""

    progress: float
    """Progress rate so far, 0..1, by the suite's labels."""
    success: bool
    """The task counts as solved by the suite's labels."""
    solved: bool
    """The simulator's own verdict, which can differ from the label's."""
    valid: bool
    """The last action was grounded: the environment understood it and could carry it out."""
    subgoals_completed: tuple[int, ...]
    """Indices into `Task.subgoals` completed by this very step (empty on reset)."""


class AnyText(gymnasium.spaces.Space[str]):
    """The space of every string. `gymnasium.spaces.Text` is bounded in length and alphabet; a model is not."""

    def sample(self, mask: Any | None = None, probability: Any | None = None) -> str:
        return "look"

    def contains(self, x: Any) -> bool:
        return isinstance(x, str)

    @property
    def is_np_flattenable(self) -> bool:
        return False


class TextEnv(gymnasium.Env[str, str]):
    """A text world: an action is any string, an observation is a string.

    Promises every adapter keeps:

    * any string is survivable as an action; what the world cannot do yields an ordinary observation;
    * the same task and actions give the same observations, independent of earlier episodes;
    * `reset(options={"task": task})` may be called any number of times on one instance; before the first call
      everything else raises `NoEpisodeError`;
    * `terminated` means the task is solved or the world has ended; turn limits are the caller's
      business, so `truncated` is always false.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012  (gymnasium's own attribute)

    def __init__(self, *, data: Path | None = None) -> None:
        """`data` is the user's data folder (it holds `agentboard/<family>/...`); None where a suite needs none."""
        self.data = data
        self.observation_space = AnyText()
        self.action_space = AnyText()

    def warm(self) -> None:
        """Start what the first episode would have to start, a simulator's process for one. Nobody has to call it."""

    @abstractmethod
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Start `options["task"]`. Returns the first observation and an `Info`."""

    @abstractmethod
    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Returns (observation, reward = gain in progress rate, terminated, False, `Info`)."""

    @property
    @abstractmethod
    def goal(self) -> str:
        """The goal text shown to the agent, known after `reset`."""

    @abstractmethod
    def valid_actions(self) -> list[str]:
        """Every action the world would accept now, sorted. Computed only when called: it can be slow."""

    @abstractmethod
    def oracle(self) -> list[str]:
        """A plan from the state right after `reset` that solves the current task; [] when none is known.

        Leaves the running episode as it was. Deterministic.
        """

    def reference_plans(self) -> dict[str, list[str]]:
        """Named plans that the audit of labels replays: the oracle's, and others that solve the task in the
        simulator's own eyes (a recorded solution, the direct way to the mission), where the two can differ."""
        return {"oracle": self.oracle()}

    @staticmethod
    def playing(part: T | None) -> T:
        """`part` of the running episode, which an adapter has as None until the first `reset`.

        Raises NoEpisodeError before that.
        """
        if part is None:
            raise NoEpisodeError
        return part

    @staticmethod
    def info(
        *,
        progress: float,
        success: bool,
        valid: bool,
        solved: bool | None = None,
        completed: tuple[int, ...] = (),
        **further: Unpack[OptionalInfo],
    ) -> dict[str, Any]:
        """An `Info`; `solved` is as `success` where the simulator has no verdict of its own."""
        info: Info = {
            "progress": progress,
            "success": success,
            "solved": success if solved is None else solved,
            "valid": valid,
            "subgoals_completed": completed,
            **further,
        }
        return dict(info)


def task_of(options: Mapping[str, Any] | None) -> Task:
    """The task in gymnasium's reset options, or a clear error."""
    task = (options or {}).get("task")
    if not isinstance(task, Task):
        raise InvalidTaskError('reset() needs options={"task": Task}; load one with SPEC.load_tasks(...)')
    return task


@dataclass(frozen=True)
class Perturbation:
    """Other words for the same meanings. Only data: the harness carries it out (`evalharness.protocol.perturb`)."""

    description: str
    """One line: what is changed."""
    actions: Mapping[str, str] = field(default_factory=dict)
    """Action name -> its new template, with the slots of the canonical one."""
    prose: Mapping[str, str] = field(default_factory=dict)
    """What the prompt's prose says about those actions -> what it says instead."""
    join_numbers: bool = False
    """`cup 1` becomes `cup1` wherever a name is shown or typed."""
    upper_case: bool = False
    """The words of every action (not the names in it) are written in capitals."""
    reverse_actions: bool = False
    """Actions are listed in the opposite order, in the prompt and by the environment; the one for help stays last."""
    reorder_instruction: bool = False
    """The format rules come before the instruction, and each bulleted list of rules starts from its end."""
    drop_format_rules: bool = False
    """The emphasised format rules are left out of the prompt."""
    source: str = "ours"
    """Who made it, for people to read."""
    published: bool = False
    """Part of a published study: what a sweep is over by default, where a family has any."""
    recalled: bool = False
    """Published, but its wording is from memory: no source at hand has it, only the numbers of its columns."""
    in_first_average: bool = False
    """One of those that the first version of its paper averages over; the last version averages over all columns."""


@dataclass(frozen=True)
class Wording:
    """Where and how an environment words actions beyond its templates, and how those words may be changed."""

    perturbations: Mapping[str, Perturbation] = field(default_factory=dict)
    listing: str = ""
    """How an observation begins that lists the valid actions; they follow, separated by commas."""
    quoted: str = ""
    """Regular expression for an observation that repeats an action; its group `action` is that action."""
    also: Mapping[str, str] = field(default_factory=dict)
    """Action name -> regular expression for other wordings that the environment takes for this action. With a named
    group for each slot, such a wording can be reworded where the environment shows it. Case never matters."""
    numbered: str = ""
    """Regular expression for the words that go before a number in a numbered name."""
    case_matters: bool = False
    """The environment takes its actions in their own case only."""
    unread_from: str = ""
    """Regular expression for where the environment stops to read an action. Outer white space and final periods are
    left to the environment in any case: it forgives them, or refuses them, under a perturbation as without one."""


@dataclass(frozen=True)
class ScoreNames:
    """What a family's own field calls the two rates, and further figures of an episode that it asks for."""

    success: str = "success"
    progress: str = "progress"
    figures: Mapping[str, str] = field(default_factory=dict)
    """Key in `Info.figures` -> what tables call it. Fractions 0..1 of an episode; shown as means, in percent."""


@dataclass(frozen=True)
class Draw:
    """How many tasks of a suite a run plays, where the suite is larger than that."""

    tasks: int
    seed: int
    """Of `random.Random`, where the user names no suite seed."""


@dataclass(frozen=True)
class PublishedTable:
    """Published results of a family that is not in the main table."""

    name: str
    """The table's file, `results/published/<name>.csv`; its column `method` names the rows."""
    suite: str
    columns: Mapping[str, str]
    """`success` and `progress` -> column, in percent."""
    note: str = ""
    """What has to be known to read the rows beside others."""


ImportProgress = Callable[[str, int, int | None], None]
"""(what is being done, how far, of how many where that is known)"""


@dataclass(frozen=True)
class EnvSpec:
    """What an environment's folder registers under the entry point group `evalharness.environments`."""

    family: str
    """Short lower-case name, also the prompt file's name: `prompts/<family>.yaml`."""
    title: str
    """The name a person reads: `BabyAI`."""
    gym_id: str
    """`evalharness/BabyAI-v0`."""
    expected: Mapping[str, int]
    """Number of tasks of the whole family per suite; a suite that is not in it is none of the family's."""
    held_out: bool
    """Whether the family counts in the held-out score."""
    load_tasks: Callable[[Suite, Path | None, int], list[Task]]
    """(suite, data folder, suite seed) -> all tasks in order; raises MissingDataError."""
    make: Callable[[Path | None], TextEnv]
    """(data folder) -> a new environment; heavy imports happen in here, not in the module of the SPEC."""
    actions: Mapping[str, str]
    """Action name -> canonical template, `take: "take {object} from {receptacle}"`; the prompt lists them."""
    help_action: str | None = None
    """The name in `actions` of the action that lists the valid actions; None where there is none."""
    short_title: str = ""
    """At most four characters for narrow columns; by default the first four of the title."""
    packages: tuple[str, ...] = ()
    """Distributions on whose version its behaviour depends; a run's manifest records them."""
    generate: Callable[[int], Iterable[Task]] | None = None
    """(suite seed) -> the open suite's tasks as its generator finds them, without a look at anything stored. With it
    the harness proves and freezes suites of other seeds; without it they come from `load_tasks` each time."""
    open_version: int = 1
    """Of the open suite, of every seed: raised when its tasks or their scoring change, so that what was frozen by an
    earlier version is made again."""
    in_all: bool = True
    """Whether `--tasks all` means this family too."""
    max_turns: int = MAX_TURNS
    """Turns of its episodes where the user names no limit; 30 at most."""
    draw: Mapping[str, Draw] = field(default_factory=dict)
    """Suite -> what is drawn from it, where a run does not play all of it."""
    scores: ScoreNames = field(default_factory=ScoreNames)
    published: PublishedTable | None = None
    """A table of the leaderboard of its own."""
    provenance: Callable[[Suite, Path | None, int], Mapping[str, Any]] | None = None
    """(suite, data folder, suite seed) -> what a run's manifest says of the data behind the tasks."""
    import_data: Callable[[Path, Path, ImportProgress], Sequence[str]] | None = None
    """(the user's file, data folder, progress) -> what was done, a line each; for `evalharness data import FAMILY
    FILE`. Raises ImportRefusedError."""
    wording: Wording = field(default_factory=Wording)
    """What perturbations need to know, and which there are."""
    prompt_file: Path | None = None
    """For an environment outside this repository: where its prompt file is. Default: `prompts/<family>.yaml`."""
    envs_per_worker: int = 1
    """How many environments may share one worker process (1 where each is heavy)."""
    step_timeout: float = 60.0
    """Seconds after which a step counts as hung."""
    reset_timeout: float = 180.0
    """Seconds after which starting an episode counts as hung."""
    cost: float = 1.0
    """Typical CPU milliseconds of one step, for ordering the longest work first."""
    place: Callable[[str, str], str | None] | None = None
    """(valid action in lower case, '' for the start; its observation) -> where the agent is then, None where these do
    not tell. Only for the analysis of behaviour; without it the family has no figures about places."""

    def __post_init__(self) -> None:
        if self.help_action is not None and self.help_action not in self.actions:
            raise ValueError(f"{self.family}: help_action {self.help_action!r} is none of its actions")
        if not self.short_title:
            object.__setattr__(self, "short_title", self.title[:4])
