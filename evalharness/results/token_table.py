"""`tokens.parquet`: a row a turn with every token id of prompt and completion, for training on what was played."""

from __future__ import annotations

from pathlib import Path

from evalharness.base.errors import InfrastructureError
from evalharness.records.store import read_episodes
from evalharness.records.tokens import TABLE, TOKENS, StoredTokens


def write_token_table(folder: Path) -> None:
    """Write the table anew, sorted by task, sample and turn; nothing where no tokens were recorded."""
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
    stored = StoredTokens(folder)
    temporary = folder / f".{TABLE}.tmp"
    try:
        with pq.ParquetWriter(temporary, schema, compression="zstd") as table:
            for task_id, sample in sorted(stored.offsets.keys() & finished):
                rows = [
                    {
                        **{"task_id": task_id, "sample": sample, "turn": number},
                        "prompt_token_ids": turn.prompt,
                        "completion_token_ids": turn.completion,
                        "logprobs": turn.logprobs,
                    }
                    for number, turn in enumerate(stored.of(task_id, sample), 1)
                    if turn is not None
                ]
                table.write_table(pa.Table.from_pylist(rows, schema=schema))
        temporary.replace(folder / TABLE)
    except (OSError, ValueError, TypeError, pa.ArrowException) as error:
        temporary.unlink(missing_ok=True)
        raise InfrastructureError(
            f"cannot write {folder / TABLE}: {error}; the episodes are safe, and {TOKENS} is as it was"
        ) from error
