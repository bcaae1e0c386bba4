"""Define `summary.json`: the scores of a run, and the times of its last start. Rates are 0..1, times in seconds."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from evalharness.records.manifest import Draw, FamilyScoreNames, RepeatCheck
from evalharness.records.stored import Count, Interval, Limit, Rate, Stored

SCHEMA = 1


class Rates(Stored):
    """The rates of some tasks of a family; None if none of the tasks was played."""

    success_rate: Rate | None
    """Share of episodes that solved their task by the suite's labels."""
    progress_rate: Rate | None
    """Mean progress at the last turn."""


class Variance(Stored):
    """The parts of a rate's error that come from the choice of tasks and from the attempts."""

    repeats: float
    """Number of attempts per task (harmonic mean over tasks)."""
    between_task: float
    """Standard deviation of the tasks' scores with infinitely many attempts."""
    between_run: float
    """Standard deviation of one attempt around its task's mean."""
    standard_error_tasks: float
    """Standard error from the choice of tasks."""
    standard_error_runs: float
    """Standard error from new attempts at the same tasks."""


class Figure(Stored):
    """A figure that the family defines: its mean over the episodes that have it."""

    n: Count
    """Number of tasks."""
    mean: float
    """Mean over the episodes."""
    ci95: Interval
    """95 % interval over tasks."""


class Reference(Stored):
    """Floor and ceiling of the played tasks, by `success_rate` and `progress_rate`; None for an unknown value."""

    floor: dict[str, float | None]
    """Mean score of a random choice among the valid actions."""
    floor_se: dict[str, float | None]
    """Standard error of the floor, which comes from random attempts."""
    ceiling: dict[str, float]
    """Mean score of the best known plans within the turn limit."""
    chance_corrected: dict[str, float | None]
    """(rate - floor) / (ceiling - floor): 0 is the score of random actions, 1 that of the best known plans."""
    chance_corrected_ci95: dict[str, Interval | None]
    """95 % interval, which includes the error of the floor."""


class Scores(Stored):
    """Two rates over tasks, with their uncertainty."""

    n: Count
    """Number of tasks played."""
    kinds: int | None = None
    """Number of kinds among these tasks."""
    success_rate: Rate | None = None
    """Share of episodes that solved their task by the suite's labels."""
    success_rate_ci95: Interval | None = None
    """95 % interval over tasks."""
    success_rate_ci95_by_kind: Interval | None = None
    """95 % interval with kinds of tasks as units; None if all tasks have one kind."""
    success_rate_variance: Variance | None = None
    """None if every task was attempted once."""
    progress_rate: Rate | None = None
    """Mean progress at the last turn."""
    progress_rate_ci95: Interval | None = None
    """95 % interval over tasks."""
    progress_rate_ci95_by_kind: Interval | None = None
    """Like `success_rate_ci95_by_kind`."""
    progress_rate_variance: Variance | None = None
    """Like `success_rate_variance`."""


class HeldOut(Scores):
    """The held-out score: families weighted by their number of tasks."""


class Estimate(Stored):
    """A score that is estimated from a subset of the tasks."""

    n: Count
    """Number of tasks played."""
    stands_for: Count
    """Number of tasks that the subset represents."""
    success_rate: Rate
    """Estimated share of episodes that solve their task."""
    success_rate_ci95: Interval
    """95 % interval for the rate over all represented tasks."""
    progress_rate: Rate
    """Estimated mean progress."""
    progress_rate_ci95: Interval
    """95 % interval for the progress over all represented tasks."""


class KindScore(Rates):
    """Rates of one kind of task: a type in ALFWorld, a level in BabyAI, a domain in PDDL, a story in Jericho."""

    n: Count
    """Number of tasks."""
    success_rate_ci95: Interval
    """95 % interval over tasks."""


