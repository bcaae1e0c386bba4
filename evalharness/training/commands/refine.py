"""Make training data in which an agent makes errors and corrects them."""

from __future__ import annotations

from evalharness.cli.parser import CommandParser
from evalharness.training.commands import refine_data, refine_grounded, refine_synthesis

HELP = "make training data with errors and corrections"


def add_options(parser: CommandParser) -> None:
    actions = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for group in (refine_synthesis, refine_grounded, refine_data):
        group.register(actions)
