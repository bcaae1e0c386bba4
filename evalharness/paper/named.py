"""Read the paths that the user names for an exhibit: runs, studies, folders of these, data sets, folders of
MT-bench."""

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
"""Studies of one model, whose runs form one entry. In other studies every run is its own entry."""
Labelled = tuple[str | None, list[Path]]
"""Label and run folders; None as a label means the usual name of the run."""


@dataclass
class NamedPaths:
    entries: list[Labelled] = field(default_factory=list)
    data: list[Path] = field(default_factory=list)
    mtbench: list[Path] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def add(self, path: Path) -> bool:
        """Add a path; return False if it is nothing of these. Raises UserError for a damaged study."""
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
        """Add a path like `add`, but record a damaged study as left out."""
        try:
            return self.add(path)
        except UserError as error:
            self.left_out.append(str(error))
            return True


def _list_study_runs(folder: Path, kind: str, runs: Mapping[str, str]) -> list[Labelled]:
    listed = {name: folder / path for name, path in runs.items() if not name.endswith(SELECT)}
    if kind in _TOGETHER:
        return [(None, list(listed.values()))]
    # A checkpoint's name is that in its manifest; an agent is named by its manifest.
    return [(None if kind == "agents" else name, [path]) for name, path in listed.items()]


def read_named_paths(paths: Sequence[Path], specs: Mapping[str, EnvSpec]) -> Given:
    """Read the paths. A folder that is neither a run nor a study means the runs and studies directly in it.

    Raises UserError if a path has no usable data. A run without a finished episode is left out with its reason.
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
