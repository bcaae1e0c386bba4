"""Make short and distinct labels of runs for tables and figures."""

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
"""Names of folders that occur in many trainings, so that a label needs the folder above them, too."""

_PATH = re.compile(r"[^\s<>\"'|*?$&;(){}]*/[^\s<>\"'|*?$&;(){}]*")
"""Text that can be a path: it contains a slash, but no spaces, quotes, brackets or other symbols of a sentence."""

_OPTIONS: Mapping[str, Callable[[Any], str]] = {
    "perturb": lambda value: str(value or "unperturbed"),
    "seed": lambda value: f"seed {value}",
    "temperature": lambda value: f"temperature {value:g}",
    "samples": lambda value: f"{value} samples",
    "max_turns": lambda value: f"at most {value} turns",
    "action_interface": lambda value: str(value or "react"),
    "agent": lambda value: _agent(value) if isinstance(value, Mapping) else "react",
    "protocol": lambda value: str(value["name"] if isinstance(value, Mapping) else "own protocol"),
}
"""Option that can distinguish runs of one model -> function that writes its value. Earlier options are preferred."""


@dataclass(frozen=True)
class NamedRun:
    """The name, folder and options of a run, from which its label is made."""

    name: str
    folder: Path
    config: Mapping[str, Any]
    given: bool = False
    """Whether the user gave the name (`--name`); otherwise it is the model's name."""

    @property
    def short_name(self) -> str:
        return self.name if self.given else short_name(self.name)

    @classmethod
    def of(cls, folder: Path, manifest: Manifest) -> NamedRun:
        return cls(model_name(manifest), folder, manifest.options, manifest.run_name is not None)


def model_name(manifest: Manifest, name: str | None = None) -> str:
    """Return the name that the user gave the run (`--name`), else `name`, else the model's name. If a scripted policy
    played under another name, add the policy's name."""
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


class StoredRun(Protocol):
    @property
    def folder(self) -> Path: ...
    @property
    def manifest(self) -> Manifest: ...


def labels_of(runs: Sequence[StoredRun]) -> list[str]:
    """Return the labels (`run_labels`) of loaded runs."""
    return run_labels([NamedRun.of(run.folder, run.manifest) for run in runs])


def letter(number: int) -> str:
    """Return the letter that stands for a run in tables, from its position in the command: A, B, ... Z, AA."""
    return (letter(number // 26 - 1) if number >= 26 else "") + chr(ord("A") + number % 26)


def short_name(name: str) -> str:
    """Return a short label for a model's name. Keep the last part of a path or hub id; if that part is generic, keep
    the parts before it, too (`lr2e-5/checkpoint-500`). A server's address stays unchanged."""
    if "://" in name or not _PATH.fullmatch(name):
        return name
    parts = [part for part in PurePosixPath(name.strip()).parts if part not in ("/", ".", "..", "~")]
    for i in range(len(parts) - 1, -1, -1):
        if not _GENERIC.fullmatch(parts[i]):
            return "/".join(parts[i:])
    return "/".join(parts[-2:]) or name


def run_labels(runs: Sequence[NamedRun]) -> list[str]:
    """Return a distinct label for each run. The label is the short name. If several runs share it, use the whole name,
    or add one or two options that differ, or add the end of the folder's path."""
    labels = [run.short_name for run in runs]
    for label in set(labels):
        places = [i for i, other in enumerate(labels) if other == label]
        if len(places) > 1:
            for i, own in zip(places, _distinguish([runs[i] for i in places], label), strict=True):
                labels[i] = own
    return _number_equal(labels)


def _distinguish(runs: Sequence[NamedRun], label: str) -> list[str]:
    names = [run.name for run in runs]
    if len(set(names)) == len(runs):
        return names
    if len(set(names)) == 1:
        keys_that_differ = [key for key in _OPTIONS if len({str(run.config.get(key)) for run in runs}) > 1]
        chosen = [(key,) for key in keys_that_differ] + [tuple(keys_that_differ[:2])]
        for keys in chosen:
            texts = [", ".join(_describe_option(key, run.config.get(key)) for key in keys) for run in runs]
            if len(set(texts)) == len(runs):
                return [f"{label} ({text})" for text in texts]
    return [f"{label} ({tail})" for tail in _tails([run.folder for run in runs])]


def _describe_option(key: str, value: Any) -> str:
    """Return the option as text. The manifest of another user may contain a value of any type."""
    try:
        return _OPTIONS[key](value)
    except (TypeError, ValueError, KeyError):
        return f"{key} {value}"[:80]


def _tails(folders: Sequence[Path]) -> list[str]:
    """Return the last parts of each path: as few parts as make all results different."""
    parts = [folder.absolute().parts for folder in folders]
    for count in range(1, max(map(len, parts)) + 1):
        tails = ["/".join(each[-count:]) for each in parts]
        if len(set(tails)) == len(tails):
            return tails
    return [str(folder) for folder in folders]


def _number_equal(labels: Sequence[str]) -> list[str]:
    """Add numbers to equal labels, for example if the same folder was given twice."""
    counts: dict[str, int] = {}
    numbered = []
    for label in labels:
        counts[label] = counts.get(label, 0) + 1
        numbered.append(label if counts[label] == 1 else f"{label} #{counts[label]}")
    return numbered