class FamilyScore(Scores):
    """Unweighted means over a family's episodes. Before the first episode, only `n` and `episodes` are present."""

    episodes: Count
    """Number of episodes played."""
    progress_rate_bootstrap95: Interval | None = None
    """95 % bootstrap interval over tasks, in addition to `progress_rate_ci95`."""
    grounding_accuracy: Rate | None = None
    """Mean share of turns whose action the environment could carry out."""
    grounding_accuracy_ci95: Interval | None = None
    """95 % interval over tasks."""
    solved_rate: Rate | None = None
    """Success rate by the simulator's verdict instead of the subgoal labels."""
    success_by_trial: list[Rate] | None = None
    """Share of episodes solved within one trial, two trials, ...; only for an agent with several trials."""
    openings: int | None = None
    """Number of different pairs of goal and first observation among the tasks; fewer than `n` if tasks begin alike."""
    easy: Rates | None = None
    """Rates of the easy tasks."""
    hard: Rates | None = None
    """Rates of the hard tasks."""
    by_kind: dict[str, KindScore] | None = None
    """Kind of task -> its rates; absent if all tasks have one kind."""
    figures: dict[str, Figure] | None = None
    """Figures that the family defines, 0..1; absent if there are none."""


class FamilyRow(FamilyScore):
    """The results of one family in a run."""

    selected: Count
    """Number of tasks that the run plays."""
    expected: Count
    """Number of tasks in the whole family."""
    episodes_selected: Count
    """Number of episodes that the run plays."""
    infrastructure_failures: Count
    """Number of episodes that failed finally and have not been played since; scores exclude them."""
    cut_episodes: Count = 0
    """Number of episodes whose beginning the server dropped without an error."""
    mean_turns: float | None = None
    """Mean number of turns per episode; only for families with their own names of scores."""
    reference: Reference | None = None
    """Floor and ceiling; None unless both are known for every played task with this turn limit."""


class TokenCounts(Stored):
    """Sums of tokens over turns, as counted by the server."""

    prompt: int
    """Tokens that the model read."""
    completion: int
    """Tokens that the model wrote."""
    reasoning: int
    """Tokens of reasoning, which `completion` includes; 0 if the server does not count reasoning."""


class ReplyTrouble(Stored):
    """A problem of many replies, with a warning for the user."""

    turns: Count
    """Number of replies."""
    errors: Count
    """Number of replies with this problem."""
    causes: dict[str, Count]
    """Cause, template token or refused action -> number of replies."""
    said: str
    """The warning in one line."""


class OutsideAgent(Stored):
    """Facts about external agents, and their own statements, which nobody checks."""

    stopped: dict[str, Count] = Field(default={})
    """How an agent ended an episode early -> number of episodes; each counts as a failure of the agent."""
    handed_out_again: Count = 0
    """Number of episodes that were given to an agent again after an infrastructure failure."""
    said_models: list[str] = Field(default=[])
    """Names of the models that the agents report."""
    said_prompt_tokens: int | None = None
    """Sum of the prompt tokens that the agents report; None if they report none."""
    said_completion_tokens: int | None = None
    """Sum of the completion tokens that the agents report; None if they report none."""
    said_cost: float | None = None
    """Sum of the costs that the agents report, in their currency; None if they report none."""


class Server(Stored):
    """Metrics of the model's servers while the run was played."""

    running_mean: float
    """Mean number of requests in progress."""
    waiting_mean: float
    """Mean number of requests that wait inside the server."""
    kv_cache_usage_mean: float | None = None
    """Mean share of the key-value cache in use, 0..1."""
    kv_cache_usage_peak: float
    """Highest share of the key-value cache in use, 0..1."""
    prefix_cache_hit_rate: float | None
    """Share of prompt tokens found in the prefix cache, 0..1; None before the first prompt."""
    preemptions: int | None = None
    """Number of requests that were removed from a full key-value cache."""
    prompt_tokens_per_s: float
    """Tokens read per second."""
    generation_tokens_per_s: float
    """Tokens written per second."""
    requests_s: float | None = None
    """Time of all requests inside the server; it includes `queue_s`, `prefill_s` and `decode_s`."""
    queue_s: float | None = None
    """Time in the queue."""
    prefill_s: float | None = None
    """Time for reading prompts."""
    decode_s: float | None = None
    """Time for writing replies."""
    prefix_cache_expected: float | None = None
    """Hit rate if only the earlier turns of the same episode were in the cache, 0..1."""


