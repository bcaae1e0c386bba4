"""An option of a run is one field of a part of `RunConfig`: flag, help, documentation and identity follow from it."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from evalharness.base.errors import UserError
from evalharness.cli import make_parser
from evalharness.cli.options import add_run_options, help_of, run_options
from evalharness.cli.parser import subcommands, walk_commands
from evalharness.config import OPTIONS, ConfigPart, Option, RunConfig, make_config, option_of


class Further(ConfigPart):
    """A field of each kind, as someone would add it."""

    draws: int | None = Field(default=None, ge=1)
    """how many; at most 100 % of all

    This is for readers of the code."""
    share: float = 0.5
    """a part"""
    careful: Annotated[bool, Option(operational=True)] = False
    """take care"""
    warm: bool = True
    """begin cold"""
    template: Annotated[Path | None, Option("FILE", by_content=True)] = None
    """a file"""
    kind: Literal["short", "long"] = "short"
    """which"""
    adapters: Annotated[tuple[str, ...], Option("NAME")] = ()
    """several names"""
    prices: Annotated[dict[str, float], Option("MODEL=PRICE", operational=True)] = Field(default={})
    """money"""


def parsed(*words: str) -> dict[str, Any]:
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_run_options(parser, options=Further.model_fields)
    return {name: value for name, value in vars(parser.parse_args(words)).items() if value is not None}


def test_a_field_is_a_flag_of_its_kind() -> None:
    assert parsed() == {}
    given = parsed(
        *("--draws", "3", "--share", "0.25", "--careful", "--no-warm", "--template", "a/b", "--kind", "long"),
        *("--adapters", "x", "--adapters", "y", "--prices", "a=1.5", "--prices", "b=2"),
    )
    config = Further.model_validate(given)
    assert (config.draws, config.share, config.careful, config.warm) == (3, 0.25, True, False)
    assert (config.template, config.kind, config.adapters) == (Path("a/b"), "long", ("x", "y"))
    assert config.prices == {"a": 1.5, "b": 2.0}


@pytest.mark.parametrize("words", [("--draws", "x"), ("--kind", "no"), ("--prices", "1.5")])
def test_a_flag_refuses_what_is_not_of_its_kind(words: tuple[str, str]) -> None:
    with pytest.raises(argparse.ArgumentError):
        parsed(*words)


def test_a_docstring_is_the_help() -> None:
    parser = argparse.ArgumentParser()
    add_run_options(parser, options=Further.model_fields)
    shown = " ".join(parser.format_help().split())
    assert "--draws N how many; at most 100 % of all --share X a part (default: 0.5)" in shown
    assert "--prices MODEL=PRICE money" in shown
    assert "--kind {short,long} which (default: short)" in shown
    assert "readers of the code" not in shown


def test_the_identity_of_a_run_has_these_options() -> None:
    """Runs that are there already are continued only while this list stays as it is."""
    assert sorted(RunConfig.of(model="oracle").identity()) == [
        *("limit", "max_tokens", "max_turns", "model", "model_name", "perturb", "samples", "seed", "suite"),
        *("suite_seed", "tasks", "temperature", "top_p", "vllm_args"),
    ]


def test_every_field_is_documented_and_every_flag_is_there() -> None:
    flags = run_options(subcommands(make_parser())["run"])
    for name, field in OPTIONS.items():
        assert help_of(field), f"{name} has no docstring"
        assert (name in flags) != option_of(field).no_flag


def test_commands_say_their_own_options_in_their_own_way() -> None:
    below = subcommands(make_parser())
    own = {"sweep": {"perturb", "tasks"}, "bon": {"samples", "temperature"}}
    every = run_options(below["run"]).keys()
    for command, names in own.items():
        assert run_options(below[command]).keys() == every - names
        assert names <= {action.dest for action in below[command]._actions}


def test_workers_are_counted_from_one() -> None:
    assert make_config({"model": "oracle", "workers": {"babyai": "2"}}).execution.workers == {"babyai": 2}
    with pytest.raises(UserError, match=r"--workers.babyai 0"):
        make_config({"model": "oracle", "workers": {"babyai": "0"}})


def test_a_help_names_only_options_that_its_command_or_one_that_it_names_has() -> None:
    """A command takes over help texts of `run`, and lacks some of its options. Named is a command as `run ...`,
    evalharness run, or as in: run --perturb P1; --max-model-len is vLLM's own."""
    commands = {parser.prog: parser for parser in walk_commands(make_parser())}
    has = {name: {o for a in parser._actions for o in a.option_strings} for name, parser in commands.items()}
    wrong = []
    for name, parser in commands.items():
        helps = [a.help or "" for a in parser._actions if a.help != argparse.SUPPRESS]
        for text in (parser.description or "", parser.epilog or "", *helps):
            named = [
                other
                for other in commands
                if re.search(rf"(`|evalharness |: ){other.removeprefix('evalharness ')}\b", text)
            ]
            known = {"--max-model-len"}.union(*(has[each] for each in (name, *named)))
            wrong += [
                (name, option, text)
                for option in re.findall(r"(?<![\w-])--[a-z][\w-]*", text)
                if option not in known
            ]
    assert wrong == []
