"""`python -m evalharness.data.make_table FOLDER`: write the hashes of a complete data folder into the tables.

For maintainers, when the published data itself changes. Everything but `files` in a table is written by hand.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from evalharness.base.reading import sha256_of
from evalharness.data.table import published


def make_tables(data: Path) -> None:
    for family in published().values():
        table: dict[str, Any] = json.loads(family.source.read_text())
        root = family.root(data)
        files: dict[str, str | None] = {
            name: None for name, digest in table["files"].items() if digest is None
        }
        for parent, _, names in os.walk(root):
            for path in (Path(parent) / name for name in names):
                if path.suffix not in (".gz", ".zip"):
                    files[path.relative_to(root).as_posix()] = sha256_of(path)
        table["files"] = dict(sorted(files.items()))
        family.source.write_text(json.dumps(table, indent=1) + "\n")
        print(f"{family.family}: {len(files)} files")


if __name__ == "__main__":
    make_tables(Path(sys.argv[1]))
