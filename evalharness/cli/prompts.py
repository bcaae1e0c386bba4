"""Each family has one prompt file. `export` writes the harness's prompt files and a README.md into a folder; `run
--prompts DIR` plays with the files of a folder.
"""

from __future__ import annotations

import argparse

from evalharness.base.errors import UserError, system_errors
from evalharness.base.paths import prompts_folder, write_whole
from evalharness.base.reading import read_text
from evalharness.cli.common import families_of, require_family
from evalharness.cli.output import make_console, say
from evalharness.cli.parser import CommandParser, argument, subcommand

HELP = "show the prompts, or export them to write your own"


def add_options(parser: CommandParser) -> None:
    actions = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    export = subcommand(actions, "export", _export, "write the prompt files into a folder")
    argument(export, "folder DIR", "folder to write")
    argument(export, "--tasks LIST", "only these families: babyai,pddl (default: all)")
    argument(export, "--force", "replace existing files")

    show = subcommand(actions, "show", _show, "print the prompt of a family")
    argument(show, "family FAMILY", "see: evalharness show --tasks")
    argument(show, "--kind KIND", "kind of task (default: the first kind)")
    argument(show, "--prompts DIR", "folder with your own prompt files")
    argument(show, "--system TEXT|FILE", "apply this option of a configuration file")
    argument(show, "--shots N", "apply this option of `run`")
    argument(show, "--perturb NAME", "apply this option of `run`")
    argument(show, "--file", "print the prompt file instead")


def _export(args: argparse.Namespace) -> int:
    """Write the prompt files into a folder."""
    from evalharness.envs import specs
    from evalharness.protocol.prompt import prompt_path

    known = specs()
    families = families_of(args.tasks, known) if args.tasks else sorted(known)
    files = {f"{family}.yaml": prompt_path(known[family]) for family in families}
    files["README.md"] = prompts_folder() / "README.md"
    existing = [name for name in files if (args.folder / name).exists() and name != "README.md"]
    if existing and not args.force:
        raise UserError(f"{args.folder} already has {existing[0]}; --force replaces it")
    with system_errors(f"cannot write to {args.folder}"):
        args.folder.mkdir(parents=True, exist_ok=True)
        for name, source in files.items():
            write_whole(args.folder / name, source.read_bytes())
    say(f"{len(files) - 1} prompt files in {args.folder}; play with them: evalharness run --prompts {args.folder} ...",
        stderr=False)  # fmt: skip
    return 0


def _show(args: argparse.Namespace) -> int:
    """Print the prompt that is sent for a family, without goal and first observation."""
    from evalharness.config import make_config
    from evalharness.protocol.perturb import make_surface
    from evalharness.protocol.prompt import load_prompt, prompt_path

    spec = require_family(args.family)
    if args.file:
        path = args.prompts / f"{args.family}.yaml" if args.prompts else prompt_path(spec)
        load_prompt(spec, args.prompts)
        say(read_text(path).rstrip("\n"), stderr=False)
        return 0
    changed = make_config(
        {"model": "demo", "system": args.system, "shots": args.shots, "perturb": args.perturb}
    )
    prompt = load_prompt(spec, args.prompts, changed.adaptation)
    kinds = sorted(prompt.variants)
    if args.kind and args.kind not in kinds:
        others = f", or give one of: {', '.join(kinds)}" if kinds else ""
        raise UserError(f"{args.family}: kind {args.kind!r} has no own prompt; leave --kind out{others}")
    kind = args.kind or (kinds[0] if kinds and prompt.example is None else "")
    if line := prompt.fewer_examples([kind]):
        say(line, stderr=True)
    surface = make_surface(spec, changed.agent.perturb)
    perturbed = surface.prompt(prompt.for_kind(kind))
    console = make_console()
    for message in perturbed.messages(
        surface.perturbed, "...", "...", max_turns=changed.agent.turn_limit(spec)
    ):
        console.print(f"--- {message['role']}", style="bold")
        console.print(message["content"], soft_wrap=True)
    if kinds:
        say(f"\nkinds with their own prompt (--kind): {', '.join(kinds)}", stderr=True)
    return 0
