"""A protocol file: how a group prompts, reads, samples, scores and averages. Installed packages can add protocols."""

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
"""The protocol of a run without `--protocol`."""
NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
"""Pattern for the name of a protocol and of the folder with its texts."""
GROUP = "evalharness.protocols"
"""Entry points of modules with protocols."""


class _FileModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Sampling(_FileModel):
    """Sampling of replies; missing fields have the run's default."""

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
    """Licence of its prompt texts."""
    texts: str | None = None
    """The protocol whose texts the user imports; None: the agent reads our wording."""
    agent: str
    options: dict[str, Any] = {}
    turns: int = Field(ge=1, le=10_000)
    suite: str | None = None
    tasks: str | None = None
    sampling: Sampling = Sampling()
    score: Literal["success", "progress", "none"] = "success"
    """The rate that the protocol reports; none: it reports no rate of ours."""
    averaging: str = ""
    """The protocol's averaging, for people; tables average over games, each counted once."""
    draw: RepeatedDraw | None = None
    imports: dict[str, Any] | None = None
    """Places of its texts in a checkout of the authors' code, for the package that supplies the protocol."""
    oddities: list[str] = []
    """Unexpected properties of the protocol that are reproduced here."""
    differs: list[str] = []
    """Differences from the authors' implementation."""

    @model_validator(mode="after")
    def _is_possible(self) -> Protocol:
        if (self.tasks or "").startswith("@"):
            raise ValueError("tasks: a protocol names tasks, and no file with a list of them")
        if self.draw is not None and self.score != "success":
            raise ValueError("draw: only a protocol whose score is success draws games here")
        return self

    @property
    def sha256(self) -> str:
        """Return the SHA-256 of the protocol's file."""
        return self._sha256

    def run_options(self) -> dict[str, Any]:
        """Return the options of a run that the protocol sets, by name."""
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
    """Return the names: the default first, then those of installed packages."""
    return [DEFAULT, *sorted(_find_protocols())]


def load_protocol(said: str) -> Protocol:
    """Load `NAME` or `FILE.yaml`. Raises UserError."""
    if said.endswith((".yaml", ".yml")):
        return _read(Path(said).expanduser(), said)
    if said == DEFAULT:
        return _read(prompts_folder() / "protocol" / f"{DEFAULT}.yaml", said)
    file, _ = _find_protocols().get(said, (None, None))
    if file is None:
        raise UserError(
            f"--protocol {said}: no such protocol{nearest(said, protocol_names())} (see: evalharness data "
            "protocols list; your own: --protocol FILE.yaml)"
        )
    return _read(file, said)


def module_of(name: str) -> ModuleType | None:
    """Return the installed module that supplies this protocol. Its `import_texts(name, checkout)` reads the authors'
    texts; `imported_texts(name, family)`, `all_imported(name)` and `how_to_import(name)` return what was read."""
    return _find_protocols().get(name, (None, None))[1]


@cache
def _find_protocols() -> dict[str, tuple[Path, ModuleType]]:
    """Map names to (file, module); the module's `folder()` holds a file NAME.yaml for each of its protocols."""
    brought: dict[str, tuple[Path, ModuleType]] = {}
    for module in load_extensions(GROUP).values():
        brought.update((file.stem, (file, module)) for file in module.folder().glob("*.yaml"))
    return brought


def _read(path: Path, said: str) -> Protocol:
    protocol, raw = load_model(path, Protocol, f"--protocol {said}")
    protocol._sha256 = hashlib.sha256(raw).hexdigest()
    return protocol
