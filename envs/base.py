"""The interface of environments: everything that the harness knows of an environment is named in this file."""

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
    """Import TextEnv on first use: gymnasium and numpy take a third of a second, which tasks and scores do not need."""
    if name in ("AnyText", "TextEnv"):
        import gymnasium  # noqa: F401  (first: it registers environments, whose modules may import this class)

        from evalharness.envs import text_env

        return getattr(text_env, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@dataclass(frozen=True)
class Perturbation:
    """Other words for the same meanings, as data; `evalharness.protocol.perturb` applies it."""

    description: str
    """One line: what the perturbation changes."""
    actions: Mapping[str, str] = field(default_factory=dict)
    """Action name -> its new template, with the canonical template's slots."""
    prose: Mapping[str, str] = field(default_factory=dict)
    """Text of the prompt about those actions -> its replacement."""
    join_numbers: bool = False
    """`cup 1` becomes `cup1` in all texts and actions."""
    upper_case: bool = False
    """The words of every action (not the names in it) are in capitals."""
    reverse_actions: bool = False
    """Actions are listed in reverse order, in the prompt and by the environment; the help action stays last."""
    listed: Sequence[str] = ()
    """Names of all actions, in the order in which the prompt and the environment list them."""
    reorder_instruction: bool = False
    """The format rules come before the instruction, and each bulleted list of rules is reversed."""
    drop_format_rules: bool = False
    """The prompt omits the emphasised format rules."""
    source: str = "ours"
    """Its author, for people."""
    published: bool = False
    """Part of a published study: a sweep plays these by default, if a family has any."""
    recalled: bool = False
    """Published, but with a wording from memory: our sources have only the numbers of its columns."""
    in_first_average: bool = False
    """Included in the average of the paper's first version; the last version averages over all columns."""


GENERAL: Mapping[str, Perturbation] = {
    "capitals": Perturbation("the words of actions in capitals", upper_case=True),
    "listing": Perturbation("actions listed in the opposite order", reverse_actions=True),
    "instruction": Perturbation(
        "format rules first, bulleted rules in the opposite order", reorder_instruction=True
    ),
    "no-rules": Perturbation("the emphasised format rules are left out", drop_format_rules=True),
}
"""Perturbations that apply to every environment."""


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
    """An environment's wording of actions beyond its templates, and the possible changes to it."""

    perturbations: Mapping[str, Perturbation] = field(default_factory=dict)
    games: Mapping[str, GameWords] = field(default_factory=dict)
    """`Task.words` -> the words of these games."""
    mentions: Mapping[str, str] = field(default_factory=dict)
    """Prose that a perturbation replaces -> the action that it mentions: both are reworded together, or neither."""
    listing: str = ""
    """The beginning of an observation that lists the valid actions, separated by commas."""
    quoted: str = ""
    """Regular expression for an observation that repeats an action; its group `action` is that action."""
    also: Mapping[str, str] = field(default_factory=dict)
    """Action name -> regular expression for other accepted wordings of this action. With a named group for each slot,
    such a wording can be reworded in the environment's texts. Case never matters."""
    numbered: str = ""
    """Regular expression for the words before the number in a numbered name."""
    case_matters: bool = False
    """The environment accepts actions in their own case only."""
    unread_from: str = ""
    """Regular expression for the point where the environment stops reading an action. Outer white space and final
    periods are always passed to the environment, which ignores or refuses them."""


@dataclass(frozen=True)
class ScoreNames:
    """A family's own names of the two rates, and further figures of an episode."""

    success: str = "success"
    progress: str = "progress"
    figures: Mapping[str, str] = field(default_factory=dict)
    """Key in `Info.figures` -> its name in tables. Fractions 0..1 of an episode; shown as means, in percent."""


@dataclass(frozen=True)
class Draw:
    """The number of a suite's tasks that a run plays, if the suite is larger."""

    tasks: int
    seed: int
    """Seed of `random.Random` without a suite seed from the user."""


@dataclass(frozen=True)
class PublishedTable:
    """Published results of a family outside the main table."""

    name: str
    """The table's file, `results/published/<name>.csv`; its column `method` names the rows."""
    suite: str
    columns: Mapping[str, str]
    """`success` and `progress` -> column, in percent."""
    note: str = ""
    """Facts needed to compare the rows with others."""
    other_suites: tuple[str, ...] = ()
    """Other suites of the same tasks that are comparable with the rows."""


ImportProgress = Callable[[str, int, int | None], None]
"""(current step, progress, total if known)"""


@dataclass(frozen=True)
class TaskSuites:
    expected: Mapping[str, int]
    """Number of the family's tasks per suite; other suites do not belong to the family."""
    load_tasks: Callable[[Suite, Path | None, int], list[Task]]
    """(suite, data folder, suite seed) -> all tasks in order; raises MissingDataError."""
    generate: Callable[[int], Iterable[Task]] | None = None
    """(suite seed) -> the open suite's tasks from the generator, without stored files. With it the harness proves and
    freezes suites of other seeds; without it they come from `load_tasks` each time."""
    generate_kinds: Callable[[int, Collection[str]], Iterable[Task]] | None = None
    """(suite seed, kinds) -> only the suite's tasks of these kinds, if all of them take minutes."""
    whole: frozenset[str] = frozenset()
    """Suites that contain every task of the simulator: training data cannot avoid them."""
    training: frozenset[str] = frozenset()
    """Suites that are served to trainers, and refused for scoring."""
    open_version: int = 1
    """Version of the open suite, for every seed: raised if its tasks or their scoring change, so that suites frozen by
    an earlier version are rebuilt."""
    own_words: Callable[[Task], Task] | None = None
    """Returns a task of any suite in its engine's own words and scoring; None: the family has no such version."""
    forms: Callable[[Task], list[str]] = content_form
    """Digests; two tasks that share one are the same task up to renaming. They keep training data and served tasks
    apart from evaluated ones."""
    published_forms: Callable[[], Iterable[str]] = tuple
    """Forms of the published tasks that are known without their data."""
    evaluated_names: Callable[[], Iterable[str]] = tuple
    """Parts of paths and names that identify published tasks and their splits in other people's texts."""
    few_tasks: Mapping[str, int] = field(default_factory=dict)
    """Kind -> number of different open tasks, if small: two seeds other than 0 can share some."""


@dataclass(frozen=True)
class Actions:
    """The actions of an environment and their wording."""

    templates: Mapping[str, str]
    """Action name -> canonical template (`take: "take {object} from {receptacle}"`), in prompt order."""
    help_action: str | None = None
    """The name in `templates` of the action that lists the valid actions; None if there is none."""
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
    """Environments that may share one worker process (1 for heavy ones)."""
    step_timeout: float = 60.0
    """Seconds after which a step counts as hung."""
    reset_timeout: float = 180.0
    """Seconds after which starting an episode counts as hung."""
    cost: float = 1.0
    """Typical CPU milliseconds of one step; the families share the cores by it."""


@dataclass(frozen=True)
class OwnBenchmark:
    """The rules, scores, published rows and data of a family that is its own benchmark, such as HotpotQA. The families
    of the main table set only `in_all`."""

    in_all: bool = False
    """Whether `--tasks all` includes this family: only the five of the main table, whatever else is installed."""
    max_turns: int = MAX_TURNS
    """Turns of its episodes without a limit from the user; 30 at most."""
    draw: Mapping[str, Draw] = field(default_factory=dict)
    """Suite -> the draw from it, if a run does not play all of it."""
    scores: ScoreNames = field(default_factory=ScoreNames)
    published: PublishedTable | None = None
    """The family's own leaderboard table."""
    provenance: Callable[[Suite, Path | None, int], Mapping[str, Any]] | None = None
    """(suite, data folder, suite seed) -> facts about the tasks' data for a run's manifest."""
    import_data: Callable[[Path, Path, ImportProgress], Sequence[str]] | None = None
    """(the user's file, data folder, progress) -> what was done, one line each; for `evalharness data import FAMILY
    FILE`. Raises ImportRefusedError."""


@dataclass(frozen=True)
class StockEngine:
    """The original engine, if the family's default engine is ours (`--engine stock`): the same games, slower."""

    make: Callable[[Path | None], TextEnv]
    packages: tuple[str, ...]
    """Distributions that it needs; a run's manifest records them."""
    worker: WorkerNeeds


@dataclass(frozen=True)
class EnvSpec:
    """The object that an environment's folder registers under the entry point group `evalharness.environments`."""

    family: str
    """Short lower-case name, also the prompt file's name: `prompts/<family>.yaml`."""
    title: str
    """The name for people: `BabyAI`."""
    gym_id: str
    """`evalharness/BabyAI-v0`."""
    make: Callable[[Path | None], TextEnv]
    """(data folder) -> a new environment; heavy imports happen here, not in the module of the SPEC."""
    suites: TaskSuites
    actions: Actions
    worker: WorkerNeeds = field(default_factory=WorkerNeeds)
    held_out: bool = False
    """Whether the family counts in the held-out score."""
    short_title: str = ""
    """At most four characters for narrow columns; by default the first four of the title."""
    packages: tuple[str, ...] = ()
    """Distributions whose version affects its behaviour; a run's manifest records them."""
    prompt_file: Path | None = None
    """Prompt file of an environment outside this repository. Default: `prompts/<family>.yaml`."""
    place: Callable[[str, str], str | None] | None = None
    """(valid action in lower case, '' for the start; its observation) -> the agent's place, None if unknown. Only for
    the analysis of behaviour; without it the family has no figures about places."""
    own: OwnBenchmark = field(default_factory=OwnBenchmark)
    stock: StockEngine | None = None
    """None: the family's simulator is already the stock one."""
    engine: Literal["ours", "stock"] = "ours"
    """The engine that `make` uses, if the family has both."""

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
    """Return a function that imports `module:name` when it is called: reading tasks need not wait for it."""
    return partial(_call, target)


def _call(target: str, *args: Any) -> Any:
    return resolve_name(target)(*args)
