"""`manifest.json`: what a run is, and each time that it was played."""

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
    """Which agent acted."""

    name: str
    """As its class calls itself."""
    version: int
    """What the agent's class says of itself."""
    options: dict[str, Any]
    """All of its options, those left at their defaults included."""
    code_sha256: str | None = None
    """SHA-256 of the agent's program: the file or package that holds its class, and all imported code that is not an
    installed package. None for the harness's own agents."""
    command_sha256: dict[str, str] | None = None
    """Of `--agent-command`: word -> SHA-256 of the file, folder or module that it names, with what that imports."""
    not_checked: list[str] | None = None
    """Programs and files whose changes are not noticed."""


class ProtocolIdentity(Stored):
    """Which other group's protocol was followed."""

    name: str
    """As its file says."""
    sha256: str
    """Of its file."""
    texts: str | None = None
    """The protocol whose authors' prompt texts were read; their hash is in the hash of the prompts."""
    own_words: bool = False
    """Its authors' prompt texts were replaced by our wording."""
    score: Literal["success", "progress", "none"]
    """`success`, `progress` or `none`: which rate is its own number."""
    draw: Limit | None = None
    """Games that it draws with repetition."""
    changed: dict[str, Any] = Field(default={})
    """Options that were not as it says -> what it says."""


class RunOptions(Stored):
    """The options that results depend on, by the names of `config.yaml` (its `draw` is `sample` here); those named here
    and every other one."""

    suite_seed: SuiteSeed
    """Which draw of an open suite; 0 is the one that comes with the harness."""
    samples: Samples
    """Attempts at each task."""
    max_turns: Turns
    """Turns of an episode at most; families with fewer are in `turn_limits`."""
    max_tokens: int | None = None
    """Tokens of a reply at most; not there for a script."""
    temperature: Annotated[float, Field(ge=0)] | None
    """None: the model's own recommendation."""
    seed: Annotated[int, Field(ge=0)] | None = None
    """Of sampling and of random choices."""
    perturb: str | None = None
    """The perturbation of the action surface; from a file `NAME@` and its hash."""
    own_perturbations: dict[str, OwnPerturbation] | None = None
    """Definitions of perturbations from files, by name."""
    action_interface: Literal["react", "tools"] | None = None
    """`tools`; not there, or `react`: actions are a line of text."""
    protocol: ProtocolIdentity | None = None
    """Not there: the harness's own."""
    agent: AgentIdentity | None = None
    """Of agents other than `react` and `tools` without options."""
    limit: int | None = None
    """Only so many tasks of each family, the first."""
    sample: int | None = None
    """`--draw`: only so many tasks of each family, drawn with the suite's seed."""
    subset: int | None = None
    """Only so many tasks, which stand for the whole held-out score."""
    tasks: str | None = None
    """Which tasks were asked for."""
    model: str | None = None
    """Path or name of the model; `endpoint` for every server that the user named."""
    lora: str | None = None
    """Path or name of the adapter."""
    engine: Literal["stock"] | None = None
    """`stock`: ALFWorld was played by TextWorld, PDDL by pddlgym; not there: by our engines."""
    system: str | None = None
    """The system message that replaced that of the prompt files."""
    shots: int | None = None
    """Worked examples in the prompt."""

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
        """Return the run's agent; None if exactly this agent is not installed, so its messages cannot be rebuilt."""
        if self.agent is None:
            return find_agent(self.agent_name)
        return find_recorded_agent(
            self.agent.name, self.agent.version, self.agent.options, self.agent.code_sha256
        )

    @property
    def protocol_said(self) -> str | None:
        """Return name, wording and the user's changes for tables; None for the harness's own protocol."""
        if (protocol := self.protocol) is None:
            return None
        whole = self.to_json()
        played = {
            **whole,
            **{f"agent_option.{k}": v for k, v in (whole.get("agent") or {}).get("options", {}).items()},
        }
        played["agent"] = self.agent_name
        changed = [f"{name}={played.get(name)}, not {value}" for name, value in protocol.changed.items()]
        marks = [*(["our wording"] if protocol.own_words else []), *changed]
        return protocol.name + (f" ({'; '.join(marks)})" if marks else "")

    @property
    def played_as(self) -> str:
        """Return the name in tables with other runs: the protocol, else the agent."""
        return self.agent_said if (said := self.protocol_said) is None else f"protocol {said}"

    @property
    def agent_said(self) -> str:
        """Return name and options for tables."""
        options = self.agent.options if self.agent is not None else {}
        said = ", ".join(f"{name}={value}" for name, value in options.items())
        return f"{self.agent_name} ({said})" if said else self.agent_name


class Identity(Stored):
    """All that results depend on. A run is continued only while it stays equal; only more samples and more
    tasks may join."""

    config: RunOptions
    """The options that results depend on."""
    model: dict[str, Any]
    """Which model answered: `kind` (`vllm`, `endpoint`, `scripted`, `external`), and what tells models of that kind
    apart."""
    tasks_sha256: dict[str, str]
    """Family -> SHA-256 of its tasks."""
    prompts_sha256: dict[str, str]
    """Family -> SHA-256 of its prompt file."""
    turn_limits: dict[str, Turns] = Field(default={})
    """Family -> turns of its episodes at most, of families that have fewer than `config.max_turns`."""


