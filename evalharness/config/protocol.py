"""The options that another group's protocol sets, and the user's changes to them (`--protocol`)."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from evalharness.agents.registry import load_agent
from evalharness.base.errors import UserError
from evalharness.config.policy import is_scripted
from evalharness.config.values import SAMPLING
from evalharness.protocol.published import DEFAULT, Protocol, load_protocol

_OF_MODELS = ("agent", "agent_option", "max_tokens", "seed", *SAMPLING)


def read_protocol_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that the protocol in `given` sets; omit those that `given` makes irrelevant."""
    protocol = given.get("protocol")
    if protocol is None or protocol == DEFAULT or not isinstance(protocol, str):
        return {}
    stated = load_protocol(protocol).run_options()
    without: set[str] = set()
    model = given.get("model")  # a list if --model was given several times
    if is_scripted(str(model[0] if isinstance(model, list) and model else model)):
        without.update(_OF_MODELS)  # a scripted policy reads no prompt and samples nothing
    if given.get("sampling") is not None:
        without.update(SAMPLING)
    interface = given.get("action_interface", "react")
    if given.get("agent", stated["agent"]) != stated["agent"] or interface != "react":
        without.update(("agent", "agent_option"))
    if ":" in stated["agent"] and "agent" not in given and "agent" not in without:
        # A protocol file can come from another person, who must not choose code that runs here.
        raise UserError(
            f"--protocol {protocol}: its agent, {stated['agent']}, is code that is not installed, and a protocol file "
            f"may not load it; if you trust it, also type --agent {shlex.quote(stated['agent'])}"
        )
    return {name: value for name, value in stated.items() if name not in without}


def apply_protocol(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the protocol's options, overridden by `given`; the agent's options are overridden one by one."""
    stated = read_protocol_options(given)
    options = {**stated, **given}
    if "agent_option" in stated and isinstance(given.get("agent_option", {}), Mapping):
        options["agent_option"] = {**stated["agent_option"], **given.get("agent_option", {})}
    return options


def find_changed_options(protocol: Protocol, options: Mapping[str, Any]) -> dict[str, Any]:
    """Map each option whose value differs from the protocol's value to the protocol's value."""
    stated = protocol.run_options()
    agent_options = stated.pop("agent_option")
    agent = options.get("agent") or options.get("action_interface")
    changed = {
        name: value
        for name, value in stated.items()
        if name not in ("agent", "tasks") and options[name] != value
    }
    if agent != stated["agent"]:
        changed["agent"] = stated["agent"]
    else:
        # `load_agent` may load code here: `read_protocol_options` required that the user typed the agent's name.
        expected = load_agent(agent, agent_options).options.model_dump(mode="json")
        played = load_agent(agent, options["agent_option"]).options.model_dump(mode="json")
        for name, value in expected.items():
            if played[name] != value:
                changed[f"agent_option.{name}"] = value
    return changed


def require_texts(protocol: Protocol | None, *, own_words: bool) -> None:
    """Raise UserError for `--own-words` if the protocol uses no prompt texts of its authors."""
    if own_words and (protocol is None or protocol.texts is None):
        raise UserError(
            "--own-words needs a --protocol with prompt texts of its authors (see: evalharness data protocols list)"
        )
