"""A frozen open suite: the cases of suite seed 0, kept beside their generator under one content hash.

One case a line, so that a change of the suite can be read.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from evalharness.envs.base import InvalidTaskError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

FROZEN_SEED = 0
Case = TypeVar("Case", bound="DataclassInstance")


@dataclass(frozen=True)
class FrozenSuite(Generic[Case]):
    """Where a suite is kept, and what its cases are: frozen dataclasses of JSON values, with tuples for lists."""

    file: Path
    case: type[Case]
    version: int = 1
    """`TaskSuites.open_version`."""

    def cases(self) -> tuple[Case, ...]:
        """Read once a process. Raises InvalidTaskError where they do not match their content hash."""
        return _read(self)

    def write(self, cases: Iterable[Case]) -> None:
        """As they come; says each on standard error, since finding them all can take minutes."""
        found = []
        for case in cases:
            print(case, file=sys.stderr)
            found.append(case)
        head = {"suite_seed": FROZEN_SEED, "version": self.version, "sha256": content_hash(found)}
        write_table(self.file, head, "cases", map(asdict, found))


@cache
def _read(suite: FrozenSuite[Case]) -> tuple[Case, ...]:
    stored = json.loads(suite.file.read_text(encoding="utf-8"))
    cases = tuple(
        suite.case(
            **{name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}
        )
        for row in stored["cases"]
    )
    if content_hash(cases) != stored["sha256"]:
        raise InvalidTaskError(f"{suite.file} does not match its content hash; reinstall evalharness")
    return cases


def content_hash(cases: Sequence[DataclassInstance]) -> str:
    """SHA-256 over the canonical JSON of all cases."""
    text = json.dumps([asdict(case) for case in cases], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def write_table(file: Path, head: dict[str, Any], name: str, rows: Iterable[dict[str, Any]]) -> None:
    """A JSON object of `head` and, as its last value, `rows`, one a line."""
    lines = ",\n".join(json.dumps(row) for row in rows)
    file.write_text(f'{json.dumps(head)[:-1]}, "{name}": [\n{lines}\n]}}\n', encoding="utf-8")
