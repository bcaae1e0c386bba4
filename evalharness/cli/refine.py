"""Training data in which an agent errs, sees it, and does better."""

from __future__ import annotations

import importlib

from evalharness.cli.parser import CommandParser

GROUPS = ("refine_synthesis", "refine_grounded", "refine_loop", "refine_data")
"""Modules of this package; each registers its subcommands, in the order in which the help lists them."""


HELP = "training data with errors and their refinement"


def add_options(parser: CommandParser) -> None:
    actions = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name in GROUPS:
        importlib.import_module(f"evalharness.cli.{name}").register(actions)
