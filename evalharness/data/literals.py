"""Constants out of a Python file that a publisher keeps data in. The file is parsed, never executed."""

from __future__ import annotations

import ast
import json
from collections.abc import Collection
from pathlib import Path

from evalharness.base.errors import UserError

MAX_BYTES = 2**20


def literals_as_json(source: Path, names: Collection[str]) -> bytes:
    """`{name: value}` of the module-level assignments of `names`, as canonical JSON. Raises UserError."""
    try:
        if source.stat().st_size > MAX_BYTES:
            raise ValueError(f"over {MAX_BYTES} bytes")
        found = {}
        for statement in ast.parse(source.read_bytes()).body:
            if isinstance(statement, ast.Assign):
                for target in statement.targets:
                    if isinstance(target, ast.Name) and target.id in names:
                        found[target.id] = ast.literal_eval(statement.value)
        if missing := sorted(set(names) - set(found)):
            raise ValueError(f"no constant {', '.join(missing)}")
        return (json.dumps(found, indent=1, sort_keys=True) + "\n").encode()
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError) as error:
        raise UserError(
            f"cannot read the constants {', '.join(sorted(names))} from the source: {error}"
        ) from error
