"""Open suites of a few tasks, in a home of their own: the whole ones take minutes to make."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import pytest

from evalharness.envs import specs
from evalharness.envs.base import Task
from evalharness.suites import open as suites


@contextmanager
def home_at(folder: Path) -> Iterator[Path]:
    """Meanwhile it is the user's home, without published data."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVALHARNESS_HOME", str(folder))
        patch.delenv("EVALHARNESS_DATA", raising=False)
        yield folder


def freeze(family: str, seed: int, tasks: Iterable[Task]) -> None:
    """As the open suite of `seed`."""
    spec = specs()[family]
    environment = spec.make(None)
    suites.freeze(spec, seed, [suites.Proven(task, suites.prove(environment, task)) for task in tasks])
    environment.close()


def first_tasks(family: str, seed: int, count: int) -> Iterator[Task]:
    generate = specs()[family].suites.generate
    assert generate is not None
    return islice(generate(seed), count)
