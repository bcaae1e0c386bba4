"""What `sweep` and `bon` share: playing a study with a live view, and its last lines."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from evalharness.cli.common import data_folder, how_to_go_on, require_writable

if TYPE_CHECKING:
    from rich.console import Console

    from evalharness.runs.study import Played, Runs


def play_study(
    kind: str,
    folder: Path,
    runs: Runs,
    args: argparse.Namespace,
    *,
    elsewhere: Mapping[str, Path] | None = None,
) -> Played:
    """Play the runs, shown on standard error; interrupted, say where the finished episodes are."""
    from evalharness.base.terminal import make_console, say
    from evalharness.runs.live import watch
    from evalharness.runs.study import play

    for option in ("json", "csv", "tasks_csv"):
        require_writable("--" + option.replace("_", "-"), getattr(args, option, None))
    shown = make_console(stderr=True)
    kept: list[Path] = []
    try:
        return play(
            kind,
            folder,
            runs,
            elsewhere=elsewhere,
            data=data_folder(args),
            watch=watch,
            on_run=lambda name, number, of: shown.print(f"{number} of {of}: {name}", highlight=False),
            on_folder=kept.append,
        )
    except (KeyboardInterrupt, SystemExit):
        where = f"finished episodes are in {folder}" if kept else "nothing had been played yet"
        say(f"evalharness: stopped; {where}")
        raise


def end_study(out: Console, folder: Path, played: Played) -> int:
    """What was there already, where it is and what is missing; the exit status."""
    from evalharness.base.terminal import say

    for name, outcome in played.runs.items():
        if outcome.nothing_to_play:
            out.print(f"{name}: {outcome.nothing_to_play}", soft_wrap=True, highlight=False)
    out.print(
        f"study folder: {folder}  (pictures: evalharness plot {folder})", soft_wrap=True, highlight=False
    )
    if played.stopped:
        say(f"evalharness: the study stopped early: {played.stopped}")
        if played.left:
            say(f"evalharness: still to play: {', '.join(played.left)}")
        say(f"evalharness: finished episodes are kept{how_to_go_on(played.stopped)}")
    return played.exit_status
