"""Make short and distinct labels of runs for tables and figures. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

from evalharness.records.manifest import Manifest

_GENERIC = re.compile(
    r"(checkpoint|global_?step|step|epoch|iter|ckpt)?[-_]?\d+|model|final|last|best|latest|hf|merged|weights|"
    r"checkpoints?|ckpts?|snapshots?|outputs?|exports?|actor|huggingface",
    re.IGNORECASE,
)
"""Last folders of checkpoints that say nothing of the training they are of."""

_PATH = re.compile(r"[^\s<>\"'|*?$&;(){}]*/[^\s<>\"'|*?$&;(){}]*")
"""Text with a slash in it that can be a path: prose, markup and commands stay whole."""

_TELLS: Mapping[str, Callable[[Any], str]] = {
    "perturb": lambda value: str(value or "unperturbed"),
    "seed": lambda value: f"seed {value}",
    "temperature": lambda value: f"temperature {value:g}",
    "samples": lambda value: f"{value} samples",
    "max_turns": lambda value: f"at most {value} turns",
    "action_interface": lambda value: str(value or "react"),
    "agent": lambda value: _agent(value) if isinstance(value, Mapping) else "react",
    "protocol": lambda value: str(value["name"] if isinstance(value, Mapping) else "own protocol"),
}
"""Options that tell runs of one model apart, as a person says them, in the order in which they are tried."""


@dataclass(frozen=True)
class NamedRun:
    """The facts about a run from which its label is made."""

    name: str
    folder: Path
    config: Mapping[str, Any]
    given: bool = False
    """The name is the user's (`--name`), not a model's path."""

    @property
    def short_name(self) -> str:
        return self.name if self.given else short_name(self.name)

    @classmethod
    def of(cls, folder: Path, manifest: Manifest) -> NamedRun:
        return cls(model_name(manifest), folder, manifest.options, manifest.run_name is not None)


def model_name(manifest: Manifest, name: str | None = None) -> str:
    """The run's own name; else what it calls its model, or `name`; behind it the script that played, if that is called
    something else."""
    if manifest.run_name is not None:
        return manifest.run_name
    name = manifest.model_name if name is None else name
    played = manifest.identity.model
    if played.get("kind") != "scripted" or name == played.get("name"):
        return name
    return f"{name} ({str(played.get('name')).partition(':')[0]})"


def _agent(identity: Mapping[str, Any]) -> str:
    options = (f" {name}={value}" for name, value in identity.get("options", {}).items())
    return f"{identity['name']}{''.join(options)}"[:80]


class Stored(Protocol):
    @property
    def folder(self) -> Path: ...
    @property
    def manifest(self) -> Manifest: ...


def labels_of(runs: Sequence[Stored]) -> list[str]:
    """`run_labels` of runs that have been read."""
    return run_labels([NamedRun.of(run.folder, run.manifest) for run in runs])


def letter(number: int) -> str:
    """A, B, ... Z, AA: of the first, second, ... run that a command was given; the same in every table of it."""
    return (letter(number // 26 - 1) if number >= 26 else "") + chr(ord("A") + number % 26)


def short_name(name: str) -> str:
    """A model's name as a label: of a path or hub id the last part, and before it what makes that one mean something
    (`lr2e-5/checkpoint-500`). A server's address stays as it is."""
    if "://" in name or not _PATH.fullmatch(name):
        return name
    parts = [part for part in PurePosixPath(name.strip()).parts if part not in ("/", ".", "..", "~")]
    for i in range(len(parts) - 1, -1, -1):
        if not _GENERIC.fullmatch(parts[i]):
            return "/".join(parts[i:])
    return "/".join(parts[-2:]) or name


def run_labels(runs: Sequence[NamedRun]) -> list[str]:
    """A label a run, all different: the short name; where several runs share it what else differs between these (the
    whole name, one or two options), else as much of the end of the folder's path as it takes."""
    labels = [run.short_name for run in runs]
    for label in set(labels):
        places = [i for i, other in enumerate(labels) if other == label]
        if len(places) > 1:
            for i, own in zip(places, _distinguished([runs[i] for i in places], label), strict=True):
                labels[i] = own
    return _all_different(labels)


def _distinguished(runs: Sequence[NamedRun], label: str) -> list[str]:
    names = [run.name for run in runs]
    if len(set(names)) == len(runs):
        return names
    if len(set(names)) == 1:
        differing = [key for key in _TELLS if len({str(run.config.get(key)) for run in runs}) > 1]
        chosen = [(key,) for key in differing] + [tuple(differing[:2])]
        for keys in chosen:
            said = [", ".join(_describe_option(key, run.config.get(key)) for key in keys) for run in runs]
            if len(set(said)) == len(runs):
                return [f"{label} ({text})" for text in said]
    return [f"{label} ({tail})" for tail in _tails([run.folder for run in runs])]


def _describe_option(key: str, value: Any) -> str:
    """Return the option as text. A stranger's manifest can hold a value of any type."""
    try:
        return _TELLS[key](value)
    except (TypeError, ValueError, KeyError):
        return f"{key} {value}"[:80]


def _tails(folders: Sequence[Path]) -> list[str]:
    """The fewest last parts of the paths that are all different."""
    parts = [folder.absolute().parts for folder in folders]
    for count in range(1, max(map(len, parts)) + 1):
        tails = ["/".join(each[-count:]) for each in parts]
        if len(set(tails)) == len(tails):
            return tails
    return [str(folder) for folder in folders]


def _all_different(labels: Sequence[str]) -> list[str]:
    """The same folder twice, or a model that is called what another's label became: numbered."""
    seen: dict[str, int] = {}
    found = []
    for label in labels:
        seen[label] = seen.get(label, 0) + 1
        found.append(label if seen[label] == 1 else f"{label} #{seen[label]}")
    return found
