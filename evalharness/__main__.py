import os
import sys

# `python -m` looks in the current folder first, and a folder of the user's may hold `envs/`, `random.py` or `numpy.py`.
# The command `evalharness` does not look there. (`os` is loaded whenever Python starts; nothing else is, before this.)
if not sys.flags.safe_path and sys.path[0] in ("", os.getcwd()):  # noqa: PTH109
    del sys.path[0]

from evalharness.cli import main

sys.exit(main())
