import os
import sys

# `python -m` imports from the current folder first, which may contain `envs/`, `random.py` or `numpy.py`. Remove this
# folder from the path before other imports. (Python itself has imported `os` and `sys`.)
if not sys.flags.safe_path and sys.path[0] in ("", os.getcwd()):  # noqa: PTH109
    del sys.path[0]

from evalharness.cli import main

sys.exit(main())