class Event(Stored):
    """A crash or restart of a server."""

    at_s: float
    """Seconds since the start."""
    event: str
    """Description in one line."""


class Concurrency(Stored):
    """The allowed number of concurrent episodes."""

    final: int
    """Number at the end."""
    highest: int
    """Highest number."""
    pinned: bool
    """Whether the user set the number."""


Bound = Literal["model", "environments", "longest_episode"]
"""Names of the lower bounds of a run's time: time at the model, in the simulators, or of the longest episode."""


class Performance(Stored):
    """How one start of a run used its time, compared with a lower bound of the time."""

    efficiency: float | None
    """Largest lower bound (`bounds_s`) / wall time, 0..1; 1 is the fastest possible run."""
    bound: Bound
    """Name of the largest value in `bounds_s`."""
    bounds_s: dict[Bound, float] | None = None
    """Lower bounds of the wall time."""
    time: dict[str, float]
    """Activity -> the activity's share of the time of all episodes; the shares add up to 1."""
    episode_s: float | None = None
    """Sum of the wall times of all episodes."""
    families: dict[str, dict[str, float]] | None = None
    """Family -> shares as in `time`."""
    client_cpu_s_per_turn: float | None = None
    """CPU time of the harness's own process."""
    environment_cpu_s: dict[str, float] | None = None
    """Family -> CPU time of its processes, including their start."""
    workers: dict[str, int] | None = None
    """Family -> number of processes."""
    concurrency: Concurrency | None = None
    """Allowed number of concurrent episodes."""
    server: Server | None
    """None if no server reported metrics."""
    recycled_workers: int | None = None
    """Number of environment processes that were replaced because their memory had grown."""
    lost_workers: int | None = None
    """Number of environment processes that died, hung or failed, and were replaced."""
    overloads: int | None = None
    """Number of requests that a server refused because it had too many."""
    events: list[Event]
    """Crashes and restarts of servers."""


class ProtocolNumber(Stored):
    """The number that another group's protocol reports; each game of the run counts once."""

    score: str
    """`success` or `progress`."""
    rate: Rate
    """Mean over the games."""
    ci95: Interval
    """95 % interval over games."""
    games: Count
    """Number of games played."""
    drawn: Limit | None = None
    """Number of games that the protocol draws with replacement."""
    drawn95: Interval | None = None
    """Interval that contains the rate of 95 % of such draws from this run's games."""


