"""Inform 6 source -> story file, with the compiler that comes inside the textworld package."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from evalharness.envs.base import InvalidTaskError
from evalharness.envs.jericho.inform_library import find_library

STORIES: Final = Path(__file__).with_name("stories")
"""Our sources and stories."""

_BUNDLED: Final = "thirdparty/inform7-6M62/share/inform7/Compilers/inform6"


def find_compiler() -> Path:
    """textworld's own, which makes the same bytes everywhere, else one on the path. Raises InvalidTaskError."""
    spec = find_spec("textworld")
    for folder in spec.submodule_search_locations or () if spec else ():
        if (path := Path(folder) / _BUNDLED).is_file():
            return path
    for name in ("inform6", "inform"):
        if found := shutil.which(name):
            return Path(found)
    raise InvalidTaskError(
        "a suite seed other than 0 writes new stories and needs an Inform 6 compiler; textworld's wheel for Linux"
        " brings one, or install the package inform6-compiler; or use --suite-seed 0"
    )


def compile_story(source: str) -> bytes:
    """A version 5 story. The same source gives the same bytes: release and serial number are fixed in common.h."""
    with tempfile.TemporaryDirectory(prefix="evalharness-story-") as folder:
        written, story = Path(folder) / "story.inf", Path(folder) / "story.z5"
        written.write_text(source, encoding="ascii")
        # Relative include paths: Inform cuts its path lists at commas and would stumble over spaces.
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
                f"the Inform 6 compiler refused a story of ours:\n{done.stdout}{done.stderr}"
            )
        return story.read_bytes()
