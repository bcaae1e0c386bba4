"""A run's configuration: options that fit together, and what follows from them."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, model_validator

from envs.base import MAX_TURNS, EnvSpec
from evalharness.config.option import option_of
from evalharness.config.options import RunOptions
from evalharness.config.values import SAMPLING
from evalharness.paths import folder_name
from evalharness.protocol.prompt import Adaptation

SCRIPTED = ("oracle", "random", "reference")


class RunConfig(RunOptions):
    """Raises ValidationError for options that do not fit together."""

    # The fields have theirs already; looking for them once more costs every command a twentieth of a second.
    model_config = ConfigDict(use_attribute_docstrings=False)

    @model_validator(mode="after")
    def _only_endpoints_come_in_numbers(self) -> RunConfig:
        if self.more_endpoints:
            for model in (self.model, *self.more_endpoints):
                if not model.startswith(("http://", "https://")):
                    raise ValueError(
                        f"{model} is no endpoint: --model may be given several times only for endpoints "
                        "(http://host:port/v1); for several servers of one checkpoint use --replicas"
                    )
        if (self.lora or self.lora_serve) and (self.is_endpoint or self.is_scripted):
            raise ValueError(
                "--lora is for a vLLM that evalharness starts; an endpoint serves an adapter under a name of its own, "
                "which is then the --model-name"
            )
        if self.deterministic and (self.is_endpoint or self.is_scripted):
            raise ValueError(
                "--deterministic is for a vLLM that evalharness starts; start your own with VLLM_BATCH_INVARIANT=1"
            )
        if self.cost_limit is not None and self.prices is None:
            raise ValueError("--cost-limit needs --prices FILE, which says what tokens cost")
        if self.replicas > 1 and (self.is_endpoint or self.is_scripted):
            raise ValueError(
                "--replicas is for a vLLM that evalharness starts; give --model several times for endpoints"
            )
        return self

    @model_validator(mode="after")
    def _what_a_model_is_given_fits_it(self) -> RunConfig:
        if self.acts_by_tools and self.is_scripted:
            raise ValueError(f"--action-interface tools: {self.model} is no model and calls no tools")
        if self.chat_template is not None and self.is_endpoint:
            raise ValueError(
                "--chat-template is for a vLLM that evalharness starts; start the endpoint's server with it: "
                f"vllm serve ... --chat-template {self.chat_template}"
            )
        if self.chat_template is not None and self.cluster is not None:
            raise ValueError(
                "--chat-template cannot be given with --cluster: its nodes may not have the file"
            )
        return self

    @property
    def acts_by_tools(self) -> bool:
        return self.action_interface == "tools"

    @property
    def adaptation(self) -> Adaptation:
        """What the run changes about the prompt files; a script reads no prompt."""
        return Adaptation() if self.is_scripted else Adaptation(self.system, self.shots)

    @property
    def extra_fields(self) -> dict[str, Any]:
        """What every request has beside our own fields."""
        found: dict[str, Any] = json.loads(self.extra_body or "{}")
        return found

    @property
    def template_kwargs(self) -> dict[str, Any]:
        """What a request hands to the chat template."""
        found: dict[str, Any] = json.loads(self.chat_template_kwargs or "{}")
        return found

    def sampling_fields(self) -> dict[str, Any]:
        """How replies are drawn, token limit and seed aside; None: left to the model's own recommendation."""
        left_open = set(SAMPLING) - self.model_fields_set if self.sampling == "model" else set()
        return {name: None if name in left_open else getattr(self, name) for name in SAMPLING}

    def identity(self) -> dict[str, Any]:
        """The part of the configuration that results depend on, as JSON data."""
        options = {name: option_of(field) for name, field in type(self).model_fields.items()}
        elsewhere = {
            name
            for name, option in options.items()
            if option.operational or option.by_content or (option.model_only and self.is_scripted)
        }
        data: dict[str, Any] = self.model_dump(mode="json", exclude=elsewhere)
        data["max_turns"] = self.max_turns or MAX_TURNS  # less is in the manifest's `turn_limits`
        if self.questions is None:
            del data["questions"]
        if not self.is_scripted:
            data |= self.sampling_fields()
        for name, field in type(self).model_fields.items():
            if option_of(field).later and getattr(self, name) == field.get_default(call_default_factory=True):
                data.pop(name, None)
        if self.is_endpoint:
            # A server that comes back on another port is the same model: what it says of itself counts (served.py).
            data["model"] = "endpoint"
        return data

    def turn_limit(self, spec: EnvSpec) -> int:
        """Turns of an episode of that family: what the user says, else the family's own limit."""
        return self.max_turns or min(spec.max_turns, MAX_TURNS)

    @property
    def is_endpoint(self) -> bool:
        return self.model.startswith(("http://", "https://"))

    @property
    def is_scripted(self) -> bool:
        """Answers without a model: only the environments take time."""
        return self.model in SCRIPTED or self.model.startswith("replay:")

    def doubts(self) -> list[str]:
        """What is allowed and hardly meant, a line each."""
        alike = self.model == "oracle" or not self.is_scripted
        if self.samples > 1 and self.temperature == 0 and alike:
            return [
                f"--samples {self.samples} at temperature 0 plays every task {self.samples} times alike, but for what "
                "the server itself does not repeat; for different attempts give --temperature 1"
            ]
        return []

    @property
    def endpoints(self) -> tuple[str, ...]:
        return (self.model, *self.more_endpoints) if self.is_endpoint else ()

    @property
    def display_name(self) -> str:
        """What tables call the model."""
        if self.model_name or self.is_endpoint:
            return self.model_name or self.model
        base = Path(self.model).name or self.model
        return f"{base}:{self.lora.name}" if self.lora else base

    def folder(self, address: str | None = None) -> Path:
        """Where the run goes: the same options give the same folder, so the same command continues.

        `address` as in `policy.opened.Prepared`: an endpoint's URL, only where nothing else tells models apart.
        """
        if self.output is not None:
            return self.output
        name = folder_name(self.display_name, "model")
        endpoint = address if self.is_endpoint else self.model
        # A limit of 30 that was asked for is another one than none where a family has less of its own.
        asked = {"asked_turns": MAX_TURNS} if self.max_turns == MAX_TURNS else {}
        key = json.dumps({**self.identity(), "endpoint": endpoint, **asked}, sort_keys=True)
        if self.perturb is not None:
            name += "-" + re.sub(r"[^A-Za-z0-9+_-]+", "-", self.perturb)[:40]
        return Path("results") / f"{name}-{self.suite}-{hashlib.sha256(key.encode()).hexdigest()[:8]}"
