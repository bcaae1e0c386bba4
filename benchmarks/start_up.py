"""What a person waits for before anything happens, beside what starting Python and importing pandas cost.

    python benchmarks/start_up.py [--times 7] [--json FILE]

Wall time, the median of TIMES, in seconds and as a multiple of `python -c pass`: `--help`, `tasks`, `show` of a run
that was read before, and of each family the first turn of the random policy, from the command to the turn's end.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from statistics import median

FAMILIES = ("alfworld", "babyai", "jericho", "pddl", "sciworld")


class StartError(Exception):
    """A command failed; its output."""


def run(words: Sequence[object], variables: dict[str, str]) -> float:
    """Seconds."""
    began = time.perf_counter()
    done = subprocess.run([sys.executable, *map(str, words)], env=variables, capture_output=True, text=True)
    if done.returncode:
        raise StartError(done.stdout + done.stderr)
    return time.perf_counter() - began


def first_turn(family: str, folder: Path, variables: dict[str, str]) -> float:
    """Seconds from the command to the end of the first turn of the first episode."""
    began = time.time()
    run(
        ["-m", "evalharness", "run", "--model", "random", "--suite", "open", "--tasks", family, "--limit", 1,
         "--max-turns", 1, "-o", folder],
        variables,
    )  # fmt: skip
    episode = json.loads((folder / "episodes.jsonl").read_text())
    ended: float = episode["started"] + episode["wall_s"]
    return ended - began


def measure(times: int, folder: Path) -> dict[str, float]:
    """Median seconds by what was waited for. Every command is run once before: caches are warm."""
    variables = {**os.environ, "EVALHARNESS_HOME": str(folder / "home"), "COLUMNS": "100"}
    number = count()
    shown = folder / "shown"
    first_turn("babyai", shown, variables)
    own = ("-m", "evalharness")
    what: dict[str, Callable[[], float]] = {
        "python -c pass": lambda: run(["-c", "pass"], variables),
        "python -c 'import pandas'": lambda: run(["-c", "import pandas"], variables),
        "evalharness --help": lambda: run([*own, "--help"], variables),
        "evalharness show --tasks": lambda: run([*own, "show", "--tasks"], variables),
        "evalharness show RUN": lambda: run([*own, "show", shown], variables),
    }
    for family in FAMILIES:
        what[f"first turn, {family}"] = lambda family=family: first_turn(  # type: ignore[misc]
            family, folder / f"run-{next(number)}", variables
        )
    found = {}
    for name, once in what.items():
        once()
        found[name] = median(once() for _ in range(times))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--times", type=int, default=7, metavar="N", help="runs of each command")
    parser.add_argument("--json", metavar="FILE", help="write the figures as JSON (- for stdout)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measure(options.times, Path(folder))
    bare = found["python -c pass"]
    for name, seconds in found.items():
        print(f"{name:28} {seconds:6.2f} s   {seconds / bare:5.1f} times python -c pass", file=sys.stderr)
    if options.json:
        text = json.dumps(found, indent=2) + "\n"
        if options.json == "-":
            sys.stdout.write(text)
        else:
            Path(options.json).write_text(text)


if __name__ == "__main__":
    main()
