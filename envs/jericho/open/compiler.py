"""Compile Inform 6 source to a story file, with the compiler in the textworld package."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from evalharness.envs.base import InvalidTaskError

VARIABLE: Final = "EVALHARNESS_INFORM6_LIBRARY"
_DEBIAN: Final = Path("/usr/share/inform6/library")
"""Folder of the package `inform6-library` in Debian and Ubuntu."""
RELEASE: Final = "6.12.6"
_SHA256: Final = {
    "english.h": "cb7d7b7e60af5d50393a1b969c9cf1bfc005f09322e8d8f5fa7fb9fc7755fd0f",
    "grammar.h": "818e3e63fca549c8dd0f5070d3c5ba9d47cf3b37959c817ab87167337465600d",
    "linklpa.h": "c8bead8ae48d105522393eed39c961cc49683aa2e4ae0438c9fd72480d43a703",
    "parser.h": "03a3a0ad3e4e22079d428d1eb69f2654cb2f6c1335a8a56ffea8248f481676e9",
    "verblib.h": "04a0033fc8ad8aa501740770b758b52684d46acb9f144149cfb174fc579b0ff4",
    "version.h": "8837af306e3e48cbb0fc7e22b0971f772a05bb67c1a42913821acc12452b414a",
}
"""File of the library -> SHA-256. With another release, the same suite seed would give other story files."""


def find_library() -> Path:
    """Return the library's folder. Raise InvalidTaskError, which says what to install, if a file has another hash."""
    named = os.environ.get(VARIABLE)
    folder = Path(named).expanduser() if named else _DEBIAN
    how = (
        f"a suite seed other than 0 writes new stories with it: sudo apt-get install inform6-library, "
        f"or name the folder of release {RELEASE} in {VARIABLE}, or use --suite-seed 0"
    )
    for name, expected in _SHA256.items():
        try:
            sha256 = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        except OSError:
            raise InvalidTaskError(
                f"the Inform 6 Library is not at {folder} ({name} is missing); {how}"
            ) from None
        if sha256 != expected:
            raise InvalidTaskError(f"{folder / name} is not the file of Inform 6 Library {RELEASE}; {how}")
    return folder


STORIES: Final = Path(__file__).with_name("stories")

_BUNDLED: Final = "thirdparty/inform7-6M62/share/inform7/Compilers/inform6"


def find_compiler() -> Path:
    """Return the compiler in the package textworld, or else on the PATH. Raise InvalidTaskError if neither exists."""
    spec = find_spec("textworld")
    for folder in spec.submodule_search_locations or () if spec else ():
        if (path := Path(folder) / _BUNDLED).is_file():
            return path
    for name in ("inform6", "inform"):
        if program := shutil.which(name):
            return Path(program)
    raise InvalidTaskError(
        "a suite seed other than 0 writes new stories and needs an Inform 6 compiler; textworld's wheel for Linux"
        " brings one, or install the package inform6-compiler; or use --suite-seed 0"
    )


def compile_story(source: str) -> bytes:
    """Compile a story for version 5 of the Z-machine. Equal sources give equal bytes: common.h sets the serial
    number."""
    with tempfile.TemporaryDirectory(prefix="evalharness-story-") as folder:
        written, story = Path(folder) / "story.inf", Path(folder) / "story.z5"
        written.write_text(source, encoding="ascii")
        # Use relative include paths, because Inform splits lists of paths at commas and fails on spaces.
        (Path(folder) / "library").symlink_to(find_library())
        (Path(folder) / "ours").symlink_to(STORIES)
        command = [
            str(find_compiler()),
            "-v5",
            "-w",
            "+language_name=english",
            "+include_path=library/,ours/",
            str(written),
            str(story),
        ]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode != 0 or not story.is_file():
            raise InvalidTaskError(
                f"the Inform 6 compiler refused one of our stories:\n{done.stdout}{done.stderr}"
            )
        return story.read_bytes()
