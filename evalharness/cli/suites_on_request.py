"""`--make-suites`: open suites that a folder from elsewhere names are made only where the user agrees."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from math import isfinite
from typing import TYPE_CHECKING

from evalharness.base.errors import UserError
from evalharness.cli.common import say
from evalharness.cli.parser import argument

if TYPE_CHECKING:
    from evalharness.suites.temporary import TemporarySuites

_MINUTES = 10.0
"""For which suites are made once the question was answered. All families of a seed take about four."""


def add_make_suites_option(parser: argparse.ArgumentParser) -> None:
    argument(
        parser,
        "--make-suites MINUTES",
        "make open suites of runs that this machine lacks, for at most so long in all; they are removed afterwards "
        "(default: ask; without a terminal, refuse)",
    )


def suites_on_request(args: argparse.Namespace) -> AbstractContextManager[TemporarySuites]:
    """Raises UserError."""
    from evalharness.suites.temporary import temporary_suites

    minutes: float | None = args.make_suites
    if minutes is not None and not (isfinite(minutes) and minutes > 0):
        raise UserError(f"--make-suites {minutes:g}: give minutes, more than 0")
    return temporary_suites(_question(agreed=minutes is not None), 60 * (minutes or _MINUTES))


def _question(*, agreed: bool) -> Callable[[int], None]:
    """Asks once; the answer holds for every suite of the command."""
    answer: bool | None = True if agreed else None

    def ask(suite_seed: int) -> None:
        nonlocal answer
        about = f"the open suite of seed {suite_seed}, which is not on this machine"
        if answer is None:
            if not sys.stdin.isatty():
                raise UserError(
                    f"the run was played on {about}: making it takes minutes; "
                    f"allow that with --make-suites {_MINUTES:g}"
                )
            say(
                f"the run was played on {about}. Make it, and others that are needed, for at most {_MINUTES:g} "
                "minutes in all? They are removed afterwards. [y/N] "
            )
            answer = sys.stdin.readline().strip().lower() in ("y", "yes")
        if not answer:
            raise UserError(f"the run was played on {about}")

    return ask
