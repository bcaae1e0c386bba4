"""`summary.json`: the scores of a run, and what its last start took. Rates are fractions 0..1, times seconds."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from evalharness.records.manifest import Draw, FamilyScoreNames
from evalharness.records.stored import Count, Interval, Limit, Rate, Stored

SCHEMA = 1


class Rates(Stored):
    """Of some tasks of a family; None where none of them was played."""

    success_rate: Rate | None
    """Share of episodes that solved their task by the suite's labels."""
    progress_rate: Rate | None
    """Mean progress at the last turn."""


class Variance(Stored):
    """How much of a rate's error is the tasks', how much the attempts'. Standard deviations and errors of rates."""

    repeats: float
    """Attempts at a task (harmonic mean over tasks)."""
    between_task: float
    """Standard deviation of what the tasks would score in endless attempts."""
    between_run: float
    """Standard deviation of one attempt about its task's own mean."""
    standard_error_tasks: float
    """What other tasks add to the error of the rate."""
    standard_error_runs: float
    """What attempting these tasks as often again adds."""


class Figure(Stored):
    """A family's own figure: its mean over the episodes that have it."""

    n: Count
    """Tasks."""
    mean: float
    """Over the episodes."""
    ci95: Interval
    """95 % interval over tasks."""


class Reference(Stored):
    """What chance reaches on the tasks that were played, and what the best known plans reach; by `success_rate` and
    `progress_rate`. None where it is not known."""

    floor: dict[str, float | None]
    """Mean of a random choice among the valid actions."""
    floor_se: dict[str, float | None]
    """Standard error of the floor, of so many attempts."""
    ceiling: dict[str, float]
    """Mean of the best known plans within the turn limit."""
    chance_corrected: dict[str, float | None]
    """(rate - floor) / (ceiling - floor): 0 is what chance gives, 1 what the best known plans give."""
    chance_corrected_ci95: dict[str, Interval | None]
    """95 % interval, the floor's own error included."""


class Scores(Stored):
    """Two rates over tasks, and what they are worth."""

    n: Count
    """Tasks played."""
    kinds: int | None = None
    """How many kinds these are of."""
    success_rate: Rate | None = None
    """Share of episodes that solved their task by the suite's labels."""
    success_rate_ci95: Interval | None = None
    """95 % interval over tasks."""
    success_rate_ci95_by_kind: Interval | None = None
    """95 % interval for other kinds of tasks like these; None where all are of one kind."""
    success_rate_variance: Variance | None = None
    """None where every task was attempted once."""
    progress_rate: Rate | None = None
    """Mean progress at the last turn."""
    progress_rate_ci95: Interval | None = None
    """95 % interval over tasks."""
    progress_rate_ci95_by_kind: Interval | None = None
    """As of the success rate."""
    progress_rate_variance: Variance | None = None
    """As of the success rate."""


class HeldOut(Scores):
    """The held-out score: families weighted by their number of tasks."""


class Estimate(Stored):
    """A score over tasks that stand for others."""

    n: Count
    """Tasks played."""
    stands_for: Count
    """Tasks that they stand for."""
    success_rate: Rate
    """Estimated share of episodes that solve their task."""
    success_rate_ci95: Interval
    """95 % interval for the rate over all of them."""
    progress_rate: Rate
    """Estimated mean progress."""
    progress_rate_ci95: Interval
    """As of the success rate."""


class KindScore(Rates):
    """Of the tasks of one kind: a type of ALFWorld, a level of BabyAI, a domain of PDDL, a story of Jericho."""

    n: Count
    """Tasks."""
    success_rate_ci95: Interval
    """95 % interval over tasks."""


class FamilyScore(Scores):
    """Unweighted means over the episodes of a family. All but `n` and `episodes` is not there before the first one."""

    episodes: Count
    """Episodes played."""
    progress_rate_bootstrap95: Interval | None = None
    """95 % bootstrap over tasks, beside `progress_rate_ci95`."""
    grounding_accuracy: Rate | None = None
    """Mean share of turns whose action the environment could carry out."""
    grounding_accuracy_ci95: Interval | None = None
    """95 % interval over tasks."""
    solved_rate: Rate | None = None
    """As `success_rate`, by the simulator's own verdict."""
    success_by_trial: list[Rate] | None = None
    """Share of the episodes solved within the first trial, within two, ...; only of an agent that tries again."""
    openings: int | None = None
    """How many different first views (goal and first observation) the tasks have."""
    easy: Rates | None = None
    """Of its easy tasks."""
    hard: Rates | None = None
    """Of its hard tasks."""
    by_kind: dict[str, KindScore] | None = None
    """Kind of task -> its rates; not there where all tasks are of one kind."""
    figures: dict[str, Figure] | None = None
    """The family's own figures, 0..1; not there where it has none."""


