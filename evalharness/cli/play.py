"""`evalharness play`: a person plays a task."""

from __future__ import annotations

import argparse

from evalharness.cli.common import add_data_option, data_folder

_DESCRIPTION = """\
Play a task yourself. Type an action; an empty line lists the valid ones, `quit` (or Ctrl-D) ends. In a terminal the tab
key completes an action and the arrow keys bring back earlier ones. `!oracle` shows the oracle's plan from the start.
"""


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:

    parser = commands.add_parser("play", help="play a task in the terminal", description=_DESCRIPTION)
    parser.add_argument(
        "task", metavar="TASK_ID", help="for example babyai/open/000 (see: evalharness tasks)"
    )
    parser.add_argument(
        "--suite-seed", type=int, default=0, metavar="N", help="which open suite (default: 0)"
    )
    parser.add_argument("--max-turns", type=int, metavar="N", help="default: as many as in a run")
    add_data_option(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from rich.text import Text

    from evalharness.base.terminal import make_console
    from evalharness.base.text import printable
    from evalharness.cli.line_editing import LineReader
    from evalharness.envs import specs
    from evalharness.suites.selection import find_task

    folder = data_folder(args)
    task = find_task(specs(), args.task, folder, args.suite_seed)
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
        lines = LineReader(lambda: [printable(action) for action in environment.valid_actions()])
        turn = 0
        while turn < max_turns:
            prompt = f"[{turn + 1}/{max_turns}] > "
            try:
                line = lines.ask(prompt)
            except EOFError:
                console.print()
                break
            action = line.strip()
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
