"""Play a task yourself. Type an action; an empty line lists the valid ones, `quit` (or Ctrl-D) ends, the tab key
completes, `!oracle` shows the oracle's plan.

With --as NAME the tasks are recorded as a run of the policy human:NAME; the same command continues it. You then read
what a model reads: no list of valid actions (--list-actions gives it, and the run says so) and no plan.
"""

from __future__ import annotations

import argparse

from evalharness.base.errors import UserError
from evalharness.base.text import printable
from evalharness.cli.common import add_data_option, add_suite_options, data_folder
from evalharness.cli.output import make_console
from evalharness.cli.parser import argument

HELP = "play a task in the terminal"


def add_options(parser: argparse.ArgumentParser) -> None:
    argument(
        parser,
        "task TASK",
        "for example babyai/open/000 (see: evalharness show --tasks); with --as also a list as for `run --tasks`",
    )
    argument(parser, "--as NAME", "record a run of the policy human:NAME", dest="person")
    argument(parser, "-o --output DIR", "run folder (with --as)")
    argument(parser, "--list-actions", "with --as: show the valid actions at each turn")
    argument(parser, "--perturb NAME", "with --as: word the actions differently, as run does")
    add_suite_options(parser)
    argument(parser, "--max-turns N", "default: as many as in a run")
    add_data_option(parser)


def run(args: argparse.Namespace) -> int:
    if args.person is not None:
        from evalharness.cli.play_recorded import play_recorded

        return play_recorded(args)
    if unused := [name for name in ("output", "list_actions", "perturb") if getattr(args, name)]:
        raise UserError(f"--{unused[0].replace('_', '-')} needs --as NAME, which records what you play")
    from rich.text import Text

    from evalharness.base.terminal import complete_lines
    from evalharness.envs import specs
    from evalharness.suites.selection import find_task

    folder = data_folder(args)
    task = find_task(specs(), args.task, folder, args.suite_seed or 0)
    environment = specs()[task.family].make(folder)
    max_turns = args.max_turns or specs()[task.family].own.max_turns
    console = make_console()
    try:
        observation, info = environment.reset(options={"task": task})
        console.print(Text(f"Goal: {printable(environment.goal)}", style="bold"))
        console.print(Text(printable(observation)))
        console.print(
            Text("(an empty line lists the valid actions, tab completes one; 'quit' ends)", style="dim")
        )
        complete_lines(lambda: [printable(action) for action in environment.valid_actions()])
        turn = 0
        while turn < max_turns:
            try:
                action = input(f"[{turn + 1}/{max_turns}] > ").strip()
            except EOFError:
                console.print()
                break
            if action == "quit":
                break
            if action == "!oracle":
                console.print(Text("\n".join(environment.oracle()) or "no plan is known", style="magenta"))
                continue
            if not action:
                console.print(Text("\n".join(map(printable, environment.valid_actions())), style="green"))
                continue
            turn += 1
            observation, _, terminated, _, info = environment.step(action)
            console.print(Text(printable(observation)))
            console.print(Text(f"progress {100 * info['progress']:.0f} %", style="dim"))
            if terminated:
                break
        verdict = "solved" if info["success"] else "not solved"
        console.print(Text(f"{verdict}, progress {100 * info['progress']:.0f} %, {turn} turns", style="bold"))
    finally:
        environment.close()
    return 0
