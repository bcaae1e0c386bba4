"""thoughts      a t-SNE map of the thoughts of runs and training files; the mean similarity within each
environments  how similar training data is to the test environments

A training file is JSON lines or a JSON list of {"messages": [...]} or {"conversations": [...]}.
Needs: pip install 'evalharness[diversity]'. docs/paper.md
"""

from __future__ import annotations

import argparse

from evalharness.base.errors import UserError, at_least
from evalharness.base.paths import data_folder
from evalharness.cli.common import add_plots_option
from evalharness.cli.output import say, write_picture
from evalharness.cli.parser import argument

HELP = "draw maps of thoughts, and the similarity of data to environments"


def add_options(parser: argparse.ArgumentParser) -> None:
    argument(parser, "what {thoughts,environments}", "see above")
    argument(parser, "sources SOURCE", "run folders or training files", nargs="*")
    add_plots_option(parser)
    argument(
        parser,
        "--limit N",
        "at most N thoughts of each source, drawn evenly (default: all)",
    )
    argument(parser, "--pool N", "at most N thoughts in total, drawn by --seed", default=8100)
    argument(parser, "--seed N", "seed of the draw", default=0)
    argument(
        parser,
        "--embedding {auto,minilm,tfidf}",
        "text embedding (default: minilm if installed, else tfidf)",
        default="auto",
    )


def run(args: argparse.Namespace) -> int:
    from evalharness.paper import diversity
    from evalharness.paper import diversity_plots as pictures
    from evalharness.results.report import looks

    at_least(1, limit=args.limit, pool=args.pool)
    looks.style()
    if args.what == "environments":
        return _environments(args)
    if not args.sources:
        raise UserError("diversity thoughts needs a run folder or training file")
    read = [diversity.read_thoughts(path, args.limit) for path in args.sources]
    sources = diversity.told_apart(read, args.sources)
    drawn = [source for source in diversity.pooled(sources, args.pool, args.seed) if source.texts]
    rows, mapped, name = diversity.thought_map(drawn, args.embedding)
    lines = [str(source) for source in mapped]
    for line in lines:
        say(pictures.shown(line, 200))
    with looks.style():
        write_picture(args.output / "thoughts", rows, pictures.draw_thoughts(rows, lines, name))
    return 0


def _environments(args: argparse.Namespace) -> int:
    from evalharness.paper import diversity_plots as pictures
    from evalharness.paper.similarity import FLAG, block_means
    from evalharness.results.report import looks

    if not args.sources:
        raise UserError("diversity environments needs a training file")
    rows, name, flagged = block_means(args.sources, args.seed, args.embedding, data_folder())
    for row in flagged:
        say(f"{row['first']} x {row['second']}: {row['similarity']:.2f}, not below {FLAG}")
    with looks.style():
        write_picture(args.output / "environments", rows, pictures.draw_similarity(rows, name))
    return 0
