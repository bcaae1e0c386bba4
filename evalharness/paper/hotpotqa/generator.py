"""The open suite: questions about a generated world, and their page stores."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path

from evalharness.base.paths import cache_folder
from evalharness.envs.base import InvalidTaskError, Task
from evalharness.envs.frozen import FROZEN_SEED
from evalharness.paper.hotpotqa.pages import PageStore, PageStoreError, open_store
from evalharness.paper.hotpotqa.questions import Question, make_questions
from evalharness.paper.hotpotqa.store_writer import write_small
from evalharness.paper.hotpotqa.world import make_encyclopedia

FAMILY = "hotpotqa"
HARD_TURNS = 5
"""A task is hard if the oracle needs this many turns: a name is ambiguous, or a fact is far down on a page."""


@lru_cache(maxsize=4)
def make_suite_questions(suite_seed: int) -> list[Question]:
    """Return the questions in the order of the tasks. Questions of suite seed 0 are excluded from all other seeds."""
    asked = set[str]()
    if suite_seed != FROZEN_SEED:
        asked = {question.text for question in make_suite_questions(FROZEN_SEED)}
    return make_questions(make_encyclopedia(suite_seed), asked)


def generate(suite_seed: int) -> Iterator[Task]:
    """Yield all tasks in order."""
    sha256 = make_encyclopedia(suite_seed).sha256
    for index, question in enumerate(make_suite_questions(suite_seed)):
        yield Task(
            id=f"{FAMILY}/open/{index:03d}",
            family=FAMILY,
            suite="open",
            index=index,
            goal=question.text,
            difficulty="hard" if len(question.plan) >= HARD_TURNS else "easy",
            kind=question.kind,
            labels="simulator",
            subgoals=list_subgoals(question.supporting),
            payload={
                "answer": question.answer,
                "supporting": list(question.supporting),
                "world": suite_seed,
                "pages_sha256": sha256,
            },
        )


def find_plan(task: Task) -> list[str]:
    """Return the oracle's plan of an open task."""
    asked = (
        question for question in make_suite_questions(task.payload["world"]) if question.text == task.goal
    )
    return next((question.plan for question in asked), [])


def list_subgoals(supporting: tuple[str, ...]) -> tuple[str, ...]:
    """Return the subgoals of a question: to open each supporting page."""
    return tuple(f"open the page {title}" for title in supporting)


def open_task_store(task: Task) -> PageStore:
    """Return the page store of a generated task. If it does not exist, make it."""
    seed, sha256 = task.payload.get("world"), task.payload.get("pages_sha256")
    if not isinstance(seed, int) or not isinstance(sha256, str):
        raise InvalidTaskError(f"{task.id} is not a HotpotQA task: its payload needs a world and its hash")
    path = cache_folder() / FAMILY / f"{file_name(sha256)}.sqlite"
    try:
        return open_store(path)
    except PageStoreError:
        pass
    world = make_encyclopedia(seed)
    if world.sha256 != sha256:
        raise InvalidTaskError(f"{task.id}: this version makes another world of seed {seed}")
    source = f"world of seed {seed}"
    try:
        write_small(path, world.pages, world.redirects, source)
    except (OSError, sqlite3.Error):  # the cache is not writable: use a file that this process removes
        path = Path(_scratch().name) / path.name
        write_small(path, world.pages, world.redirects, source)
    return open_store(path)


def file_name(sha256: str) -> str:
    """Check a hash from a task, and return it as a file name: it may have hexadecimal digits only."""
    name = "".join(c for c in sha256 if c in "0123456789abcdef")
    if len(name) != 64 or name != sha256:
        raise InvalidTaskError("the hash of a page store has 64 hexadecimal digits")
    return name


@cache
def _scratch() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="evalharness-hotpotqa-")
