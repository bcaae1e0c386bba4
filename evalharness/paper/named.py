"""What the user names for an exhibit: runs, studies, folders of these, data sets, folders of MT-bench."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from evalharness.base.errors import UserError, system_errors
from evalharness.envs.base import EnvSpec
from evalharness.paper.exhibit import Given, entries_of
from evalharness.paper.judged import is_mtbench_folder
from evalharness.records.files import STUDY
from evalharness.records.store import MANIFEST
from evalharness.runs.study import SELECT, read_study

_TOGETHER = frozenset({"sweep", "bon", "seeds"})
"""Studies of one model, whose runs are one entry; every run of another study is one of its own."""
Labelled = tuple[str | None, list[Path]]
"""(label, None: as the runs are called elsewhere; run folders)"""


@dataclass
class _Found:
    entries: list[Labelled] = field(default_factory=list)
    data: list[Path] = field(default_factory=list)
    mtbench: list[Path] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def add(self, path: Path) -> bool:
        """False for a folder that is none of these. Raises UserError for a damaged study."""
        if path.is_file():
            self.data.append(path)
        elif (study := read_study(path)) is not None:
            self.entries += _of_study(path, *study)
        elif is_mtbench_folder(path):
            self.mtbench.append(path)
        elif (path / MANIFEST).exists():
            self.entries.append((None, [path]))
        else:
            return False
        return True

    def tried(self, path: Path) -> bool:
        """As `add`; a damaged study among others is left out with its reason."""
        try:
            return self.add(path)
        except UserError as error:
            self.left_out.append(str(error))
            return True


def _of_study(folder: Path, kind: str, runs: Mapping[str, str]) -> list[Labelled]:
    listed = {name: folder / path for name, path in runs.items() if not name.endswith(SELECT)}
    if kind in _TOGETHER:
        return [(None, list(listed.values()))]
    # The name of a checkpoint is known to be that of its manifest; an agent is called by its manifest.
    return [(None if kind == "agents" else name, [path]) for name, path in listed.items()]


def given_by(paths: Sequence[Path], specs: Mapping[str, EnvSpec]) -> Given:
    """A folder that is neither a run nor a study stands for the runs and studies right below it.

    Raises UserError for what holds nothing of this kind; a run without a finished episode is left out with its reason.
    """
    found = _Found()
    for path in paths:
        if not path.exists():
            raise UserError(f"{path} is not there; name run folders, studies, or a data set's file")
        if found.add(path):
            continue
        with system_errors(f"cannot read {path}"):
            inside = sorted(entry for entry in path.iterdir() if entry.is_dir())
        if not [folder for folder in inside if found.tried(folder)]:
            raise UserError(f"{path} holds no run (no {MANIFEST}) and no study (no {STUDY})")
    entries, left_out = entries_of(found.entries)
    return Given(specs, entries, tuple(found.data), tuple(found.mtbench), (*found.left_out, *left_out))
