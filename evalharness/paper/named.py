"""Sort the paths that the user names for an exhibit into runs, studies, data sets, and folders of MT-bench."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from evalharness.base.errors import UserError, system_errors
from evalharness.envs.base import EnvSpec
from evalharness.paper.exhibit import Given, make_entries
from evalharness.paper.judged import is_mtbench_folder
from evalharness.records.files import STUDY
from evalharness.records.store import MANIFEST
from evalharness.runs.study_file import SELECT, read_study

_TOGETHER = frozenset({"sweep", "bon", "seeds"})
"""Kinds of studies whose runs are of one model and form one entry. In other studies, each run is an entry."""
Labelled = tuple[str | None, list[Path]]
"""(label, run folders); if the label is None, the entry is named after its run."""


@dataclass
class NamedPaths:
    entries: list[Labelled] = field(default_factory=list)
    data: list[Path] = field(default_factory=list)
    mtbench: list[Path] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def add(self, path: Path) -> bool:
        """Add a path to the list of its kind; return False if its kind is unknown. Raises UserError for a damaged
        study."""
        if path.is_file():
            self.data.append(path)
        elif (study := read_study(path)) is not None:
            self.entries += _list_study_runs(path, *study)
        elif is_mtbench_folder(path):
            self.mtbench.append(path)
        elif (path / MANIFEST).exists():
            self.entries.append((None, [path]))
        else:
            return False
        return True

    def add_or_note(self, path: Path) -> bool:
        """Call `add`, but record the error of a damaged study in `left_out`."""
        try:
            return self.add(path)
        except UserError as error:
            self.left_out.append(str(error))
            return True


def _list_study_runs(folder: Path, kind: str, runs: Mapping[str, str]) -> list[Labelled]:
    listed = {name: folder / path for name, path in runs.items() if not name.endswith(SELECT)}
    if kind in _TOGETHER:
        return [(None, list(listed.values()))]
    # Runs of a study `agents` are named after their manifests, other runs after their entry in the study's file.
    return [(None if kind == "agents" else name, [path]) for name, path in listed.items()]


def read_named_paths(paths: Sequence[Path], specs: Mapping[str, EnvSpec]) -> Given:
    """Read the paths. If a folder is neither a run nor a study, read the runs and studies directly in it.

    Raises UserError if a path has no usable data. A run without a finished episode is left out, and the reason is kept.
    """
    paths_by_kind = NamedPaths()
    for path in paths:
        if not path.exists():
            raise UserError(f"{path} does not exist; name run folders, studies, or a data set's file")
        if paths_by_kind.add(path):
            continue
        with system_errors(f"cannot read {path}"):
            inside = sorted(entry for entry in path.iterdir() if entry.is_dir())
        if not [folder for folder in inside if paths_by_kind.add_or_note(folder)]:
            raise UserError(f"{path} holds no run (no {MANIFEST}) and no study (no {STUDY})")
    entries, left_out = make_entries(paths_by_kind.entries)
    return Given(
        specs,
        entries,
        tuple(paths_by_kind.data),
        tuple(paths_by_kind.mtbench),
        (*paths_by_kind.left_out, *left_out),
    )
