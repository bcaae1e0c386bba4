"""A protocol: how a group asks, reads, samples, scores and averages, as a file says. Installed packages bring more."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, model_validator

from evalharness.base.errors import UserError, nearest
from evalharness.base.extensions import load_extensions
from evalharness.base.paths import prompts_folder
from evalharness.base.yaml_lines import load_model

DEFAULT = "agentrefine"
"""What a run without `--protocol` follows."""
NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
"""Of a protocol, and of the folder with its texts."""
GROUP = "evalharness.protocols"
"""Entry points of modules that bring protocols."""


class _FileModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class Sampling(_FileModel):
    """How replies are drawn; what is absent is the run's default."""

    temperature: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    top_p: float | None = Field(default=None, gt=0, le=1)
    top_k: int | None = Field(default=None, ge=-1)
    max_tokens: int | None = Field(default=None, ge=1)
    seed: int | None = Field(default=None, ge=0)


class RepeatedDraw(_FileModel):
    """Games that a protocol draws with repetition."""

    games: int = Field(ge=1, le=1_000_000)


class Protocol(_FileModel):
    """A protocol's file: ours, an installed package's, or one of the user's own."""

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
    imports: dict[str, Any] | None = None
    """Where its texts stand in a checkout of its authors, for the package that brings the protocol."""
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
    """The default first, then those of installed packages."""
    return [DEFAULT, *sorted(_brought())]


def load_protocol(said: str) -> Protocol:
    """`NAME` or `FILE.yaml`. Raises UserError."""
    if said.endswith((".yaml", ".yml")):
        return _read(Path(said).expanduser(), said)
    if said == DEFAULT:
        return _read(prompts_folder() / "protocol" / f"{DEFAULT}.yaml", said)
    file, _ = _brought().get(said, (None, None))
    if file is None:
        raise UserError(
            f"--protocol {said}: no such protocol{nearest(said, protocol_names())} (see: evalharness data "
            "protocols list; your own: --protocol FILE.yaml)"
        )
    return _read(file, said)


def module_of(name: str) -> ModuleType | None:
    """The installed module that brings this protocol. It has `import_texts(name, checkout)`, which reads the authors'
    texts, and for what was read `imported_texts(name, family)`, `all_imported(name)` and `how_to_import(name)`."""
    return _brought().get(name, (None, None))[1]


@cache
def _brought() -> dict[str, tuple[Path, ModuleType]]:
    """Name -> the file and the module that brings it, whose `folder()` holds a file NAME.yaml for each protocol."""
    brought: dict[str, tuple[Path, ModuleType]] = {}
    for module in load_extensions(GROUP).values():
        brought.update((file.stem, (file, module)) for file in module.folder().glob("*.yaml"))
    return brought


def _read(path: Path, said: str) -> Protocol:
    protocol, raw = load_model(path, Protocol, f"--protocol {said}")
    protocol._sha256 = hashlib.sha256(raw).hexdigest()
    return protocol
