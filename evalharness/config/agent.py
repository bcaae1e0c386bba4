"""Options for the agent: prompts, wording, turns, content of the conversation."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from evalharness.agents.registry import ChosenAgent, load_agent
from evalharness.base.errors import UserError
from evalharness.base.reading import read_text
from evalharness.config.option import ConfigPart, Option
from evalharness.config.values import Turns
from evalharness.envs.base import MAX_TURNS, EnvSpec
from evalharness.protocol.perturbation_names import (
    OwnPerturbation,
    normal_name,
    read_files,
    remember,
)
from evalharness.protocol.published import DEFAULT as DEFAULT_PROTOCOL
from evalharness.protocol.published import Protocol, load_protocol


class AgentConfig(ConfigPart):
    protocol: Annotated[str | None, Option("NAME|FILE.yaml", later=True, model_only=True)] = None
    """evaluate like another research group: the protocol sets agent, turns, tasks and sampling; options that you give
    override it, and tables show them (default: agentrefine; see: evalharness data protocols list)"""
    own_words: Annotated[bool, Option(later=True, model_only=True)] = False
    """use evalharness's own prompt texts with the protocol, instead of the texts of its authors; tables show this"""
    agent: Annotated[
        str | None, Option("NAME|module:Class|FILE.py:Class", model_only=True, by_content=True)
    ] = None
    """the agent writes the model's messages and reads its replies (default: react; see: evalharness data agents)"""
    agent_option: Annotated[dict[str, Any], Option("NAME=VALUE", model_only=True, by_content=True)] = Field(
        default={}
    )
    """an option of the agent: --agent-option history=2"""
    action_interface: Annotated[Literal["react", "tools"], Option(no_flag=True, model_only=True)] = "react"
    """react: the action is a line of the reply; tools: the model calls the tool act(command)"""
    max_turns: Turns | None = None
    """maximum number of turns of an episode (default: 30, or the family's own smaller limit)"""
    perturb: Annotated[str | None, Option("NAME[+NAME]|FILE.yaml")] = None
    """change the wording of actions: P1, P1+P4, or your own file; see: evalharness data perturbations list"""
    own_perturbations: Annotated[dict[str, OwnPerturbation], Option(no_flag=True, later=True)] = Field(
        default={}
    )
    """name in `perturb` -> definition of a perturbation from a file; --perturb FILE.yaml sets it"""
    prompts: Annotated[Path | None, Option(by_content=True)] = None
    """folder with your own prompt files, FAMILY.yaml for each family (see: evalharness data prompts export)"""
    system: Annotated[str | None, Option(no_flag=True, later=True, model_only=True)] = None
    """a system message that replaces the system message of the prompt files: the text, or a file with the text"""
    shots: Annotated[int | None, Option(later=True, model_only=True)] = Field(default=None, ge=0)
    """number of worked examples in the prompt; more than 1 only if the family has more (default: the prompt file's)"""
    history_thinking: Annotated[Literal["strip", "keep"], Option(no_flag=True, model_only=True)] = "strip"
    """strip: remove a reply's reasoning from later requests; keep: leave it in the conversation"""

    @field_validator("protocol")
    @classmethod
    def _require_protocol(cls, name: str | None) -> str | None:
        """Require that the protocol exists. Replace the default protocol by None: identities of runs omit it."""
        if name is None or name == DEFAULT_PROTOCOL:
            return None
        try:
            load_protocol(name)
        except UserError as error:
            raise ValueError(str(error).removeprefix(f"--protocol {name}: ")) from None
        return name

    @field_validator("own_perturbations")
    @classmethod
    def _remember(cls, given: dict[str, OwnPerturbation]) -> dict[str, OwnPerturbation]:
        remember(given)
        return given

    @model_validator(mode="before")
    @classmethod
    def _read_perturbations(cls, given: Any) -> Any:
        """Replace each file in `perturb` by its perturbation's name; store the definition in `own_perturbations`."""
        if not isinstance(given, dict) or not (named := given.get("perturb")):
            return given
        text = "+".join(map(str, named)) if isinstance(named, list | tuple) else str(named)
        try:
            name, definitions = read_files(text)
        except UserError as error:
            raise ValueError(str(error)) from None
        known = {**(given.get("own_perturbations") or {}), **definitions}
        used = {part: known[part] for part in name.split("+") if part in known}
        return {**given, "perturb": name, "own_perturbations": used}

    @field_validator("perturb")
    @classmethod
    def _normal_perturb(cls, name: str | None) -> str | None:
        return None if name is None else normal_name(name)

    @field_validator("system", mode="before")
    @classmethod
    def _read_system(cls, given: Any) -> Any:
        """Replace the path of a file by its text, because results depend on the text."""
        if not isinstance(given, str) or "\n" in given or len(given) > 1000:
            return given
        try:
            path = Path(given).expanduser()
            return read_text(path).strip() if path.is_file() else given
        except (OSError, ValueError) as error:
            raise ValueError(f"cannot be read: {error}") from None

    @model_validator(mode="before")
    @classmethod
    def _use_older_option(cls, given: Any) -> Any:
        """Replace `agent: react` or `tools` by `action_interface`, in which the first runs stored this choice."""
        if not isinstance(given, dict) or given.get("agent") is None:
            return given
        agent, interface = given["agent"], given.get("action_interface", "react")
        if interface not in ("react", agent):
            raise ValueError(
                f"agent {agent} and action_interface {interface} contradict each other: give one"
            )
        if agent in ("react", "tools"):
            return {**given, "agent": None, "action_interface": agent}
        return given

    @model_validator(mode="after")
    def _require_agent(self) -> AgentConfig:
        try:
            load_agent(self.agent or self.action_interface, self.agent_option)
        except UserError as error:
            raise ValueError(str(error)) from None
        return self

    @cached_property
    def chosen(self) -> ChosenAgent:
        return load_agent(self.agent or self.action_interface, self.agent_option)

    @cached_property
    def loaded_protocol(self) -> Protocol | None:
        """The protocol; None for the default, agentrefine."""
        return None if self.protocol is None else load_protocol(self.protocol)

    @property
    def texts(self) -> str | None:
        """Name of the protocol whose imported prompt texts the agent reads; None if it reads evalharness's texts."""
        return None if self.loaded_protocol is None or self.own_words else self.loaded_protocol.texts

    def agent_identity(self) -> dict[str, Any]:
        """Return what identifies the agent besides `action_interface`; empty if only that option was set."""
        return {} if self.agent is None and not self.agent_option else {"agent": self.chosen.identity()}

    @property
    def keeps_thinking(self) -> bool:
        return self.history_thinking == "keep"

    def turn_limit(self, spec: EnvSpec) -> int:
        """Return the user's turn limit, otherwise the limit of the family."""
        return self.max_turns or min(spec.own.max_turns, MAX_TURNS)
