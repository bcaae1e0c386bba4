"""Make an agent from `--agent` (a name, `module:Class` or `FILE.py:Class`) and its options."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from evalharness.agents.base import Agent, AgentOptions
from evalharness.agents.program import Program
from evalharness.base.errors import UserError, nearest
from evalharness.base.extensions import is_there

GROUP = "evalharness.agents"
"""Group of the entry points for agents of other packages."""
_STANDARD = ("abc", "builtins", "typing")
DEFAULT = "react"
OURS: Mapping[str, str] = {
    "react": "evalharness.agents.react:ReactAgent",
    "tools": "evalharness.agents.react:ToolsAgent",
    "act": "evalharness.agents.react:ActAgent",
    "window": "evalharness.agents.window:WindowAgent",
}


@dataclass(frozen=True)
class ChosenAgent:
    """The agent class that the user chose, with its options."""

    kind: type[Agent]
    options: AgentOptions
    code: Program | None = None
    """The hashed files of the class. None for a built-in agent: its `version` identifies the code."""

    @property
    def name(self) -> str:
        return self.kind.name

    @property
    def is_react(self) -> bool:
        return self.kind.name == DEFAULT and self.code is None

    def make(self) -> Agent:
        return self.kind(self.options)

    def identity(self) -> dict[str, Any]:
        """Return what identifies the agent in a manifest: name, version, options, and the hash of its files."""
        known = {
            "name": self.name,
            "version": self.kind.version,
            "options": self.options.model_dump(mode="json"),
        }
        if self.code is None:
            return known
        unknown = {"not_checked": self.code.not_checked} if self.code.not_checked else {}
        return known | {"code_sha256": self.code.sha256} | unknown


def find_agent(name: str, options: Mapping[str, Any] | None = None) -> ChosenAgent:
    """Return the agent with this name: built in, or an entry point of an installed package.

    Use it for a name from a run's record or a protocol file: the name cannot load code that is not installed. Raises
    UserError with the available agents or options.
    """
    return _choose_agent(name, _find_installed(name), options)


def load_agent(text: str, options: Mapping[str, Any] | None = None) -> ChosenAgent:
    """Return the agent that `find_agent` returns, or load `module:Class` or `FILE.py:Class`. Use it only for a
    text that the user typed, because it can run any code. Raises UserError like `find_agent`."""
    return _choose_agent(text, text if ":" in text else _find_installed(text), options)


def _choose_agent(text: str, place: str, options: Mapping[str, Any] | None) -> ChosenAgent:
    kind, code = _class_at(place)
    try:
        # pydantic converts texts: `--agent-option history=2` and `history: 2` in YAML give the same number.
        chosen = kind.Options.model_validate(dict(options or {}))
    except ValidationError as error:
        raise UserError(_wrong_options(text, kind, error)) from None
    return ChosenAgent(kind, chosen, code)


def find_recorded_agent(
    name: str, version: int, options: Mapping[str, Any], code: str | None
) -> ChosenAgent | None:
    """Return the agent that a record names; None if this version of the agent is not installed here."""
    try:
        chosen = find_agent(name, options)
    except UserError:
        return None
    own = chosen.code and chosen.code.sha256
    return chosen if (chosen.kind.version, own) == (version, code) else None


def names() -> list[str]:
    """Return the names of all agents: built-in ones, and those of installed packages."""
    return [*OURS, *sorted(_entry_points())]


@cache
def _entry_points() -> dict[str, str]:
    """Map names to `module:Class`, for the entry points whose module can be found."""
    points = entry_points(group=GROUP)
    return {point.name: point.value for point in points if point.name not in OURS and is_there(point)}


@cache
def _class_at(text: str) -> tuple[type[Agent], Program | None]:
    """Load the class of `module:Class` or `FILE.py:Class`, and hash its files."""
    place, _, name = text.rpartition(":")
    try:
        module = _from_file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"--agent {text}: cannot be imported: {type(error).__name__}: {error}") from None
    kind = getattr(module, name, None)
    if kind is None:
        available = [n for n, value in vars(module).items() if _is_agent(value)]
        raise UserError(f"--agent {text}: no {name} in {place}; it has {', '.join(available) or 'no agent'}")
    if not _is_agent(kind):
        raise UserError(f"--agent {text}: {name} is not a class derived from evalharness.agents.base.Agent")
    if missing := sorted(kind.__abstractmethods__):
        raise UserError(f"--agent {text}: {name} lacks {', '.join(missing)}")
    if not isinstance(getattr(kind, "name", None), str) or not kind.name.isprintable():
        raise UserError(f"--agent {text}: {name} needs a class attribute `name`")
    if not (isinstance(kind.Options, type) and issubclass(kind.Options, AgentOptions)):
        raise UserError(f"--agent {text}: {name}.Options is not a class derived from AgentOptions")
    bases = [base for base in kind.__mro__ if not base.__module__.startswith(("evalharness.", *_STANDARD))]
    return kind, Program.of({Path(inspect.getfile(base)) for base in bases}) if bases else None


def _find_installed(name: str) -> str:
    """Return `module:Class` of an agent that is built in or an entry point. Raises UserError for other names."""
    if (place := OURS.get(name) or _entry_points().get(name)) is not None:
        return place
    known = names()
    raise UserError(
        f"--agent {name}: no such agent{nearest(name, known)} (see: evalharness data agents); your own: "
        "--agent module:Class or --agent FILE.py:Class"
    )


def _is_agent(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Agent) and value is not Agent


def _from_file(path: Path) -> Any:
    if not path.is_file():
        raise UserError(f"--agent {path}: no such file")
    # Two files with the same name need different module names.
    name = f"evalharness_agent_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _wrong_options(text: str, kind: type[Agent], error: ValidationError) -> str:
    parts = []
    for problem in error.errors():
        name = ".".join(map(str, problem["loc"]))
        if problem["type"] == "extra_forbidden":
            parts.append(f"{text} has no option {name!r}{nearest(name, list(kind.Options.model_fields))}")
        else:
            parts.append(f"{name}={problem.get('input')}: {problem['msg'][0].lower()}{problem['msg'][1:]}")
    known = ", ".join(f"{name}={field.default}" for name, field in kind.Options.model_fields.items())
    return f"--agent-option {'; '.join(parts)}; {text} has {known or 'no options'}"
