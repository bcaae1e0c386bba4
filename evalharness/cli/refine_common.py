"""What the commands on training data share: how they speak, where they write."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console


Commands = argparse._SubParsersAction


def make_console(*, stderr: bool) -> Console:
    from evalharness.report import terminal

    return terminal.make_console(stderr=stderr)


def say(text: str) -> None:
    from evalharness.report import terminal

    terminal.say(text)


def print_counts(out: Console, counts: Mapping[str, Any]) -> None:
    """Three lines on what a data set holds."""
    turns = max(counts["player_turns"], 1)
    kinds = ", ".join(f"{kind} {n:,}" for kind, n in counts["errors"].items()) or "none"
    out.print(
        f"{counts['samples']:,} conversations, {counts['player_turns']:,} player turns, "
        f"{counts['trained_turns']:,} of them trained\n"
        f"errors: {counts['error_turns']:,} turns, {100 * counts['error_turns'] / turns:.1f} % of player turns "
        f"({kinds}); {counts['refine_turns']:,} corrections",
        highlight=False, soft_wrap=True, markup=False,
    )  # fmt: skip


def name_broken_lines(path: Path, broken: list[Any]) -> None:
    from evalharness.refine.sample import say_broken

    for line in say_broken(path, broken):
        say(f"evalharness: {line}")


def add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FILE", help="the data set, FILE.jsonl"
    )


def say_on(out: Console, text: str) -> None:
    out.print(text, highlight=False, soft_wrap=True, markup=False)
