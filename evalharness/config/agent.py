"""The model's way of acting: prompts, wording, turns, content of the conversation."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from evalharness.agents.registry import ChosenAgent, agent_typed
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
    """evaluate as another group does; the protocol sets agent, turns, tasks and sampling; options override it, and
    tables name them (default: agentrefine; see: evalharness data protocols list)"""
    own_words: Annotated[bool, Option(later=True, model_only=True)] = False
    """play the protocol with our prompt texts instead of its authors'; tables say so"""
    agent: Annotated[
        str | None, Option("NAME|module:Class|FILE.py:Class", model_only=True, by_content=True)
    ] = None
    """what the model reads and how its reply is read (default: react; see: evalharness data agents)"""
    agent_option: Annotated[dict[str, Any], Option("NAME=VALUE", model_only=True, by_content=True)] = Field(
        default={}
    )
    """an option of the agent: --agent-option history=2"""
    action_interface: Annotated[Literal["react", "tools"], Option(no_flag=True, model_only=True)] = "react"
    """react: the action is a line of the reply; tools: the model calls its one tool, act(command)"""
    max_turns: Turns | None = None
    """turns of an episode (default: 30, or the family's own smaller limit)"""
    perturb: Annotated[str | None, Option("NAME[+NAME]|FILE.yaml")] = None
    """word the actions differently: P1, P1+P4, or as your file says; see: evalharness data perturbations list"""
    own_perturbations: Annotated[dict[str, OwnPerturbation], Option(no_flag=True, later=True)] = Field(
        default={}
    )
    """definitions of perturbations from files, by the names in `perturb`; --perturb FILE.yaml sets it"""
    prompts: Annotated[Path | None, Option(by_content=True)] = None
    """folder with your own prompt files, one FAMILY.yaml for each family (ours: `evalharness data prompts export`)"""
    system: Annotated[str | None, Option(no_flag=True, later=True, model_only=True)] = None
    """a system message that replaces that of the prompt files: the text, or a file that holds it"""
    shots: Annotated[int | None, Option(later=True, model_only=True)] = Field(default=None, ge=0)
    """number of worked examples in the prompt; more than 1 only if the family has more (default: as in the prompt
    file)"""
    history_thinking: Annotated[Literal["strip", "keep"], Option(no_flag=True, model_only=True)] = "strip"
    """whether a reply's reasoning stays in the conversation"""

    @field_validator("protocol")
    @classmethod
    def _there_is_such_a_protocol(cls, said: str | None) -> str | None:
        """Drop the default protocol: it sets nothing, and a run's identity does not contain it."""
        if said is None or said == DEFAULT_PROTOCOL:
            return None
        try:
            load_protocol(said)
        except UserError as error:
            raise ValueError(str(error).removeprefix(f"--protocol {said}: ")) from None
        return said

    @field_validator("own_perturbations")
    @classmethod
    def _remember(cls, given: dict[str, OwnPerturbation]) -> dict[str, OwnPerturbation]:
        remember(given)
        return given

    @model_validator(mode="before")
    @classmethod
    def _read_perturbations(cls, given: Any) -> Any:
        """Replace files in `perturb` by their names in records."""
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
    def _text_of_a_file(cls, given: Any) -> Any:
        """Read the text of a file: results depend on the text, not on its path."""
        if not isinstance(given, str) or "\n" in given or len(given) > 1000:
            return given
        try:
            path = Path(given).expanduser()
            return read_text(path).strip() if path.is_file() else given
        except (OSError, ValueError) as error:
            raise ValueError(f"cannot be read: {error}") from None

    @model_validator(mode="before")
    @classmethod
    def _one_way_of_saying_it(cls, given: Any) -> Any:
        """Map the agents `react` and `tools` to the older option that identifies their runs."""
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
    def _there_is_such_an_agent(self) -> AgentConfig:
        try:
            agent_typed(self.agent or self.action_interface, self.agent_option)
        except UserError as error:
            raise ValueError(str(error)) from None
        return self

    @cached_property
    def chosen(self) -> ChosenAgent:
        return agent_typed(self.agent or self.action_interface, self.agent_option)

    @cached_property
    def followed(self) -> Protocol | None:
        """Return the protocol; None for the default, agentrefine."""
        return None if self.protocol is None else load_protocol(self.protocol)

    @property
    def texts(self) -> str | None:
        """Return the protocol whose imported prompt texts the agent reads."""
        return None if self.followed is None or self.own_words else self.followed.texts

    def agent_identity(self) -> dict[str, Any]:
        """Return the agent's identity; empty if `action_interface` says everything."""
        return {} if self.agent is None and not self.agent_option else {"agent": self.chosen.identity()}

    @property
    def keeps_thinking(self) -> bool:
        return self.history_thinking == "keep"

    def turn_limit(self, spec: EnvSpec) -> int:
        """Return the turn limit of that family: the user's, else the family's own."""
        return self.max_turns or min(spec.own.max_turns, MAX_TURNS)
