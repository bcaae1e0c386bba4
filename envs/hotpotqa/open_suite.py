"""The page stores that tasks of the open suite are played on."""

from __future__ import annotations

import sqlite3
import tempfile
from functools import cache
from pathlib import Path

from evalharness.base.paths import cache_folder
from evalharness.envs.base import InvalidTaskError, Task
from evalharness.envs.hotpotqa.generator import FAMILY
from evalharness.envs.hotpotqa.pages import PageStore, PageStoreError, open_store
from evalharness.envs.hotpotqa.store_writer import write_small
from evalharness.envs.hotpotqa.world import make_encyclopedia


def open_store_of(task: Task) -> PageStore:
    """The page store of an open task, made when it is first needed."""
    seed, wanted = task.payload.get("world"), task.payload.get("pages_sha256")
    if not isinstance(seed, int) or not isinstance(wanted, str):
        raise InvalidTaskError(f"{task.id} is not a HotpotQA task: its payload needs a world and its hash")
    path = cache_folder() / FAMILY / f"{file_name(wanted)}.sqlite"
    try:
        return open_store(path)
    except PageStoreError:
        pass
    world = make_encyclopedia(seed)
    if world.sha256 != wanted:
        raise InvalidTaskError(f"{task.id}: this version makes another world of seed {seed}")
    source = f"world of seed {seed}"
    try:
        write_small(path, world.pages, world.redirects, source)
    except (OSError, sqlite3.Error):  # no cache can be written: a file that goes with the process
        path = Path(_scratch().name) / path.name
        write_small(path, world.pages, world.redirects, source)
    return open_store(path)


def file_name(sha256: str) -> str:
    """A file name for a hash that came out of a task: hexadecimal digits alone."""
    name = "".join(c for c in sha256 if c in "0123456789abcdef")
    if len(name) != 64 or name != sha256:
        raise InvalidTaskError("the hash of a page store has 64 hexadecimal digits")
    return name


@cache
def _scratch() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="evalharness-hotpotqa-")
