"""Where the Inform 6 Library is: the parser and the verbs that our stories are compiled with.

It is not ours and not part of this project. Only writing new stories needs it: suite seeds other than 0, and
`evalharness.envs.jericho.build_stories`. The stories of suite seed 0 are compiled already.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Final

from evalharness.envs.base import InvalidTaskError

VARIABLE: Final = "EVALHARNESS_INFORM6_LIBRARY"
_DEBIAN: Final = Path("/usr/share/inform6/library")
"""Where Debian's and Ubuntu's package `inform6-library` puts it."""
RELEASE: Final = "6.12.6"
_SHA256: Final = {
    "english.h": "cb7d7b7e60af5d50393a1b969c9cf1bfc005f09322e8d8f5fa7fb9fc7755fd0f",
    "grammar.h": "818e3e63fca549c8dd0f5070d3c5ba9d47cf3b37959c817ab87167337465600d",
    "linklpa.h": "c8bead8ae48d105522393eed39c961cc49683aa2e4ae0438c9fd72480d43a703",
    "parser.h": "03a3a0ad3e4e22079d428d1eb69f2654cb2f6c1335a8a56ffea8248f481676e9",
    "verblib.h": "04a0033fc8ad8aa501740770b758b52684d46acb9f144149cfb174fc579b0ff4",
    "version.h": "8837af306e3e48cbb0fc7e22b0971f772a05bb67c1a42913821acc12452b414a",
}
"""Another release compiles to other bytes, and a suite seed would no longer name one suite."""


def find_library() -> Path:
    """The library's folder, every file of it checked by hash. Raises InvalidTaskError with the way out."""
    named = os.environ.get(VARIABLE)
    folder = Path(named).expanduser() if named else _DEBIAN
    how = (
        f"a suite seed other than 0 writes new stories with it: sudo apt-get install inform6-library, "
        f"or name the folder of release {RELEASE} in {VARIABLE}, or use --suite-seed 0"
    )
    for name, expected in _SHA256.items():
        try:
            found = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        except OSError:
            raise InvalidTaskError(
                f"the Inform 6 Library is not at {folder} ({name} is missing); {how}"
            ) from None
        if found != expected:
            raise InvalidTaskError(f"{folder / name} is not of Inform 6 Library {RELEASE}; {how}")
    return folder
