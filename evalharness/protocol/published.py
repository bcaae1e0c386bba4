"""Read protocol files, which describe how a group of authors evaluates. Installed packages can add protocols."""

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
"""Name of the protocol of a run without `--protocol`."""
NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
"""Pattern for the name of a protocol, which is also the name of the folder with its imported texts."""
GROUP = "evalharness.protocols"
"""Group of the entry points with which packages register modules with protocols."""


class _FileModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Sampling(_FileModel):
    """Sampling parameters. A field with None has the default of a run."""

    temperature: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    top_p: float | None = Field(default=None, gt=0, le=1)
    top_k: int | None = Field(default=None, ge=-1)
    max_tokens: int | None = Field(default=None, ge=1)
    seed: int | None = Field(default=None, ge=0)


class RepeatedDraw(_FileModel):
    """Number of games that the protocol samples with replacement."""

    games: int = Field(ge=1, le=1_000_000)


class Protocol(_FileModel):
    """Content of a protocol file."""

    _sha256: str = PrivateAttr("")

    name: str = Field(pattern=f"^{NAME}$")
    title: str
    source: str = ""
    licence: str = ""
    """Licence of the prompt texts."""
    texts: str | None = None
    """Name of the protocol whose prompt texts the agent reads, after the user has imported them; None: our prompts."""
    agent: str
    options: dict[str, Any] = {}
    turns: int = Field(ge=1, le=10_000)
    suite: str | None = None
    tasks: str | None = None
    sampling: Sampling = Sampling()
    score: Literal["success", "progress", "none"] = "success"
    """The main rate of the protocol; `none`: it is neither the success rate nor the progress rate."""
    averaging: str = ""
    """How the authors average scores, if they do not count each game once, as our tables do."""
    draw: RepeatedDraw | None = None
    imports: dict[str, Any] | None = None
    """Where the prompt texts are in the authors' code. The package that adds the protocol reads this."""
    oddities: list[str] = []
    """Unexpected properties of the authors' implementation that we reproduce."""
    differs: list[str] = []
    """Differences between our implementation and that of the authors."""

    @model_validator(mode="after")
    def _is_possible(self) -> Protocol:
        if (self.tasks or "").startswith("@"):
            raise ValueError("tasks: a protocol must name tasks, not a file with a list of tasks")
        if self.draw is not None and self.score != "success":
            raise ValueError("draw: only a protocol with the score `success` can draw games")
        return self

    @property
    def sha256(self) -> str:
        """SHA-256 of the protocol's file."""
        return self._sha256

    def run_options(self) -> dict[str, Any]:
        """Return option of a run -> value that the protocol sets."""
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
    """Return the names of protocols: the default first, then those of installed packages."""
    return [DEFAULT, *sorted(_find_protocols())]


def load_protocol(name: str) -> Protocol:
    """Load the protocol `NAME` or the file `FILE.yaml`. Raise UserError if it does not exist or is invalid."""
    if name.endswith((".yaml", ".yml")):
        return _read(Path(name).expanduser(), name)
    if name == DEFAULT:
        return _read(prompts_folder() / "protocol" / f"{DEFAULT}.yaml", name)
    file, _ = _find_protocols().get(name, (None, None))
    if file is None:
        raise UserError(
            f"--protocol {name}: no such protocol{nearest(name, protocol_names())} (see: evalharness data "
            "protocols list; your own: --protocol FILE.yaml)"
        )
    return _read(file, name)


def module_of(name: str) -> ModuleType | None:
    """Return the module that adds a protocol. It has the functions `import_texts(name, checkout)`, which imports the
    authors' texts, `read_imported_texts(name, family)`, `all_imported(name)` and `how_to_import(name)`."""
    return _find_protocols().get(name, (None, None))[1]


@cache
def _find_protocols() -> dict[str, tuple[Path, ModuleType]]:
    """Return name of a protocol -> (file, module). The folder `module.folder()` has the files NAME.yaml."""
    files: dict[str, tuple[Path, ModuleType]] = {}
    for module in load_extensions(GROUP).values():
        files.update((file.stem, (file, module)) for file in module.folder().glob("*.yaml"))
    return files


def _read(path: Path, name: str) -> Protocol:
    protocol, raw = load_model(path, Protocol, f"--protocol {name}")
    protocol._sha256 = hashlib.sha256(raw).hexdigest()
    return protocol
