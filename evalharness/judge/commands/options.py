"""Options of `judge` and `judge mtbench` for requests to the judge."""

from __future__ import annotations

import argparse

from evalharness.cli.parser import argument


def add_how(parser: argparse.ArgumentParser, *, max_tokens: int) -> None:
    from evalharness.cli.options import SERVING, add_options_of_run

    how = parser.add_argument_group("how to do it")
    add_options_of_run(how, ("max_tokens", *SERVING), max_tokens=max_tokens)
    argument(how, "--plain", "do not ask the judge's server for structured output (JSON schema)")
    argument(how, "--prompts DIR", "folder with your own judge prompts")
