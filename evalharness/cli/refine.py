"""`evalharness refine`: training data that teaches agents to refine their actions."""

from __future__ import annotations

import argparse
import importlib

GROUPS = ("refine_synthesis", "refine_grounded", "refine_correct", "refine_loop", "refine_data")
"""Modules of this package; each registers its subcommands, in the order in which the help lists them."""


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "refine",
        help="training data with errors and their refinement",
        description="Training data in which an agent errs, sees it, and does better.",
    )
    actions = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name in GROUPS:
        importlib.import_module(f"evalharness.cli.{name}").register(actions)