class FamilyRow(FamilyScore):
    """A family of a run."""

    selected: Count
    """Tasks that the run is to play."""
    expected: Count
    """Tasks of the whole family."""
    episodes_selected: Count
    """Episodes that the run is to play."""
    infrastructure_failures: Count
    """Episodes that were given up and have not been played since; excluded from scores."""
    cut_episodes: Count = 0
    """Episodes whose beginning the server dropped without an error."""
    mean_turns: float | None = None
    """Turns of an episode; only of families whose scores go by names of their own."""
    reference: Reference | None = None
    """None unless every task that was played has a stored range of this turn limit."""


class TokenCounts(Stored):
    """Sums over turns, as the server counts."""

    prompt: int
    """Read by the model."""
    completion: int
    """Written by it."""
    reasoning: int
    """Of the completion; 0 where the server does not count them."""


class ReplyTrouble(Stored):
    """Something that nearly all replies have in common, or that none should have."""

    turns: Count
    """Replies."""
    errors: Count
    """Of them, with this trouble."""
    causes: dict[str, Count]
    """Cause, template token or refused action -> replies."""
    said: str
    """One line for the person at the terminal."""


class OutsideAgent(Stored):
    """What agents from outside did beside acting, and what they say of themselves, which nothing checks."""

    stopped: dict[str, Count] = Field(default={})
    """How an agent ended an episode before its end -> episodes; each counts as its failure."""
    handed_out_again: Count = 0
    """Episodes that were given to an agent more than once, after a failure of infrastructure."""
    said_models: list[str] = Field(default=[])
    """Names of the models that they say they used."""
    said_prompt_tokens: int | None = None
    """Sum; None where none was said, as in the two below."""
    said_completion_tokens: int | None = None
    """Sum."""
    said_cost: float | None = None
    """Sum, in their currency."""


class Server(Stored):
    """What the model's servers said of themselves while the run was played."""

    running_mean: float
    """Requests at work."""
    waiting_mean: float
    """Requests that wait inside the server."""
    kv_cache_usage_mean: float | None = None
    """Share of the key-value cache in use, 0..1."""
    kv_cache_usage_peak: float
    """The highest share in use, 0..1."""
    prefix_cache_hit_rate: float | None
    """Share of prompt tokens found in the prefix cache, 0..1; None before the first prompt."""
    preemptions: int | None = None
    """Requests thrown out of a full key-value cache."""
    prompt_tokens_per_s: float
    """Tokens read during the start."""
    generation_tokens_per_s: float
    """Tokens written during the start."""
    requests_s: float | None = None
    """Time of all requests inside the server, queue included; the next three are parts of it."""
    queue_s: float | None = None
    """Waiting."""
    prefill_s: float | None = None
    """Reading prompts."""
    decode_s: float | None = None
    """Writing replies."""
    prefix_cache_expected: float | None = None
    """The hit rate that an episode's own earlier turns would give alone, 0..1."""


class Event(Stored):
    """A death or restart of a server."""

    at_s: float
    """Since it began to play."""
    event: str
    """One line for a person."""


class Concurrency(Stored):
    """Episodes in flight allowed."""

    final: int
    """At the end."""
    highest: int
    """At most."""
    pinned: bool
    """The user set it."""


Bound = Literal["model", "environments", "longest_episode"]
"""What a run cannot be faster than: the time at the model, in the simulators, of the longest episode."""


class Performance(Stored):
    """Where a start's time went, and how near it came to the fastest it could have been."""

    efficiency: float | None
    """Bound / wall time, 0..1."""
    bound: Bound
    """The largest of `bounds_s`."""
    bounds_s: dict[Bound, float] | None = None
    """Times that no run can beat."""
    time: dict[str, float]
    """Shares of the episodes' time, together 1."""
    episode_s: float | None = None
    """Wall time of all episodes together."""
    families: dict[str, dict[str, float]] | None = None
    """Family -> shares as in `time`."""
    client_cpu_s_per_turn: float | None = None
    """CPU time of the harness's own process."""
    environment_cpu_s: dict[str, float] | None = None
    """Family -> CPU time of its processes, their start included."""
    workers: dict[str, int] | None = None
    """Family -> processes."""
    concurrency: Concurrency | None = None
    """Episodes in flight allowed."""
    server: Server | None
    """None where no server could be looked into."""
    recycled_workers: int | None = None
    """Processes that were replaced because they had grown."""
    lost_workers: int | None = None
    """Processes of environments that died, hung or raised; others took their place."""
    overloads: int | None = None
    """How often a server refused a request because it had too many."""
    events: list[Event]
    """Deaths and restarts of servers."""


class ProtocolNumber(Stored):
    """What another group's protocol counts, over the run's games, each once."""

    score: str
    """`success` or `progress`."""
    rate: Rate
    """Mean over the games."""
    ci95: Interval
    """95 % interval over games."""
    games: Count
    """Played, each counted once."""
    drawn: Limit | None = None
    """Games that the protocol draws with repetition."""
    drawn95: Interval | None = None
    """Where the rate of such a draw lies in 95 of 100 draws, of these very results."""


