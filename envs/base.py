"""Define the interface of environments: the harness knows only these facts about an environment."""

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
    """Import TextEnv at its first use, because importing gymnasium takes a third of a second."""
    if name in ("AnyText", "TextEnv"):
        import gymnasium  # noqa: F401  (first: it registers environments, whose modules may import this class)

        from evalharness.envs import text_env

        return getattr(text_env, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@dataclass(frozen=True)
class Perturbation:
    """A perturbation as data: other words for the same actions. `evalharness.protocol.perturb` applies it."""

    description: str
    """Description of the changes in one line."""
    actions: Mapping[str, str] = field(default_factory=dict)
    """Action name -> new template, with the slots of the original template."""
    prose: Mapping[str, str] = field(default_factory=dict)
    """Text of the prompt about these actions -> its replacement."""
    join_numbers: bool = False
    """`cup 1` becomes `cup1` in all texts and actions."""
    upper_case: bool = False
    """Write the words of every action (not the names in it) in capitals."""
    reverse_actions: bool = False
    """Reverse the order of actions in the prompt and in the environment's lists; the help action stays last."""
    listed: Sequence[str] = ()
    """Names of all actions, in the new order for the prompt and the environment's lists."""
    reorder_instruction: bool = False
    """Put the format rules before the instruction, and reverse each bulleted list of rules."""
    drop_format_rules: bool = False
    """Leave out the emphasised format rules of the prompt."""
    source: str = "ours"
    """Author of the perturbation."""
    published: bool = False
    """Whether it is part of a published study; by default, a sweep plays a family's published perturbations."""
    recalled: bool = False
    """Whether its results were published without its wording, so that the wording here is our own."""
    in_first_average: bool = False
    """Whether the average of the paper's first version includes it; the last version averages over all columns."""


GENERAL: Mapping[str, Perturbation] = {
    "capitals": Perturbation("the words of actions in capitals", upper_case=True),
    "listing": Perturbation("actions listed in the opposite order", reverse_actions=True),
    "instruction": Perturbation(
        "format rules first, bulleted rules in the opposite order", reorder_instruction=True
    ),
    "no-rules": Perturbation("the emphasised format rules are left out", drop_format_rules=True),
}
"""Perturbations that fit every environment; an environment adds them to its own (`Wording.perturbations`)."""


@dataclass(frozen=True)
class GameWords:
    """The words of games that differ from the family's templates and prompt file, such as those of another release."""

    actions: Mapping[str, str] = field(default_factory=dict)
    """Action name -> the games' template."""
    prose: Mapping[str, str] = field(default_factory=dict)
    """Text of the prompt's rules -> its replacement."""
    feedback: Mapping[str, str] = field(default_factory=dict)
    """Regular expression for an observation of the prompt's examples -> its replacement."""


@dataclass(frozen=True)
class Wording:
    """An environment's wording of actions beyond its templates, and its perturbations."""

    perturbations: Mapping[str, Perturbation] = field(default_factory=dict)
    games: Mapping[str, GameWords] = field(default_factory=dict)
    """`Task.words` -> the words of these games."""
    mentions: Mapping[str, str] = field(default_factory=dict)
    """Text that a perturbation replaces -> action in this text; a random wording rewords both or none of them."""
    listing: str = ""
    """Start of an observation that lists the valid actions with commas."""
    quoted: str = ""
    """Regular expression for an observation that repeats an action; its group `action` is that action."""
    also: Mapping[str, str] = field(default_factory=dict)
    """Action name -> regular expression for other accepted wordings of this action; case does not matter. If it has a
    named group for each slot, such a wording is also reworded in the environment's texts."""
    numbered: str = ""
    """Regular expression for the words before the number in a numbered name."""
    case_matters: bool = False
    """Whether the environment accepts actions only in their own case."""
    unread_from: str = ""
    """Regular expression for the position from which the environment ignores an action's text. Outer white space and
    final periods are always sent to the environment, which ignores or refuses them."""


@dataclass(frozen=True)
class ScoreNames:
    """A family's own names of the two rates, and of other figures of an episode."""

    success: str = "success"
    progress: str = "progress"
    figures: Mapping[str, str] = field(default_factory=dict)
    """Key in `Info.figures` (a fraction 0..1 per episode) -> name in tables, which print the mean in percent."""


@dataclass(frozen=True)
class Draw:
    """The number of tasks that a run draws from a larger suite."""

    tasks: int
    seed: int
    """Seed of `random.Random`, if the user gives no suite seed."""


@dataclass(frozen=True)
class PublishedTable:
    """Published results of a family outside the main table."""

    name: str
    """Name of the file `results/published/<name>.csv`; its column `method` names the rows."""
    suite: str
    columns: Mapping[str, str]
    """`success` and `progress` -> column, in percent."""
    note: str = ""
    """Facts needed to compare the rows with others."""
    other_suites: tuple[str, ...] = ()
    """Other suites of the same tasks whose runs are comparable with the rows."""


ImportProgress = Callable[[str, int, int | None], None]
"""(current step, progress, total if known)"""


@dataclass(frozen=True)
class TaskSuites:
    expected: Mapping[str, int]
    """Suite -> number of the family's tasks; the family has only these suites."""
    load_tasks: Callable[[Suite, Path | None, int], list[Task]]
    """(suite, data folder, suite seed) -> all tasks in order; raises MissingDataError if data is missing."""
    generate: Callable[[int], Iterable[Task]] | None = None
    """(suite seed) -> the open suite's tasks from the generator, without stored files. If given, the harness proves and
    freezes suites of other seeds; otherwise `load_tasks` makes them each time."""
    generate_kinds: Callable[[int, Collection[str]], Iterable[Task]] | None = None
    """(suite seed, kinds) -> the open suite's tasks of these kinds, if generating all kinds takes minutes."""
    whole: frozenset[str] = frozenset()
    """Suites that contain every task of the simulator, so that training data cannot exclude them."""
    training: frozenset[str] = frozenset()
    """Suites that are served to trainers; runs on them are refused."""
    open_version: int = 1
    """Version of the open suites of all seeds. It grows if tasks or scoring change, so that suites frozen by an earlier
    version are rebuilt."""
    own_words: Callable[[Task], Task] | None = None
    """(task) -> the same task in its engine's own words and scoring; None: the family has no such version."""
    forms: Callable[[Task], list[str]] = content_form
    """(task) -> digests. Two tasks that share a digest are the same task except for names. The digests exclude
    evaluated tasks from training data and served tasks."""
    published_forms: Callable[[], Iterable[str]] = tuple
    """Digests of published tasks that are known without the published data."""
    evaluated_names: Callable[[], Iterable[str]] = tuple
    """Parts of paths and names that identify published tasks and their splits in texts of other authors."""
    few_tasks: Mapping[str, int] = field(default_factory=dict)
    """Kind -> number of different open tasks, if it is so small that two seeds other than 0 may share tasks."""


@dataclass(frozen=True)
class Actions:
    """The actions of an environment and their wording."""

    templates: Mapping[str, str]
    """Action name -> template (`take: "take {object} from {receptacle}"`), in the order of the prompt."""
    help_action: str | None = None
    """Name in `templates` of the action that lists the valid actions; None if there is no such action."""
    wording: Wording = field(default_factory=Wording)
    """The facts that perturbations need, and the environment's own perturbations."""

    def templates_in(self, words: str) -> Mapping[str, str]:
        """Return the templates of games with these words (`Task.words`)."""
        game = self.wording.games.get(words)
        return self.templates if game is None else {**self.templates, **game.actions}

    def help_in(self, words: str = "") -> str | None:
        """Return the template of the action that lists the valid actions."""
        return None if self.help_action is None else self.templates_in(words)[self.help_action]


@dataclass(frozen=True)
class WorkerNeeds:
    """The number of environments per process, and the time limits of calls."""

    envs_per_worker: int = 1
    """Number of environments in one worker process (1 for heavy environments)."""
    step_timeout: float = 60.0
    """Time limit of a step in seconds."""
    reset_timeout: float = 180.0
    """Time limit of a reset in seconds."""
    cost: float = 1.0
    """Typical CPU milliseconds of one step; families share the CPU cores in this proportion."""


@dataclass(frozen=True)
class OwnBenchmark:
    """Rules, scores, published rows and data of a family that is a benchmark of its own, such as HotpotQA. The families
    of the main table set only `in_all`."""

    in_all: bool = False
    """Whether `--tasks all` includes this family; true only for the five families of the main table."""
    max_turns: int = MAX_TURNS
    """Default turn limit of an episode; at most 30."""
    draw: Mapping[str, Draw] = field(default_factory=dict)
    """Suite -> draw, if a run plays only a part of the suite."""
    scores: ScoreNames = field(default_factory=ScoreNames)
    published: PublishedTable | None = None
    """Table of the family's own leaderboard."""
    provenance: Callable[[Suite, Path | None, int], Mapping[str, Any]] | None = None
    """(suite, data folder, suite seed) -> facts about the tasks' data for a run's manifest."""
    import_data: Callable[[Path, Path, ImportProgress], Sequence[str]] | None = None
    """(the user's file, data folder, progress) -> lines about the import, for `evalharness data import FAMILY FILE`.
    Raises ImportRefusedError if the file cannot be used."""


@dataclass(frozen=True)
class StockEngine:
    """The original engine of a family whose default engine is ours (`--engine stock`): the same games, but slower."""

    make: Callable[[Path | None], TextEnv]
    packages: tuple[str, ...]
    """Packages that the engine needs; a run's manifest records their versions."""
    worker: WorkerNeeds


@dataclass(frozen=True)
class EnvSpec:
    """The description of an environment, registered as an entry point of the group `evalharness.environments`."""

    family: str
    """Short lower-case name; the environments of this repository have the prompt file `prompts/<family>.yaml`."""
    title: str
    """Title for people, for example `BabyAI`."""
    gym_id: str
    """Id for gymnasium, for example `evalharness/BabyAI-v0`."""
    make: Callable[[Path | None], TextEnv]
    """(data folder) -> new environment. This function does the slow imports, not the module of the SPEC."""
    suites: TaskSuites
    actions: Actions
    worker: WorkerNeeds = field(default_factory=WorkerNeeds)
    held_out: bool = False
    """Whether the family counts in the held-out score; only for families of `--tasks all`."""
    short_title: str = ""
    """At most four characters for narrow columns; by default the first four of the title."""
    packages: tuple[str, ...] = ()
    """Packages whose version affects the environment's behaviour; a run's manifest records their versions."""
    prompt_file: Path | None = None
    """Prompt file of an environment outside this repository. Default: `prompts/<family>.yaml`."""
    place: Callable[[str, str], str | None] | None = None
    """(valid action in lower case, or '' at the start; its observation) -> the agent's place, None if unknown. Only the
    analysis of behaviour uses it; if it is None, there are no figures about places."""
    own: OwnBenchmark = field(default_factory=OwnBenchmark)
    stock: StockEngine | None = None
    """None: the family's engine is already the stock engine."""
    engine: Literal["ours", "stock"] = "ours"
    """Engine that `make` uses, if the family has both engines."""

    def on_stock_engine(self) -> EnvSpec:
        """Return the environment with the stock engine. Raise UserError if the engine is not installed."""
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
        if self.held_out and not self.own.in_all:
            raise ValueError(f"{self.family}: held_out is only for the families of --tasks all")
        if not self.short_title:
            object.__setattr__(self, "short_title", self.title[:4])


def lazily(target: str) -> Callable[..., Any]:
    """Return a function that imports `module:name` only when it is called."""
    return partial(_call, target)


def _call(target: str, *args: Any) -> Any:
    return resolve_name(target)(*args)
