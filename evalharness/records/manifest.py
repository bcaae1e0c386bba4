"""Define `manifest.json`: the identity of a run, and its starts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from evalharness.agents.registry import ChosenAgent, find_agent, find_recorded_agent
from evalharness.config.execution import RUN_NAME
from evalharness.config.values import Samples, SuiteSeed, Turns
from evalharness.protocol.perturbation_names import OwnPerturbation, is_file, remember
from evalharness.records.stored import SCHEMA, Count, Counts, Limit, Stored


class AgentIdentity(Stored):
    """Identity of the agent."""

    name: str
    """Name of the agent, as defined in its class."""
    version: int
    """Version of the agent, as defined in its class."""
    options: dict[str, Any]
    """All options of the agent, including defaults."""
    code_sha256: str | None = None
    """SHA-256 of the agent's program: the file or package of its class, and all imported code except installed
    packages. None for the harness's own agents."""
    command_sha256: dict[str, str] | None = None
    """Word of `--agent-command` -> SHA-256 of the file, folder or module that it names, including its imports."""
    not_checked: list[str] | None = None
    """Programs and files without a hash; their changes are not detected."""


class ProtocolIdentity(Stored):
    """Identity of another group's protocol."""

    name: str
    """Name of the protocol, as in its file."""
    sha256: str
    """SHA-256 of the protocol's file."""
    texts: str | None = None
    """Protocol whose original prompt texts were used; the hash of the prompts includes these texts."""
    own_words: bool = False
    """Whether the run used the harness's wording of the prompts instead of the authors' texts."""
    score: Literal["success", "progress", "none"]
    """The rate that the protocol reports: `success`, `progress` or `none`."""
    draw: Limit | None = None
    """Number of games that the protocol draws with replacement."""
    changed: dict[str, Any] = Field(default={})
    """Option that the user has changed -> its value in the protocol."""


class RunOptions(Stored):
    """The options that results depend on. Names are those of `config.yaml`, except that `draw` is `sample` here. The
    manifest can contain further options, which this class keeps."""

    suite_seed: SuiteSeed
    """Seed of an open suite; 0 is the suite that comes with the harness."""
    samples: Samples
    """Number of attempts at each task."""
    max_turns: Turns
    """Turn limit of an episode; families with a smaller limit are in `turn_limits`."""
    max_tokens: int | None = None
    """Token limit of a reply; absent for a script."""
    temperature: Annotated[float, Field(ge=0)] | None
    """None: the temperature that the model recommends."""
    seed: Annotated[int, Field(ge=0)] | None = None
    """Seed of sampling and of random choices."""
    perturb: str | None = None
    """Perturbation of the action surface; for a perturbation from a file, `NAME@` and the file's hash."""
    own_perturbations: dict[str, OwnPerturbation] | None = None
    """Name -> definition of a perturbation from a file."""
    action_interface: Literal["react", "tools"] | None = None
    """`tools`: actions are tool calls. `react` or absent: actions are lines of text."""
    protocol: ProtocolIdentity | None = None
    """Another group's protocol; absent for the harness's own protocol."""
    agent: AgentIdentity | None = None
    """The agent; absent for `react` and `tools` without options."""
    limit: int | None = None
    """Number of first tasks that are played in each family."""
    sample: int | None = None
    """`--draw`: number of tasks that are drawn in each family with the suite's seed."""
    subset: int | None = None
    """`--subset`: number of tasks from which the whole held-out score is estimated."""
    tasks: str | None = None
    """Tasks that the user selected."""
    model: str | None = None
    """Path or name of the model; `endpoint` for every server that the user named."""
    lora: str | None = None
    """Path or name of the LoRA adapter."""
    engine: Literal["stock"] | None = None
    """`stock`: TextWorld simulated ALFWorld, and pddlgym simulated PDDL. Absent: the harness's own simulators."""
    system: str | None = None
    """System message that replaced the one of the prompt files."""
    shots: int | None = None
    """Number of example episodes in the prompt (few-shot)."""

    @model_validator(mode="after")
    def _has_own_perturbations(self) -> RunOptions:
        if any(map(is_file, (self.perturb or "").split("+"))):
            raise ValueError("perturb: it names a file")
        remember(self.own_perturbations or {})
        return self

    @property
    def agent_name(self) -> str:
        return self.agent.name if self.agent is not None else self.action_interface or "react"

    @property
    def chosen_agent(self) -> ChosenAgent | None:
        """The run's agent; None if this agent with the same version and code is not installed."""
        if self.agent is None:
            return find_agent(self.agent_name)
        return find_recorded_agent(
            self.agent.name, self.agent.version, self.agent.options, self.agent.code_sha256
        )

    @property
    def protocol_text(self) -> str | None:
        """Name, wording and changed options of the protocol, for tables; None for the harness's own protocol."""
        if (protocol := self.protocol) is None:
            return None
        whole = self.to_json()
        options = {
            **whole,
            **{f"agent_option.{k}": v for k, v in (whole.get("agent") or {}).get("options", {}).items()},
        }
        options["agent"] = self.agent_name
        changed = [f"{name}={options.get(name)}, not {value}" for name, value in protocol.changed.items()]
        marks = [*(["our wording"] if protocol.own_words else []), *changed]
        return protocol.name + (f" ({'; '.join(marks)})" if marks else "")

    @property
    def played_as(self) -> str:
        """Name of the protocol, or of the agent if the run has no protocol; for tables of several runs."""
        return self.agent_text if (protocol := self.protocol_text) is None else f"protocol {protocol}"

    @property
    def agent_text(self) -> str:
        """Name and options of the agent, for tables."""
        options = self.agent.options if self.agent is not None else {}
        listed = ", ".join(f"{name}={value}" for name, value in options.items())
        return f"{self.agent_name} ({listed})" if listed else self.agent_name