class RunScores(Stored):
    """What the episodes of a run come to."""

    schema_: int = Field(default=SCHEMA, alias="schema")
    """Version of this format."""
    run: str
    """The folder, as it was given."""
    suite: str
    """`agentboard`, `open`, or what a family names."""
    labels: dict[str, str]
    """Family -> whose subgoal labels, of families that do not have the official ones; `changed`: tasks of a published
    suite that are not the published ones."""
    model: dict[str, Any]
    """`name`, and what the manifest's identity says of the model."""
    max_turns: int
    """Turns of an episode at most; the largest of all families."""
    turn_limits: dict[str, int] | None = None
    """Family -> turns at most, where families differ."""
    scores: dict[str, FamilyScoreNames] | None = None
    """Of families that call their scores by names of their own."""
    draw: dict[str, Draw] | None = None
    """Of families whose tasks were drawn from a larger suite."""
    max_tokens: int | None = None
    """Tokens of a reply at most."""
    agent: str | None = None
    """Name and options of the agent; not there for `react`."""
    protocol: str | None = None
    """Another group's protocol: its name, whose words, what the user said otherwise."""
    protocol_number: ProtocolNumber | None = None
    """What that protocol's own way of counting makes of the run."""
    perturbation: str | None
    """Of the action surface; None: the environments' own words."""
    samples: Count
    """Attempts at each task."""
    families: dict[str, FamilyRow]
    """Each family that the run plays."""
    held_out: HeldOut | None
    """None unless every held-out task was played."""
    held_out_estimate: Estimate | None = None
    """With `--subset`: of the whole held-out score, once every task of the subset was played."""
    pooled: Scores | None = None
    """Where the held-out score is withheld: over all tasks of the run, each once; families are strata. Not there before
    every episode was played, and of one family."""
    held_out_withheld: str | None
    """Why there is no held-out score."""
    turns: Count
    """Turns played."""
    format_error_turns: Count
    """Turns with any format error."""
    format_error_kinds: dict[str, Count] | None = None
    """Kind -> turns that have it; a turn can have several."""
    first_tasks_only: int | None = None
    """`--limit`: only so many tasks of each family, the first."""
    sample: int | None = None
    """`--draw`: only so many tasks of each family, drawn with `sample_seed`."""
    sample_seed: int | None = None
    """Of `sample`."""
    subset: int | None = None
    """`--subset`: only so many tasks, which stand for the whole held-out score."""
    tells_stop: bool | None = None
    """Whether every server said which stop sequence had ended a reply."""
    trimmed_episodes: Count
    """Episodes that outgrew the model's context and lost old turns."""
    cut_from: Count | None = None
    """The earliest turn from which a server had dropped an episode's beginning without an error."""
    context_full_episodes: Count | None = None
    """Episodes that ended because the context was full."""
    content_filter_episodes: Count | None = None
    """Episodes that ended because the server's filter of contents withheld a reply."""
    simulator_halted_episodes: Count | None = None
    """Episodes that ended because their last action halted the simulator, each time that it was carried out."""
    reasoning_truncated_turns: Count | None = None
    """Turns that were cut off inside their reasoning."""
    tokens: TokenCounts
    """Of finished episodes."""


class Timing(Stored):
    """What only the start that played knows; it cannot be computed from the episodes."""

    wall_s: float | None = None
    """The last start that played anything; so are the next three."""
    sessions: int | None = None
    """How many there had been."""
    efficiency: float | None = None
    """As in `performance`."""
    performance: Performance | None = None
    """Where its time went."""
    stopped: str | None = None
    """Why the run ended before every episode was tried."""

    def with_end(self, stopped: str | None) -> Timing:
        """Add the reason why this start ended early."""
        kept = {name: value for name, value in self.given_fields().items() if name != "stopped"}
        return Timing(**kept | ({} if stopped is None else {"stopped": stopped}))


class Summary(Timing, RunScores):
    """`summary.json`."""

    format_trouble: ReplyTrouble | None = None
    """Where nearly every reply is a format error."""
    refused_actions: ReplyTrouble | None = None
    """Where the environment refuses nearly every action; the most frequent of them."""
    template_tokens: ReplyTrouble | None = None
    """Where the server leaves tokens of the chat template in its replies."""
    unknown_marks: ReplyTrouble | None = None
    """Set if replies hold an action inside tags with unknown names, which are treated as reasoning; `causes` lists
    these tags."""
    outside: OutsideAgent | None = None
    """Of agents from outside."""
    made_from: str | None = None
    """SHA-256 of the run's manifest and episodes and of the other keys."""

    @property
    def is_complete(self) -> bool:
        """Return whether every selected episode was played."""
        return all(row.episodes == row.episodes_selected for row in self.families.values())

    @property
    def agent_always_exits(self) -> bool:
        """Return whether the process of `--agent-command` ended before the episode in every episode."""
        exited = self.outside.stopped.get("exited", 0) if self.outside else 0
        return 0 < exited == sum(row.episodes for row in self.families.values())