class RunScores(Stored):
    """The results of a run's episodes."""

    schema_: int = Field(default=SCHEMA, alias="schema")
    """Version of this format."""
    run: str
    """The run folder, as the user gave it."""
    suite: str
    """`agentboard`, `open`, or a suite that a family defines."""
    labels: dict[str, str]
    """Family -> source of its subgoal labels, for families without official labels; with `changed` if tasks of a
    published suite are not the published ones."""
    model: dict[str, Any]
    """`name`, and the model's identity from the manifest."""
    max_turns: int
    """Largest turn limit of the families."""
    turn_limits: dict[str, int] | None = None
    """Family -> turn limit, if families differ."""
    scores: dict[str, FamilyScoreNames] | None = None
    """Family -> its own names of the scores, if it has own names."""
    draw: dict[str, Draw] | None = None
    """Family -> draw, if its tasks were drawn from a larger suite."""
    max_tokens: int | None = None
    """Token limit of a reply."""
    agent: str | None = None
    """Name and options of the agent; absent for `react`."""
    protocol: str | None = None
    """Another group's protocol: its name, its wording, and the options that the user has changed."""
    protocol_number: ProtocolNumber | None = None
    """The number that this protocol reports for the run."""
    perturbation: str | None
    """Perturbation of the action surface; None: the environments' own words."""
    samples: Count
    """Number of attempts at each task."""
    families: dict[str, FamilyRow]
    """Family -> its results."""
    held_out: HeldOut | None
    """None unless every held-out task was played."""
    held_out_estimate: Estimate | None = None
    """With `--subset`: the estimate of the whole held-out score, after every task of the subset was played."""
    pooled: Scores | None = None
    """Rates over all tasks of the run, with families as strata. Present only if the held-out score is withheld, the run
    has several families, and every episode was played."""
    held_out_withheld: str | None
    """Reason why there is no held-out score."""
    turns: Count
    """Number of turns played."""
    format_error_turns: Count
    """Number of turns with a format error."""
    format_error_kinds: dict[str, Count] | None = None
    """Kind of format error -> number of turns that have it; a turn can have several kinds."""
    first_tasks_only: int | None = None
    """`--limit`: number of first tasks that are played in each family."""
    sample: int | None = None
    """`--draw`: number of tasks that are drawn in each family with `sample_seed`."""
    sample_seed: int | None = None
    """Seed of the draw in `sample`."""
    subset: int | None = None
    """`--subset`: number of tasks that represent the whole held-out score."""
    repeat_check: RepeatCheck | None = None
    """None without `--repeat-check`."""
    tells_stop: bool | None = None
    """Whether every server reported which stop sequence ended a reply."""
    trimmed_episodes: Count
    """Number of episodes that became longer than the context, so that old turns were dropped."""
    cut_from: Count | None = None
    """Earliest turn at which a server had dropped an episode's beginning without an error."""
    context_full_episodes: Count | None = None
    """Number of episodes that ended because the context was full."""
    content_filter_episodes: Count | None = None
    """Number of episodes that ended because the server's content filter withheld a reply."""
    simulator_halted_episodes: Count | None = None
    """Number of episodes that ended because their last action halted the simulator every time."""
    halting_families: list[str] | None = None
    """Families in which the simulator halted in each of several episodes: the environment is broken, not the model."""
    reasoning_truncated_turns: Count | None = None
    """Number of turns that were cut off inside their reasoning."""
    tokens: TokenCounts
    """Tokens of finished episodes."""


class Timing(Stored):
    """Measurements of the last start that played an episode; they cannot be computed from the episodes."""

    wall_s: float | None = None
    """Wall time of this start."""
    sessions: int | None = None
    """Number of starts up to this one."""
    efficiency: float | None = None
    """Efficiency of this start, as in `performance`."""
    performance: Performance | None = None
    """Use of time in this start."""
    stopped: str | None = None
    """Reason why the run ended before every episode was tried."""

    def with_end(self, stopped: str | None) -> Timing:
        """Add the reason why this start ended early."""
        kept = {name: value for name, value in self.list_given_fields().items() if name != "stopped"}
        return Timing(**kept | ({} if stopped is None else {"stopped": stopped}))


class Summary(Timing, RunScores):
    """Content of `summary.json`."""

    format_trouble: ReplyTrouble | None = None
    """Present if nearly every reply has a format error."""
    refused_actions: ReplyTrouble | None = None
    """Present if the environment refuses nearly every action; `causes` lists the most frequent ones."""
    template_tokens: ReplyTrouble | None = None
    """Present if the server leaves tokens of the chat template in its replies."""
    find_unknown_marks: ReplyTrouble | None = None
    """Present if replies have an action inside tags with unknown names, which count as reasoning; `causes` lists the
    tags."""
    outside: OutsideAgent | None = None
    """Facts about external agents."""
    made_from: str | None = None
    """SHA-256 of the run's manifest and episodes and of the summary's other keys."""

    @property
    def is_complete(self) -> bool:
        """Whether every episode that the run selected was played."""
        return all(row.episodes == row.episodes_selected for row in self.families.values())

    @property
    def agent_always_exits(self) -> bool:
        """Whether the process of `--agent-command` ended early in every episode."""
        exited = self.outside.stopped.get("exited", 0) if self.outside else 0
        return 0 < exited == sum(row.episodes for row in self.families.values())