class Identity(Stored):
    """Everything that results depend on. A run continues only with an equal identity; it may add samples or tasks."""

    config: RunOptions
    """The options that results depend on."""
    model: dict[str, Any]
    """The model: `kind` (`vllm`, `endpoint`, `scripted`, `external`), and facts that identify a model of that kind."""
    tasks_sha256: dict[str, str]
    """Family -> SHA-256 of its tasks."""
    prompts_sha256: dict[str, str]
    """Family -> SHA-256 of its prompt file."""
    turn_limits: dict[str, Turns] = Field(default={})
    """Family -> turn limit, for families with a smaller limit than `config.max_turns`."""


class Operation(Stored):
    """Settings of one start of a run that do not change results."""

    concurrency: int | None = None
    """Maximum number of concurrent episodes, if the user set it."""
    workers: dict[str, int] = Field(default={})
    """Family -> number of environment processes, if the user set it."""
    endpoints: Annotated[tuple[str, ...], Field(strict=False)] = ()
    """Addresses of model servers that the user named."""
    replicas: int | None = None
    """Number of model servers that the run started."""


class Policy(Stored):
    """Facts about the model that are known after its first reply; for vLLM also version, command line and devices."""

    answered_by: str | None = None
    """Model name in an endpoint's first reply; later replies with another name are refused."""
    system_fingerprint: list[str] | None = None
    """Fingerprints in the servers' first replies; if they are from vLLM, replies with another one are refused."""
    weight_version: str | None = None
    """Weight version in the first reply (SGLang); later replies with another version are refused."""
    requests: list[dict[str, Any]] | None = None
    """Each distinct form of the requests: its sampling fields, and whether the server reports which stop sequence ended
    a reply (`tells_stop`)."""


class RepeatCheck(Stored):
    """Result of `--repeat-check`: requests of some turns were repeated at the end of the run, one at a time."""

    asked: Count
    """Number of turns whose request was repeated."""
    differed: Count
    """Number of these turns whose greedy reply differed from the recorded reply."""


class SessionRecord(Stored):
    """One start of the run."""

    started: Annotated[float, Field(ge=0, le=1e11)]
    """Unix time of the start."""
    evalharness: str
    """Version of the harness."""
    git: str | None = None
    """Git revision of the harness, with `+changes` if files had changed; None outside a checkout."""
    python: str | None = None
    """Version of Python."""
    platform: str | None = None
    """System and processor, for example `linux x86_64`."""
    packages: dict[str, str | None] | None = None
    """Package -> version; None if it was not installed."""
    operation: Operation = Operation()
    """Settings that results do not depend on."""
    label: dict[str, str] | None = None
    """The user's labels (`--label`)."""
    policy: Policy | None = None
    """Facts about the model. None if no episode was played, or if a policy without a model played."""
    noticed: list[str] = Field(default=[])
    """Warnings about the scores that appeared while the run was played."""
    repeat_check: RepeatCheck | None = None
    """None without `--repeat-check`."""

    @property
    def requests(self) -> list[dict[str, Any]]:
        """Each distinct form of the requests of this start."""
        return (self.policy and self.policy.requests) or []


