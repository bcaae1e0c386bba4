"""A data set of conversations as a run folder: the names that who makes one and who reads one share."""

from __future__ import annotations

from pathlib import Path

TRAINING_DATA = "training data"
"""`kind` of the model in its manifest."""
MARK_SUFFIX = "_error"
"""A turn that is marked with `place` has the format error `place_error`."""


def judged_folder(data: Path) -> Path:
    """`data.jsonl` -> `data.judged`, which keeps what raters say of it."""
    return data.with_name(f"{data.stem}.judged")
