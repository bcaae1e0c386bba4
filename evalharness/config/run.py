"""A run's configuration: its parts, the conflicts between them, and the values derived from them."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from evalharness.agents.program import OF_PROGRAMS
from evalharness.base.errors import UserError, nearest
from evalharness.base.paths import folder_name
from evalharness.base.settings import openai_hint, read_config
from evalharness.config.agent import AgentConfig
from evalharness.config.execution import ExecutionConfig
from evalharness.config.limits import LimitsConfig
from evalharness.config.option import ConfigPart, option_of, problems
from evalharness.config.outside import OutsideConfig
from evalharness.config.policy import EXTERNAL, PolicyConfig
from evalharness.config.protocol import apply_protocol, find_changed_options, require_texts
from evalharness.config.resolved import format_config
from evalharness.config.selection import SelectionConfig
from evalharness.envs.base import MAX_TURNS
from evalharness.protocol.prompt import Adaptation

EXTERNAL_AGENT = "external"
PARTS: Mapping[str, type[ConfigPart]] = {
    "policy": PolicyConfig,
    "selection": SelectionConfig,
    "agent": AgentConfig,
    "limits": LimitsConfig,
    "outside": OutsideConfig,
    "execution": ExecutionConfig,
}
OPTIONS: Mapping[str, FieldInfo] = {
    name: info for part in PARTS.values() for name, info in part.model_fields.items()
}
"""Name in flags and YAML files -> option. No name occurs in two parts."""


@dataclass(frozen=True)
class RunConfig:
    """The configuration of a run. Make it with `RunConfig.of`, which raises UserError for conflicting options."""

    policy: PolicyConfig
    selection: SelectionConfig
    agent: AgentConfig
    limits: LimitsConfig
    outside: OutsideConfig
    execution: ExecutionConfig

    def __post_init__(self) -> None:
        if self.policy.is_external != (self.agent.chosen.name == EXTERNAL_AGENT):
            raise UserError("give --agent external --agent-option name=NAME, and no --model")
        require_texts(self.agent.loaded_protocol, own_words=self.agent.own_words)
        if self.outside.agent_command is not None and not self.policy.is_external:
            raise UserError("--agent-command is for --agent external")
        if self.policy.is_scripted and not (self.policy.is_external or self.agent.chosen.is_react):
            raise UserError(
                f"--agent {self.agent.chosen.name}: {self.policy.model} is not a model and reads no prompt"
            )

    @classmethod
    def of(cls, **options: Any) -> RunConfig:
        """Make a configuration from options. Raises UserError that names each wrong option."""
        if unknown := options.keys() - OPTIONS.keys():
            raise UserError(
                "; ".join(
                    f"no such option {name!r}{nearest(name, sorted(OPTIONS))}" for name in sorted(unknown)
                )
            )
        options = apply_protocol(_set_model_of_external_agent(options))
        parts: dict[str, Any] = {}
        wrong: list[str] = []
        for name, part in PARTS.items():
            try:
                parts[name] = part.model_validate(
                    {k: v for k, v in options.items() if k in part.model_fields}
                )
            except ValidationError as error:
                wrong += problems(error)
        if wrong:
            raise UserError("; ".join(wrong))
        return cls(**parts)

    def with_options(self, **options: Any) -> RunConfig:
        """Return the configuration with these options replaced. The options are not validated."""
        parts = {
            name: getattr(self, name).model_copy(update=own)
            for name, part in PARTS.items()
            if (own := {key: value for key, value in options.items() if key in part.model_fields})
        }
        return replace(self, **parts)

    def _parts(self) -> Iterator[ConfigPart]:
        return (getattr(self, each.name) for each in fields(self))

    def options(self) -> dict[str, Any]:
        return {name: value for part in self._parts() for name, value in part.model_dump(mode="json").items()}

    def to_yaml(self) -> str:
        """Return the text for `config.yaml` in the run's folder."""
        return format_config(self.options(), self.policy)

    @property
    def adaptation(self) -> Adaptation:
        """The run's changes to the prompt files. A scripted policy reads no prompt, so it has no changes."""
        return (
            Adaptation()
            if self.policy.is_scripted
            else Adaptation(self.agent.system, self.agent.shots, self.agent.texts)
        )

    def identity(self) -> dict[str, Any]:
        """Return the options that results depend on, as JSON data: a run continues only with the same options."""
        policy = self.policy
        data = self.options()
        for name, info in OPTIONS.items():
            option = option_of(info)
            unset = option.later and data[name] == info.get_default(call_default_factory=True)
            if option.operational or option.by_content or (option.model_only and policy.is_scripted) or unset:
                del data[name]
            elif option.stored:
                data[option.stored] = data.pop(name)
        data.pop("own_words", None)  # `_protocol_identity` contains it
        # A family can have a smaller limit; the manifest stores it as `turn_limits`.
        data["max_turns"] = self.agent.max_turns or MAX_TURNS
        if self.selection.questions is None:
            del data["questions"]
        if not policy.is_scripted:
            data |= policy.sampling_fields() | self.agent.agent_identity() | self._protocol_identity()
        if policy.is_external:
            data["agent"] = {**self.agent.chosen.identity(), **self.outside.program_identity()}
        if policy.is_endpoint:
            # An endpoint's URL does not identify a model, but the server's description of the model does (served.py).
            data["model"] = "endpoint"
        return data

    def _protocol_identity(self) -> dict[str, Any]:
        """Return the protocol's name, content hash and changed options; empty for the default protocol."""
        if (protocol := self.agent.loaded_protocol) is None:
            return {}
        facts = {
            "name": protocol.name,
            "sha256": protocol.sha256,
            "texts": self.agent.texts,
            "own_words": protocol.texts is not None and self.agent.own_words,
            "score": protocol.score,
            "draw": None if protocol.draw is None else protocol.draw.games,
            "changed": find_changed_options(protocol, self.options()),
        }
        return {"protocol": {name: value for name, value in facts.items() if value not in (None, False, {})}}

    @property
    def repeat_turns(self) -> int:
        """Return how many turns to ask again at the end (`--repeat-check`); 0 if replies are not greedy."""
        greedy = not self.policy.is_scripted and self.policy.sampling_fields()["temperature"] == 0
        return self.execution.repeat_check if greedy else 0

    def find_probable_mistakes(self) -> list[str]:
        """Return a line for each option that is allowed but probably a mistake."""
        policy, samples = self.policy, self.selection.samples
        alike, lines = policy.model == "oracle" or not policy.is_scripted, []
        if samples > 1 and policy.temperature == 0 and alike:
            lines.append(
                f"--samples {samples} at temperature 0: greedy repeats are nearly identical; for different attempts "
                "give --temperature 1"
            )
        if self.execution.repeat_check and not self.repeat_turns:
            why = "no server answers" if policy.is_scripted else "replies are not greedy (--temperature 0)"
            lines.append(f"--repeat-check: no turn is asked again, because {why}")
        return lines

    def folder(self, address: str | None = None) -> Path:
        """Return the run's folder: the same options give the same folder, so the same command continues the run.

        `address` as in `models.opened.Prepared`: the endpoint's URL if nothing else distinguishes models.
        """
        if self.execution.output is not None:
            return self.execution.output
        name = folder_name(self.policy.display_name, "model")
        endpoint = address if self.policy.is_endpoint else self.policy.model
        # Without an option, a family's own limit can be below 30. So an explicit 30 needs another folder.
        asked = {"asked_turns": MAX_TURNS} if self.agent.max_turns == MAX_TURNS else {}
        identity = self.identity()
        if (
            "agent" in identity
        ):  # omit the program's hash: the same folder reports that the program has changed
            identity["agent"] = {k: v for k, v in identity["agent"].items() if k not in OF_PROGRAMS}
        key = json.dumps({**identity, "endpoint": endpoint, **asked}, sort_keys=True)
        if self.agent.loaded_protocol is not None and not self.policy.is_scripted:
            name += "-" + folder_name(self.agent.loaded_protocol.name, "protocol")
        elif self.agent.agent is not None and not self.policy.is_external:
            name += "-" + folder_name(self.agent.chosen.name, "agent")
        if self.agent.perturb is not None:
            name += "-" + re.sub(r"[^A-Za-z0-9+_-]+", "-", self.agent.perturb)[:40]
        return (
            Path("results") / f"{name}-{self.selection.suite}-{hashlib.sha256(key.encode()).hexdigest()[:8]}"
        )


