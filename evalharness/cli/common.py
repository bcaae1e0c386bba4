"""Options that several commands share."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from evalharness.base.errors import UserError, nearest
from evalharness.cli.output import note
from evalharness.cli.parser import argument

if TYPE_CHECKING:
    from evalharness.envs.base import EnvSpec, Suite


def add_data_option(parser: argparse._ActionsContainer) -> None:
    argument(parser, "--data DIR", "data folder (default: $EVALHARNESS_DATA; see: evalharness data path)")


def add_suite_options(parser: argparse._ActionsContainer) -> None:
    argument(
        parser,
        "--suite SUITE",
        "agentboard: the published benchmark, needs its data; open: built in; or the suite of one "
        "family (default: agentboard if its data is imported, else open)",
    )
    argument(parser, "--suite-seed N", "seed of the open suite's tasks; 0: the built-in suite (default: 0)")


def add_json_option(parser: argparse._ActionsContainer) -> None:
    argument(parser, "--json FILE", "also write the result as JSON ('-': to standard output)", type=str)


def add_csv_option(parser: argparse._ActionsContainer, rows: str) -> None:
    argument(parser, "--csv FILE", f"also write {rows} as CSV ('-': to standard output)", type=str)


def data_folder(args: argparse.Namespace) -> Path:
    """Return the data folder that the user named, or the default one. Raises UserError if it cannot be read."""
    from evalharness.base.paths import data_folder as default

    folder: Path = args.data if getattr(args, "data", None) is not None else default()
    try:
        _entries(folder)
        for family in _entries(folder / "agentboard"):
            _entries(family)
    except OSError as error:
        raise UserError(
            f"data folder {folder}: cannot read {error.filename or folder}: {error.strerror}; "
            "name another folder with --data DIR"
        ) from None
    return folder


def _entries(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def choose_suite(args: argparse.Namespace, data: Path) -> Suite:
    """Return `--suite`; otherwise the published suite if its data is imported; otherwise the open suite, with a note.

    Raises UserError for a suite that no installed family has.
    """
    if args.suite is not None:
        from evalharness.envs import specs
        from evalharness.suites.selection import require_suite

        suite: Suite = args.suite
        require_suite(specs(), suite)
        return suite
    if (data / "agentboard").is_dir():
        return "agentboard"
    note(
        "no published data imported, so this is the open suite "
        "(get the published one with: evalharness data import DIR)"
    )
    return "open"


def make_stopped_line(folders: Sequence[Path], args: argparse.Namespace) -> str:
    """Return the message after Ctrl-C: the number of kept episodes in `folders`, and the command to continue."""
    import shlex

    from evalharness.records.store import EPISODES

    if not folders:
        return "stopped; nothing had been played yet"
    count = 0
    for folder in folders:
        with contextlib.suppress(OSError), (folder / EPISODES).open("rb") as file:
            count += sum(1 for _ in file)
    episodes = "1 episode is" if count == 1 else f"{count} episodes are"
    command = shlex.join(["evalharness", *args.typed])
    return f"stopped; {episodes} kept in {folders[0]}; to continue: {command}"


@contextlib.contextmanager
def report_kept_episodes(args: argparse.Namespace) -> Iterator[list[Path]]:
    """Yield a list for the folders of the runs. After an interrupt, show `make_stopped_line` for these folders."""
    folders: list[Path] = []
    try:
        yield folders
    except KeyboardInterrupt:
        raise KeyboardInterrupt(make_stopped_line(folders, args)) from None
    except SystemExit:
        note(make_stopped_line(folders, args))
        raise


def describe_continuation(stopped: str) -> str:
    """Return a phrase: how the user can continue a run that stopped for the reason `stopped`."""
    if "stop_on_format_errors" in stopped:
        return "; the same command would stop again; to continue, leave out stop_on_format_errors"
    return "; the same command continues"


def require_family(family: str) -> EnvSpec:
    """Return the family's specification. Raises UserError if the family is not installed."""
    from evalharness.envs import specs

    if family not in specs():
        raise UserError(f"unknown family {family!r}{nearest(family, sorted(specs()))}")
    return specs()[family]


def open_families() -> dict[str, EnvSpec]:
    """Return the families with an open suite."""
    from evalharness.envs import specs

    return {family: spec for family, spec in specs().items() if spec.suites.expected.get("open")}


def families_of(tasks: str, known: Mapping[str, EnvSpec], *, all_is_one: bool = False) -> list[str]:
    """Return the sorted families that `--tasks LIST` names. `all_is_one`: LIST may contain `all`.
    Raises UserError for a family that is not `known`."""
    chosen = {name.strip() for name in tasks.split(",")}
    if all_is_one and "all" in chosen:
        chosen = chosen - {"all"} | {family for family, spec in known.items() if spec.own.in_all}
    for name in sorted(chosen):
        if name not in known:
            raise UserError(f"--tasks: unknown family {name!r}{nearest(name, sorted(known))}")
    return sorted(chosen)


def titles() -> dict[str, str]:
    """Map each family to its title."""
    from evalharness.envs import specs

    return {family: spec.title for family, spec in specs().items()}
