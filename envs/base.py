"""The environment contract: everything the harness knows of an environment is named in this file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Literal

from evalharness.base.errors import UserError
from evalharness.envs.task import MAX_TURNS as MAX_TURNS
from evalharness.envs.task import MIN_TURNS as MIN_TURNS
from evalharness.envs.task import Difficulty as Difficulty
from evalharness.envs.task import ImportRefusedError as ImportRefusedError
from evalharness.envs.task import Info as Info
from evalharness.envs.task import InvalidTaskError as InvalidTaskError
from evalharness.envs.task import LabelSource as LabelSource
from evalharness.envs.task import MissingDataError as MissingDataError
from evalharness.envs.task import NoEpisodeError as NoEpisodeError
from evalharness.envs.task import OptionalInfo as OptionalInfo
from evalharness.envs.task import Suite as Suite
from evalharness.envs.task import SuiteExhaustedError as SuiteExhaustedError
from evalharness.envs.task import Task as Task
from evalharness.envs.task import content_form as content_form
from evalharness.envs.task import digest as digest
from evalharness.envs.task import task_of as task_of
from evalharness.envs.task import tasks_hash as tasks_hash

if TYPE_CHECKING:
    from evalharness.envs.text_env import AnyText as AnyText
    from evalharness.envs.text_env import TextEnv as TextEnv


def __getattr__(name: str) -> Any:
    """gymnasium and numpy take a third of a second, which who only reads tasks or scores does not wait for."""
    if name in ("AnyText", "TextEnv"):
        import gymnasium  # noqa: F401  (first: it registers environments, whose modules may import this class)

        from evalharness.envs import text_env

        return getattr(text_env, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


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
    listed: Sequence[str] = ()
    """Names of all actions, in the order in which the prompt and the environment list them instead."""
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


GENERAL: Mapping[str, Perturbation] = {
    "capitals": Perturbation("the words of actions in capitals", upper_case=True),
    "listing": Perturbation("actions listed in the opposite order", reverse_actions=True),
    "instruction": Perturbation(
        "format rules first, bulleted rules in the opposite order", reorder_instruction=True
    ),
    "no-rules": Perturbation("the emphasised format rules are left out", drop_format_rules=True),
}
"""Those that say nothing of one environment."""


@dataclass(frozen=True)
class Wording:
    """Where and how an environment words actions beyond its templates, and how those words may be changed."""

    perturbations: Mapping[str, Perturbation] = field(default_factory=dict)
    mentions: Mapping[str, str] = field(default_factory=dict)
    """Prose that a perturbation replaces -> the action that it speaks of: both are reworded together, or neither."""
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
    other_suites: tuple[str, ...] = ()
    """Suites of the same tasks that may stand beside the rows, too."""


ImportProgress = Callable[[str, int, int | None], None]
"""(what is being done, how far, of how many where that is known)"""


@dataclass(frozen=True)
class TaskSuites:
    """Which tasks a family has, and where they come from."""

    expected: Mapping[str, int]
    """Number of tasks of the whole family per suite; a suite that is not in it is none of the family's."""
    load_tasks: Callable[[Suite, Path | None, int], list[Task]]
    """(suite, data folder, suite seed) -> all tasks in order; raises MissingDataError."""
    generate: Callable[[int], Iterable[Task]] | None = None
    """(suite seed) -> the open suite's tasks as its generator finds them, without a look at anything stored. With it
    the harness proves and freezes suites of other seeds; without it they come from `load_tasks` each time."""
    generate_kinds: Callable[[int, Collection[str]], Iterable[Task]] | None = None
    """(suite seed, kinds): the suite's tasks of these kinds alone, where all of them take minutes."""
    whole: frozenset[str] = frozenset()
    """Suites of every task that the simulator has: training data cannot keep away from them."""
    open_version: int = 1
    """Of the open suite, of every seed: raised when its tasks or their scoring change, so that what was frozen by an
    earlier version is made again."""
    own_words: Callable[[Task], Task] | None = None
    """A task of any suite as its engine words and scores it; None: no task has such words."""
    forms: Callable[[Task], list[str]] = content_form
    """Digests; two tasks that share one are the same task up to renaming. Training data and served tasks are kept apart
    from evaluated ones by them."""
    published_forms: Callable[[], Iterable[str]] = tuple
    """Forms of the published tasks, as far as they are known without their data."""
    evaluated_names: Callable[[], Iterable[str]] = tuple
    """Parts of paths and names by which texts of others name published tasks and the splits they are from."""
    few_tasks: Mapping[str, int] = field(default_factory=dict)
    """Kind -> how many different tasks of it there are for the open suites of all seeds, where these are few: two seeds
    other than 0 can share some. For people to read."""


