"""`evalharness export`: a run in the formats of other tools."""

from __future__ import annotations

import argparse
from pathlib import Path

_DESCRIPTION = """\
Write a run in the format of another tool; none of them has to be installed.

  inspect      an Inspect log, RUN.eval: open it with `inspect view`, or inspect_ai.analysis
  atif         Harbor's agent trajectory interchange format: a folder with a JSON document an episode
  openai-chat  JSON lines of chat messages, RUN.jsonl, as fine-tuning takes them
  csv          episodes.csv and turns.csv; text that a spreadsheet would take for a formula gets an apostrophe
  parquet      episodes.parquet and turns.parquet
"""
FORMATS = ("inspect", "atif", "openai-chat", "csv", "parquet")
_SUFFIX = {"inspect": ".eval", "openai-chat": ".jsonl", "atif": "-atif", "csv": "-csv", "parquet": "-parquet"}


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "export",
        help="as an Inspect log, ATIF, chat messages, CSV or parquet",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path, metavar="RUN", help="run folder")
    parser.add_argument("--format", required=True, choices=FORMATS, help="see above")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="PATH",
        help="file or folder to write (default: named after the run)",
    )
    parser.add_argument(
        "--successful",
        action="store_true",
        help="only episodes that solved their task (inspect, atif, openai-chat)",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from evalharness.errors import UserError
    from evalharness.records.store import read_manifest
    from evalharness.report.terminal import say

    manifest = read_manifest(args.folder)
    if args.successful and args.format in ("csv", "parquet"):
        raise UserError(f"--successful has no meaning for {args.format}: use its column `success`")
    target = args.output or Path(args.folder.resolve().name + _SUFFIX[args.format])
    try:
        if not _SUFFIX[args.format].startswith("."):
            target.mkdir(parents=True, exist_ok=True)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
        written = _write(args, target, manifest)
    except OSError as error:
        raise UserError(f"cannot write {target}: {error.strerror}; choose another with -o PATH") from None
    say(f"wrote {target} ({written})")
    return 0


def _write(args: argparse.Namespace, target: Path, manifest: dict[str, object]) -> str:
    import json

    from evalharness.analysis.summary import is_complete, summarize
    from evalharness.analysis.tables import sorted_episodes
    from evalharness.exports import atif, inspect_log, openai_chat, tables
    from evalharness.exports.conversation import keeps_thinking

    chosen = (e for e in sorted_episodes(args.folder) if e.success or not args.successful)
    match args.format:
        case "inspect":
            whole = is_complete(summarize(args.folder)) and not args.successful
            return _episodes(inspect_log.write(target, chosen, manifest, complete=whole))
        case "atif":
            count = 0
            for episode in chosen:
                document = json.dumps(atif.trajectory(episode, manifest), indent=1)
                (target / atif.file_name(episode)).write_text(document + "\n", encoding="utf-8")
                count += 1
            return _episodes(count)
        case "openai-chat":
            count = 0
            with target.open("w", encoding="utf-8") as file:
                for episode in chosen:
                    file.write(openai_chat.line(episode, keep_thinking=keeps_thinking(manifest)))
                    count += 1
            return _episodes(count)
        case _:
            make = tables.write_csv if args.format == "csv" else tables.write_parquet
            return ", ".join(path.name for path in make(args.folder, target))


def _episodes(count: int) -> str:
    return f"{count} episode" if count == 1 else f"{count} episodes"