_NEW_NAMES = {"sample": "draw", "attempts": "tries"}


def rename_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Replace old names of options in a run folder. Manifests keep an option's first name, so that identities and
    folder names stay the same."""
    return {_NEW_NAMES.get(name, name): value for name, value in options.items()}


def _set_model_of_external_agent(options: dict[str, Any]) -> dict[str, Any]:
    """Use the name of the external agent as the model's name: the agent chooses its model itself."""
    if options.get("agent") != EXTERNAL_AGENT:
        return options
    given = options.get("agent_option") or {}
    name = given.get("name") if isinstance(given, Mapping) else None
    if name is None:
        raise UserError("--agent external needs a name for its tables: --agent-option name=NAME")
    return {"model": f"{EXTERNAL}{name}"} | options


def make_config(flags: dict[str, Any], config_file: Path | None = None) -> RunConfig:
    """Make a configuration. Flags override the file; the file overrides the protocol. Raises UserError."""
    given = options_in(config_file)
    typed = {key: value for key, value in flags.items() if value is not None}
    if config_file is not None:
        _refuse_code(config_file, {key: value for key, value in given.items() if key not in typed})
    given |= typed
    values = apply_protocol(given)
    if values.get("agent") == EXTERNAL_AGENT and flags.get("model") is None:
        values.pop("model", None)  # the file's model has no meaning for an external agent
    elif "model" not in values:
        raise UserError(
            "no model: give --model DIR, --model http://host:port/v1, --model demo or --model oracle"
            + openai_hint()
        )
    return RunConfig.of(**values)


_PROGRAMS = ("agent_command", "vllm")
"""Options that name a program to start."""


def _refuse_code(path: Path, given: Mapping[str, Any]) -> None:
    """Raise UserError if a configuration file names code: another person may have written the file. Arguments of vLLM,
    which can name a plugin, are refused only in the file of a run folder."""
    names = [name for name in _PROGRAMS if given.get(name)]
    if ":" in str(given.get("agent") or ""):
        names.append("agent")
    if _is_in_run_folder(path) and given.get("vllm_args"):
        names.append("vllm_args")
    for name in names:
        value = given[name] if isinstance(given[name], str) else shlex.join(map(str, given[name]))
        raise UserError(
            f"{path}, {name}: a file may not choose which code is run; if you trust it, type "
            f"--{name.replace('_', '-')} {shlex.quote(value)}"
        )


def _is_in_run_folder(path: Path) -> bool:
    return (path.parent / "manifest.json").exists()


def options_in(path: Path | None) -> dict[str, Any]:
    """Return the options in a configuration file; a run folder's file may use old names."""
    if path is None:
        return {}
    given = read_config(path)
    return rename_options(given) if _is_in_run_folder(path) else given