@dataclass(frozen=True)
class Actions:
    """What can be done in an environment, and in which words."""

    templates: Mapping[str, str]
    """Action name -> canonical template, `take: "take {object} from {receptacle}"`; the prompt lists them."""
    help_action: str | None = None
    """The name in `templates` of the action that lists the valid actions; None where there is none."""
    wording: Wording = field(default_factory=Wording)
    """What perturbations need to know, and which there are."""

    @property
    def help(self) -> str | None:
        """The template of the action that lists the valid actions."""
        return None if self.help_action is None else self.templates[self.help_action]


@dataclass(frozen=True)
class WorkerNeeds:
    """How many environments one process holds, and how long a call may take."""

    envs_per_worker: int = 1
    """How many environments may share one worker process (1 where each is heavy)."""
    step_timeout: float = 60.0
    """Seconds after which a step counts as hung."""
    reset_timeout: float = 180.0
    """Seconds after which starting an episode counts as hung."""
    cost: float = 1.0
    """Typical CPU milliseconds of one step, for ordering the longest work first."""


@dataclass(frozen=True)
class OwnBenchmark:
    """What a family has that is a benchmark by itself, such as HotpotQA: rules, scores, published rows and data of its
    own. The families of the main table leave all of it as it is."""

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


@dataclass(frozen=True)
class StockEngine:
    """The engine that others made, where the family's own one is ours (`--engine stock`): the same games, slower."""

    make: Callable[[Path | None], TextEnv]
    packages: tuple[str, ...]
    """Distributions that it needs; a run's manifest records them."""
    worker: WorkerNeeds


@dataclass(frozen=True)
class EnvSpec:
    """What an environment's folder registers under the entry point group `evalharness.environments`."""

    family: str
    """Short lower-case name, also the prompt file's name: `prompts/<family>.yaml`."""
    title: str
    """The name a person reads: `BabyAI`."""
    gym_id: str
    """`evalharness/BabyAI-v0`."""
    make: Callable[[Path | None], TextEnv]
    """(data folder) -> a new environment; heavy imports happen in here, not in the module of the SPEC."""
    suites: TaskSuites
    actions: Actions
    worker: WorkerNeeds = field(default_factory=WorkerNeeds)
    held_out: bool = False
    """Whether the family counts in the held-out score."""
    short_title: str = ""
    """At most four characters for narrow columns; by default the first four of the title."""
    packages: tuple[str, ...] = ()
    """Distributions on whose version its behaviour depends; a run's manifest records them."""
    prompt_file: Path | None = None
    """For an environment outside this repository: where its prompt file is. Default: `prompts/<family>.yaml`."""
    place: Callable[[str, str], str | None] | None = None
    """(valid action in lower case, '' for the start; its observation) -> where the agent is then, None where these do
    not tell. Only for the analysis of behaviour; without it the family has no figures about places."""
    picture: Callable[[TextEnv], str] | None = None
    """(environment after a reset or a step) -> its world as an SVG document (`evalharness.envs.picture`), for the
    report. Without it `room` or `place` gives a map of the places walked."""
    room: Callable[[TextEnv], str] | None = None
    """(environment after a reset or a step) -> where the agent is, empty where it is not known: for the map, where
    `place` cannot find it in texts."""
    own: OwnBenchmark = field(default_factory=OwnBenchmark)
    stock: StockEngine | None = None
    """None: the family's simulator is the stock one already."""
    engine: Literal["ours", "stock"] = "ours"
    """What `make` gives, for a family that has both."""

    def on_stock_engine(self) -> EnvSpec:
        """Raises UserError if the engine is not installed."""
        if self.stock is None:
            return self
        for package in self.stock.packages:
            try:
                version(package)
            except PackageNotFoundError:
                raise UserError(
                    f"--engine stock: {self.title} needs {package}: pip install 'evalharness[stock]' (Python 3.11)"
                ) from None
        packages = (*self.packages, *self.stock.packages)
        return replace(
            self, make=self.stock.make, worker=self.stock.worker, packages=packages, engine="stock"
        )

    def __post_init__(self) -> None:
        help_action = self.actions.help_action
        if help_action is not None and help_action not in self.actions.templates:
            raise ValueError(f"{self.family}: help_action {help_action!r} is none of its actions")
        if not self.short_title:
            object.__setattr__(self, "short_title", self.title[:4])


def lazily(target: str) -> Callable[..., Any]:
    """The function or class `module:name`, imported when it is called: who only reads tasks does not wait for it."""
    return partial(_call, target)


def _call(target: str, *args: Any) -> Any:
    return resolve_name(target)(*args)
