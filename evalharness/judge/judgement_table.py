"""Judgements as a table for analysis: `judgements.parquet`, a row a turn, joinable with the run's `turns.parquet`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evalharness.base.errors import InfrastructureError
from evalharness.base.paths import replacing
from evalharness.records.store import write_atomically


def write_judgements(
    folder: Path, lines: Sequence[Mapping[str, Any]], summary: Mapping[str, Any], summary_name: str
) -> None:
    """Sorted by task, sample and turn; written whole or not at all."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    text, flag, whole, real = pa.string(), pa.bool_(), pa.int64(), pa.float64()
    schema = pa.schema(
        [
            *((name, text) for name in ("task_id", "family")),
            *((name, whole) for name in ("sample", "turn")),
            ("wrong", flag),
            *((name, text) for name in ("kind", "note", "reply", "refusal", "finish_reason")),
            *((name, whole) for name in ("prompt_tokens", "completion_tokens", "tries")),
            ("latency_s", real),
        ]
    )
    ordered = sorted(lines, key=lambda line: (line["task_id"], line["sample"], line["turn"]))
    rows = [{name: line.get(name) for name in schema.names} for line in ordered]
    target = folder / "judgements.parquet"
    try:
        with replacing(target) as temporary:
            pq.write_table(pa.Table.from_pylist(rows, schema=schema), temporary)
    except OSError as error:
        raise InfrastructureError(
            f"cannot write {target}: {error}; the judgements themselves are safe"
        ) from error
    write_atomically(folder / summary_name, json.dumps(summary, indent=2) + "\n")
