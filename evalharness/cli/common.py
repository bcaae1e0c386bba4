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
    argument(parser, "--data DIR", "data folder (default: $EVALHARNESS_DATA, else the user's own)")


def add_suite_options(parser: argparse._ActionsContainer) -> None:
    argument(
        parser,
        "--suite SUITE",
        "agentboard: the published benchmark, needs its data; open: built in; or a family's own "
        "suite (default: agentboard if its data is imported, else open)",
    )
    argument(
        parser,
        "--suite-seed N",
        "seed of the tasks; it chooses the open suite; 0 is the built-in suite (default: 0)",
    )


def add_json_option(parser: argparse._ActionsContainer) -> None:
    argument(parser, "--json FILE", "also write the result as JSON ('-': to standard output)", type=str)


def add_csv_option(parser: argparse._ActionsContainer, rows: str) -> None:
    argument(parser, "--csv FILE", f"also write {rows} as CSV ('-': to standard output)", type=str)


def data_folder(args: argparse.Namespace) -> Path:
    """The data folder the user named, or the default one. Raises UserError where it is there and cannot be read."""
    from evalharness.base.paths import data_folder as default

    folder: Path = args.data if getattr(args, "data", None) is not None else default()
    try:
        _entries(folder)
        for family in _entries(folder / "agentboard"):
            _entries(family)
    except OSError as error:
        raise UserError(
            f"data folder {folder}: cannot read {error.filename or folder}: {error.strerror}; "
            "name another with --data DIR"
        ) from None
    return folder


def _entries(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def chosen_suite(args: argparse.Namespace, data: Path) -> Suite:
    """`--suite`, else the published suite where its data is, else the open one (which a line on stderr says).

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


def stopped_line(folders: Sequence[Path], args: argparse.Namespace) -> str:
    """What a person reads after Ctrl-C: how much is kept of the runs in `folders`, and the command that goes on."""
    import shlex

    from evalharness.records.store import EPISODES

    if not folders:
        return "stopped; nothing had been played yet"
    kept = 0
    for folder in folders:
        with contextlib.suppress(OSError), (folder / EPISODES).open("rb") as file:
            kept += sum(1 for _ in file)
    episodes = "1 episode is" if kept == 1 else f"{kept} episodes are"
    command = shlex.join(["evalharness", *args.typed])
    return f"stopped; {episodes} kept in {folders[0]}; to go on: {command}"


@contextlib.contextmanager
def saying_what_is_kept(args: argparse.Namespace) -> Iterator[list[Path]]:
    """Gives a list for the folders of runs. Where it is stopped, a person reads `stopped_line`."""
    kept: list[Path] = []
    try:
        yield kept
    except KeyboardInterrupt:
        raise KeyboardInterrupt(stopped_line(kept, args)) from None
    except SystemExit:
        note(stopped_line(kept, args))
        raise


def how_to_go_on(stopped: str) -> str:
    """What follows for a person, where the reason why it stopped does not say it."""
    if "stop_on_format_errors" in stopped:
        return "; the same command would stop again: with another option it is another run; without this one it goes on"
    return "; the same command continues"


def require_family(family: str) -> EnvSpec:
    """Raises UserError for one that is not installed."""
    from evalharness.envs import specs

    if family not in specs():
        raise UserError(f"unknown family {family!r}{nearest(family, sorted(specs()))}")
    return specs()[family]


def open_families() -> dict[str, EnvSpec]:
    """Those with an open suite."""
    from evalharness.envs import specs

    return {family: spec for family, spec in specs().items() if spec.suites.expected.get("open")}


def families_of(tasks: str, known: Mapping[str, EnvSpec], *, all_is_one: bool = False) -> list[str]:
    """The families that `--tasks LIST` names, sorted. `all_is_one`: `all` is a name, as in `run --tasks all`.

    Raises UserError for one that is not `known`.
    """
    chosen = {name.strip() for name in tasks.split(",")}
    if all_is_one and "all" in chosen:
        chosen = chosen - {"all"} | {family for family, spec in known.items() if spec.own.in_all}
    for name in sorted(chosen):
        if name not in known:
            raise UserError(f"--tasks: unknown family {name!r}{nearest(name, sorted(known))}")
    return sorted(chosen)


def titles() -> dict[str, str]:
    """Family -> the name a person reads."""
    from evalharness.envs import specs

    return {family: spec.title for family, spec in specs().items()}
