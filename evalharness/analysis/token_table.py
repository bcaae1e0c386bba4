"""`tokens.parquet`: a row a turn with every token id of prompt and completion, for training on what was played."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evalharness.errors import InfrastructureError
from evalharness.records.shapes import read_object
from evalharness.records.store import read_episodes
from evalharness.records.tokens import TABLE, TOKENS, unpack


def write_token_table(folder: Path) -> None:
    """Write the table anew, sorted by task, sample and turn; nothing where no tokens were recorded.

    Of an episode that was begun twice (the harness was killed between its tokens and its end) the later line counts.
    """
    if not (folder / TOKENS).exists():
        return
    import pyarrow as pa
    import pyarrow.parquet as pq

    ids = pa.list_(pa.int32())
    schema = pa.schema(
        {
            **{"task_id": pa.string(), "sample": pa.int64(), "turn": pa.int64()},
            **{"prompt_token_ids": ids, "completion_token_ids": ids, "logprobs": pa.list_(pa.float32())},
        }
    )
    finished = {(episode.task_id, episode.sample) for episode in read_episodes(folder)}
    temporary = folder / f".{TABLE}.tmp"
    try:
        with (folder / TOKENS).open("rb") as file:
            offsets: dict[tuple[str, int], int] = {}
            offset = 0
            for line in file:
                key = _key(line)
                if key in finished:
                    offsets[key] = offset
                offset += len(line)
            with pq.ParquetWriter(temporary, schema, compression="zstd") as table:
                for (task_id, sample), offset in sorted(offsets.items()):
                    file.seek(offset)
                    rows = [
                        {
                            **{"task_id": task_id, "sample": sample, "turn": number},
                            "prompt_token_ids": turn.prompt,
                            "completion_token_ids": turn.completion,
                            "logprobs": turn.logprobs,
                        }
                        for number, turn in enumerate(unpack(read_object(file.readline())), 1)
                        if turn is not None
                    ]
                    table.write_table(pa.Table.from_pylist(rows, schema=schema))
        temporary.replace(folder / TABLE)
    except (OSError, ValueError, TypeError, KeyError, pa.ArrowException) as error:
        temporary.unlink(missing_ok=True)
        raise InfrastructureError(
            f"cannot write {folder / TABLE}: {error}; the episodes are safe, and {TOKENS} is as it was"
        ) from error


def _key(line: bytes) -> tuple[Any, Any]:
    value = read_object(line)
    return value["task_id"], value["sample"]
