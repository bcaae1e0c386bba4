"""List runs (`show` without a run)."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from evalharness.base.errors import UserError
from evalharness.cli.output import note, results_console, write_json

RESULTS = Path("results")


def list_runs(args: argparse.Namespace, folders: Sequence[Path]) -> int:
    from evalharness.runs.listing import list_folder, newest_first
    from evalharness.runs.listing_table import print_runs

    for folder in folders:
        if not folder.is_dir():
            raise UserError(f"{folder} is {'a file' if folder.exists() else 'missing'}; name a folder")
    folders = folders or [RESULTS]
    entries = newest_first([entry for folder in folders if folder.is_dir() for entry in list_folder(folder)])
    write_json(args.json, {"schema": 1, "runs": [entry.to_json() for entry in entries]})
    if entries:
        print_runs(results_console(args), entries)
    else:
        where = ", ".join(map(str, folders))
        note(f"no run yet in {where}")
    return 0