class Operation(Stored):
    """How a start worked; results do not depend on it."""

    concurrency: int | None = None
    """Episodes in flight at most, where the user set it."""
    workers: dict[str, int] = Field(default={})
    """Family -> processes, where the user set it."""
    endpoints: Annotated[tuple[str, ...], Field(strict=False)] = ()
    """Addresses of the model's servers that the user named."""
    replicas: int | None = None
    """Servers of the model that were started."""


class Policy(Stored):
    """What was known of the model once it answered: of a vLLM its version, command line and devices."""

    answered_by: str | None = None
    """The model that an endpoint's first reply names; replies that name another are refused."""
    system_fingerprint: list[str] | None = None
    """What the servers' first replies say of their configuration; replies with another one of vLLM are refused."""
    weight_version: str | None = None
    """What the first reply says of the weights (SGLang); replies with another one are refused."""
    requests: list[dict[str, Any]] | None = None
    """How servers were asked, each way once: sampling parameters, and whether they say what stopped a reply
    (`tells_stop`)."""


class Start(Stored):
    """One start of the run."""

    started: Annotated[float, Field(ge=0, le=1e11)]
    """Unix time."""
    evalharness: str
    """Version."""
    git: str | None = None
    """Revision of the harness, with `+changes` where its tree was not clean; None outside a checkout."""
    python: str | None = None
    """Version."""
    platform: str | None = None
    """System and processor, `linux x86_64`."""
    packages: dict[str, str | None] | None = None
    """Distribution -> version; None where it was not installed."""
    operation: Operation = Operation()
    """How it worked."""
    label: dict[str, str] | None = None
    """What the user noted (`--label`)."""
    policy: Policy | None = None
    """None: nothing was played, or a script."""
    noticed: list[str] = Field(default=[])
    """What its scores have to be read with, noticed while it played."""

    @property
    def requests(self) -> list[dict[str, Any]]:
        """Return how servers were asked."""
        return (self.policy and self.policy.requests) or []


class Draw(Stored):
    """How many tasks were drawn from a suite that has more."""

    tasks: Count
    """How many."""
    seed: int
    """Which ones."""


class FamilyScoreNames(Stored):
    """What a family's own field calls the two rates, and further figures of it."""

    success: str = "success"
    """Of the success rate."""
    progress: str = "progress"
    """Of the progress rate."""
    figures: dict[str, str] = Field(default={})
    """Key in `figures` of an episode -> what tables call it."""


class Manifest(Stored):
    """`manifest.json`."""

    schema_: int = Field(default=SCHEMA, alias="schema")
    """Version of this format."""
    digest: str
    """SHA-256 of the identity."""
    identity: Identity
    """All that results depend on."""
    model_name: str
    """What tables call the model."""
    suite: str
    """`agentboard`, `open`, or what a family names."""
    counts: Counts
    """Tasks of each family that the run plays."""
    expected: Counts
    """Tasks of each family that a run over all of it plays."""
    held_out: Counts
    """Tasks of each family of the held-out score, played or not."""
    titles: dict[str, str]
    """Family -> the name a person reads."""
    labels: dict[str, str]
    """Family -> whose subgoal labels: `official`, `ours`, `simulator`, or several with a comma."""
    sessions: Annotated[list[Start], Field(min_length=1)]
    """Each time that it was played, the first one first."""
    scores: dict[str, FamilyScoreNames] = Field(default={})
    """Of families that call their scores by names of their own."""
    draw: dict[str, Draw] = Field(default={})
    """Of families whose tasks were drawn."""
    subset: Counts = Field(default={})
    """Of `--subset`: task id -> how many tasks of its family it stands for, family by family, easy ones first."""
    provenance: dict[str, dict[str, Any]] = Field(default={})
    """Family -> facts about the data that its tasks were made of."""
    model_text: bool = True
    """False in a folder that holds the actions without what the model wrote."""

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
        """Return every option by name, to list or compare all of them."""
        return self.config.to_json()

    @property
    def suite_name(self) -> str:
        """Return `agentboard`, `open`, or `open, seed 3`."""
        return self.suite + (f", seed {self.config.suite_seed}" if self.config.suite_seed else "")

    @property
    def turn_limits(self) -> dict[str, int]:
        """Return the turn limit of every family that the run plays."""
        return {
            family: self.identity.turn_limits.get(family, self.config.max_turns) for family in self.counts
        }

    @property
    def user_labels(self) -> dict[str, str]:
        """Return the user's labels (`--label`) without the run's name; for a repeated key the last one."""
        return {key: value for key, value in self._every_label().items() if key != RUN_NAME}

    @property
    def run_name(self) -> str | None:
        """Return the name that the user gave the run (`--name`)."""
        return self._every_label().get(RUN_NAME)

    @property
    def shown_name(self) -> str:
        """Return the run's name, else the model's."""
        return self.run_name or self.model_name

    def _every_label(self) -> dict[str, str]:
        return {key: value for start in self.sessions for key, value in (start.label or {}).items()}

    @property
    def tells_stop(self) -> bool:
        """Return whether every server reported which stop sequence had ended a reply. Runs without this record count
        as yes: a script needs no stop sequence."""
        return all(way.get("tells_stop", True) for start in self.sessions for way in start.requests)

    def with_model_facts(self, facts: Mapping[str, Any]) -> Manifest:
        """Add the facts about the last start's model, which are known once it answers."""
        *earlier, last = self.sessions
        last = last.model_copy(update={"policy": Policy.of(dict(facts))})
        return self.model_copy(update={"sessions": [*earlier, last]})
