"""`evalharness completion`: what a shell needs to complete commands, options and their values."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from evalharness.cli import make_parser
from evalharness.cli.parser import CommandParser, argument, children

HELP = "print a completion script for your shell"
DESCRIPTION = """\
Print a completion script. To keep it (open a new shell afterwards):

  bash  evalharness completion bash > ~/.local/share/bash-completion/completions/evalharness
        (make the folder first if it is not there)
  zsh   evalharness completion zsh > ~/.evalharness.zsh && echo 'source ~/.evalharness.zsh' >> ~/.zshrc
  fish  evalharness completion fish > ~/.config/fish/completions/evalharness.fish
"""


def add_options(parser: CommandParser) -> None:
    argument(parser, "shell", "which shell", choices=tuple(_SHELLS))


def run(args: argparse.Namespace) -> int:
    print(_SHELLS[args.shell](list(walk(make_parser()))), end="")
    return 0


@dataclass(frozen=True)
class Level:
    """The program, or a command of it: what may follow."""

    path: tuple[str, ...]
    commands: dict[str, str]
    """Name -> help."""
    options: dict[str, argparse.Action]
    positional_choices: tuple[str, ...]


def walk(parser: CommandParser, path: tuple[str, ...] = ()) -> Iterator[Level]:
    commands = {name: (child.description or "").partition(".")[0] for name, child in parser.beside.items()}
    options: dict[str, argparse.Action] = {}
    choices: list[str] = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            commands = {item.dest: item.help or "" for item in action._choices_actions} | commands
        elif action.option_strings:
            options |= dict.fromkeys(action.option_strings, action)
        elif action.choices:
            choices += map(str, action.choices)
    yield Level(path, commands, options, tuple(choices))
    for name, child in children(parser).items():
        yield from walk(child, (*path, name))


def _values(action: argparse.Action) -> str:
    """The values that are known beforehand, if any."""
    if "--suite" in action.option_strings:  # not choices of the parser: families bring suites of their own
        from evalharness.envs import specs
        from evalharness.suites.selection import suites_of

        return " ".join(suites_of(specs()))
    return " ".join(map(str, action.choices or ()))


def bash(levels: list[Level]) -> str:
    known = "|".join(f'" {" ".join(level.path)}"' for level in levels if level.path)
    words, values, takes_value = [], [], []
    for level in levels:
        key = f'"{"".join(f" {name}" for name in level.path)}"'
        first = " ".join([*level.commands, *level.positional_choices])
        words.append(f'    {key}) words="{first}"; options="{" ".join(level.options)}";;')
        for option, action in level.options.items():
            if known_values := _values(action):
                values.append(f'    {key[:-1]} {option}") words="{known_values}"; options="";;')
            elif action.nargs != 0:
                takes_value.append(f'{key[:-1]} {option}"')
    return f"""\
_evalharness() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}"
  local command="" words="" options="" i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$command ${{COMP_WORDS[i]}}" in {known}) command="$command ${{COMP_WORDS[i]}}";; esac
  done
  case "$command" in
{chr(10).join(words)}
  esac
  case "$command $previous" in
{chr(10).join(values)}
    {"|".join(takes_value)}) words=""; options="";;
  esac
  if [[ "$current" == -* ]]; then words="$options"; fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _evalharness evalharness
"""


def zsh(levels: list[Level]) -> str:
    return "autoload -Uz compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n" + bash(levels)


def fish(levels: list[Level]) -> str:
    lines = []
    for level in levels:
        conditions = [f"__fish_seen_subcommand_from {name}" for name in level.path]
        if level.commands:
            conditions.append(f"not __fish_seen_subcommand_from {' '.join(level.commands)}")
        start = f"complete -c evalharness -n {shlex.quote('; and '.join(conditions) or 'true')}"
        for name, text in level.commands.items():
            lines.append(f"{start} -f -a {name} -d {_fish_text(text)}")
        if level.positional_choices:
            lines.append(f"{start} -f -a {_fish_text(' '.join(level.positional_choices))}")
        for option, action in level.options.items():
            name = f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}"
            value = ""
            if known_values := _values(action):
                value = f" -x -a {_fish_text(known_values)}"
            elif action.nargs != 0:
                value = " -r"
            lines.append(f"{start} {name}{value} -d {_fish_text((action.help or '').replace('%%', '%'))}")
    return "\n".join(lines) + "\n"


def _fish_text(text: str) -> str:
    return "'" + " ".join(text.split()).replace("\\", "\\\\").replace("'", "\\'") + "'"


_SHELLS = {"bash": bash, "zsh": zsh, "fish": fish}
