"""Options of a study's file as a command's words."""

from __future__ import annotations

import argparse

from evalharness.cli import make_parser
from evalharness.cli.completion import walk
from evalharness.training.study.file import SECTIONS
from evalharness.training.study.plan import REPEATED, words_of


def test_a_list_is_one_value_with_commas_but_where_the_flag_is_repeated() -> None:
    assert words_of({"tasks": ["babyai", "sciworld"], "n": 3}) == ["--tasks", "babyai,sciworld", "-n", "3"]
    assert words_of({"model": ["a", "b"]}) == ["--model", "a", "--model", "b"]
    assert words_of({"label": {"mode": "full"}, "packing": True, "search": False, "seed": None}) == [
        *("--label", "mode=full", "--packing", "--no-search")
    ]


def test_repeated_are_the_options_whose_parser_keeps_every_value() -> None:
    commands = {command for command, _ in SECTIONS.values()}
    keep = {
        flag.lstrip("-").replace("-", "_")
        for level in walk(make_parser())
        if level.path in commands
        for flag, action in level.options.items()
        if isinstance(action, argparse._AppendAction) or "Pairs" in type(action).__name__
    }
    assert keep == set(REPEATED)
