"""The open suite of PDDL of one other seed than 0: planning takes long, so the tests share it."""

from __future__ import annotations

import pytest
from made_once import made_once

from evalharness.envs import specs
from evalharness.envs.base import Task
from evalharness.suites import open as suites

OTHER = 22
"""A seed that once drew a negative number of drinks."""


def other_suite(factory: pytest.TempPathFactory) -> list[Task]:
    """Generated and proven."""
    spec = specs()["pddl"]
    folder = made_once(
        factory, "pddl-suite", lambda folder: suites.freeze(spec, OTHER, suites.build(spec, OTHER), folder)
    )
    rows = suites.read_frozen(spec, OTHER, folder)
    assert rows is not None
    return [row.task for row in rows]
