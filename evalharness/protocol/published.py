"""Other groups' protocols: how they ask, read, sample, score and average, as a file of `prompts/protocols/` says."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, model_validator

from evalharness.base.errors import UserError, nearest
from evalharness.base.paths import prompts_folder
from evalharness.base.yaml_lines import load_model
from evalharness.protocol.texts import NAME

DEFAULT = "agentrefine"
"""What a run without `--protocol` follows."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class Sampling(_Strict):
    """How replies are drawn; what is absent is the run's default."""

    temperature: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    top_p: float | None = Field(default=None, gt=0, le=1)
    top_k: int | None = Field(default=None, ge=-1)
    max_tokens: int | None = Field(default=None, ge=1)
    seed: int | None = Field(default=None, ge=0)


class RepeatedDraw(_Strict):
    """Games that a protocol draws with repetition."""

    games: int = Field(ge=1, le=1_000_000)


class TextSource(_Strict):
    """Where a text stands in a checkout: in one of the ways below."""

    file: str
    constant: str | None = None
    """Name that it is assigned to."""
    opening: int | None = None
    """Number of a message of `conversation_start`, or of an entry of `conversation_start_dict`."""
    entry: str = "REACT"
    """That entry."""
    worded_by: str | None = None
    """The file with `format_function_call_prompt`, which an opening calls with the list of its functions."""
    functions: bool = False
    """All functions that a model may call, each with its words, instead of a text."""
    optional: bool = False
    """Left out where its file is not there."""
    containing: str | None = None
    """Words of a text that is assigned to nothing."""
    slots: list[str] = []
    """The names in braces that it has to have."""


class FamilyImport(_Strict):
    """A family's texts in a checkout."""

    texts: dict[str, TextSource] = {}
    """Name, with a dot between a group and a name of it -> where it stands."""
    json_: str | None = Field(default=None, alias="json")
    """A file whose prompts (`system_msg`, `instruction`, `examples`, maybe by kind) are taken whole."""
    facts: dict[str, str | bool] = {}
    """What the agent has to know beside the texts."""


class Imports(_Strict):
    """What `data protocols import` reads."""

    repository: str
    families: dict[str, FamilyImport]


class Protocol(_Strict):
    """A file of `prompts/protocols/`, or one of the user's own."""

    _sha256: str = PrivateAttr("")

    name: str = Field(pattern=f"^{NAME}$")
    title: str
    source: str = ""
    licence: str = ""
    """Of its prompt texts."""
    texts: str | None = None
    """The protocol whose texts the user imports; None: the agent reads our wording."""
    agent: str
    options: dict[str, Any] = {}
    """Of the agent."""
    turns: int = Field(ge=1, le=10_000)
    suite: str | None = None
    tasks: str | None = None
    sampling: Sampling = Sampling()
    score: Literal["success", "progress", "none"] = "success"
    """Which rate is the protocol's own number; none: no rate of ours is."""
    averaging: str = ""
    """How it averages, for people to read; tables average over games, each once."""
    draw: RepeatedDraw | None = None
    imports: Imports | None = None
    oddities: list[str] = []
    """What it does that nobody would expect, done here, too."""
    differs: list[str] = []
    """What is not as there."""

    @model_validator(mode="after")
    def _is_possible(self) -> Protocol:
        if (self.tasks or "").startswith("@"):
            raise ValueError("tasks: a protocol names tasks, and no file with a list of them")
        if self.draw is not None and self.score != "success":
            raise ValueError("draw: only a protocol whose score is success draws games here")
        return self

    @property
    def sha256(self) -> str:
        """Of the file."""
        return self._sha256

    def run_options(self) -> dict[str, Any]:
        """The options of a run that it stands for, by their names."""
        stated = {
            "agent": self.agent,
            "agent_option": dict(self.options),
            "max_turns": self.turns,
            "suite": self.suite,
            "tasks": self.tasks,
            **self.sampling.model_dump(),
        }
        return {name: value for name, value in stated.items() if value is not None}


def protocol_names() -> list[str]:
    """Those that ship, the default first."""
    found = sorted(path.stem for path in (prompts_folder() / "protocols").glob("*.yaml"))
    return sorted(found, key=lambda name: name != DEFAULT)


def load_protocol(said: str) -> Protocol:
    """`NAME` or `FILE.yaml`. Raises UserError."""
    if said.endswith((".yaml", ".yml")):
        return _read(Path(said).expanduser(), said)
    known = protocol_names()
    if said not in known:
        raise UserError(
            f"--protocol {said}: no such protocol{nearest(said, known)} (see: evalharness data protocols list; "
            "your own: --protocol FILE.yaml)"
        )
    return _read(prompts_folder() / "protocols" / f"{said}.yaml", said)


def _read(path: Path, said: str) -> Protocol:
    protocol, raw = load_model(path, Protocol, f"--protocol {said}")
    protocol._sha256 = hashlib.sha256(raw).hexdigest()
    return protocol