class Draw(Stored):
    """A random draw of tasks from a larger suite."""

    tasks: Count
    """Number of drawn tasks."""
    seed: int
    """Seed of the draw."""


class FamilyScoreNames(Stored):
    """A family's own names of the two rates and of its other figures."""

    success: str = "success"
    """Name of the success rate."""
    progress: str = "progress"
    """Name of the progress rate."""
    figures: dict[str, str] = Field(default={})
    """Key in `figures` of an episode -> name in tables."""


class Manifest(Stored):
    """Content of `manifest.json`."""

    schema_: int = Field(default=SCHEMA, alias="schema")
    """Version of this format."""
    digest: str
    """SHA-256 of the identity."""
    identity: Identity
    """Everything that results depend on."""
    model_name: str
    """Name of the model in tables."""
    suite: str
    """`agentboard`, `open`, or a suite that a family defines."""
    counts: Counts
    """Family -> number of tasks that the run plays."""
    expected: Counts
    """Family -> number of tasks in the whole family."""
    held_out: Counts
    """Family of the held-out score -> number of tasks in the whole family."""
    titles: dict[str, str]
    """Family -> title for people."""
    labels: dict[str, str]
    """Family -> source of its subgoal labels: `official`, `ours`, `simulator`, or several with commas."""
    sessions: Annotated[list[SessionRecord], Field(min_length=1)]
    """The starts of the run, in order of time."""
    scores: dict[str, FamilyScoreNames] = Field(default={})
    """Family -> its own names of the scores, if it has own names."""
    draw: dict[str, Draw] = Field(default={})
    """Family -> draw, if its tasks were drawn."""
    subset: Counts = Field(default={})
    """Task id of `--subset` -> number of tasks that this task represents. The order is by family, easy tasks first."""
    provenance: dict[str, dict[str, Any]] = Field(default={})
    """Family -> facts about the data that its tasks were made from."""
    model_text: bool = True
    """False if the folder contains the actions, but not the model's texts."""

    @model_validator(mode="after")
    def _is_one_run(self) -> Manifest:
        for name in ("expected", "titles", "labels"):
            described = getattr(self, name)
            for family in sorted(self.counts.keys() ^ described.keys()):
                lacks, has = (name, "counts") if family in self.counts else ("counts", name)
                raise ValueError(f"{lacks} does not name {family!r}, which {has} does")
        if sum(self.counts.values()) * self.config.samples > 10**9:
            raise ValueError("counts times identity.config.samples: more episodes than any run has")
        return self

    @property
    def config(self) -> RunOptions:
        return self.identity.config

    @property
    def options(self) -> dict[str, Any]:
        """Every option by name."""
        return self.config.to_json()

    @property
    def suite_name(self) -> str:
        """Name of the suite: `agentboard`, `open`, or `open, seed 3`."""
        return self.suite + (f", seed {self.config.suite_seed}" if self.config.suite_seed else "")

    @property
    def turn_limits(self) -> dict[str, int]:
        """Family -> turn limit, for every family that the run plays."""
        return {
            family: self.identity.turn_limits.get(family, self.config.max_turns) for family in self.counts
        }

    @property
    def user_labels(self) -> dict[str, str]:
        """The user's labels (`--label`) without the run's name. If a key was given twice, the later value counts."""
        return {key: value for key, value in self._every_label().items() if key != RUN_NAME}

    @property
    def run_name(self) -> str | None:
        """Name that the user gave to the run (`--name`)."""
        return self._every_label().get(RUN_NAME)

    @property
    def repeat_check(self) -> RepeatCheck | None:
        """Return the result of the last `--repeat-check`; None without one."""
        return next((start.repeat_check for start in reversed(self.sessions) if start.repeat_check), None)

    @property
    def display_name(self) -> str:
        """Name of the run (`--name`), or of the model if the run has no name."""
        return self.run_name or self.model_name

    def _every_label(self) -> dict[str, str]:
        return {key: value for start in self.sessions for key, value in (start.label or {}).items()}

    @property
    def tells_stop(self) -> bool:
        """Whether every server reported which stop sequence ended a reply. True if no request is recorded, for example
        if a scripted policy played."""
        return all(way.get("tells_stop", True) for start in self.sessions for way in start.requests)

    def with_model_facts(self, facts: Mapping[str, Any]) -> Manifest:
        """Return the manifest with facts about the model added to the last start."""
        *earlier, last = self.sessions
        last = last.model_copy(update={"policy": Policy.of(dict(facts))})
        return self.model_copy(update={"sessions": [*earlier, last]})
