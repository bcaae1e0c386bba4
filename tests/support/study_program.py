"""In place of `evalharness` in a study: makes what a job makes, and notes each start.

`python study_program.py NOTES COMMAND ... -o PATH`. A file NOTES/fail-KIND-NAME makes a job fail, NOTES/hang-KIND-NAME
makes one wait for ever.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path


def main() -> int:
    notes, words = Path(sys.argv[1]), sys.argv[2:]
    target = Path(words[words.index("-o") + 1])
    kind = {"tune": "training", "run": "run", "probe": "probe"}.get(words[0], "data")
    with (notes / "starts").open("a") as file:
        file.write(f"{kind} {target.name} {os.environ.get('CUDA_VISIBLE_DEVICES', '-')} {os.getpid()}\n")
    if (notes / f"hang-{kind}-{target.name}").exists():
        time.sleep(600)
    if (notes / f"fail-{kind}-{target.name}").exists():
        print("evalharness: memory did not suffice: a smaller --micro-batch", file=sys.stderr)
        return 2
    if target.suffix:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("{}\n")
    else:
        target.mkdir(parents=True, exist_ok=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
