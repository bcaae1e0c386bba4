"""Episodes as tables: `episodes.parquet` (a row an episode) and `turns.parquet` (a row a turn)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalharness.episode import Episode
from evalharness.errors import InfrastructureError
from evalharness.store import EPISODES

if TYPE_CHECKING:
    import pandas as pd

_BATCH = 200
"""Episodes held in memory at once: a run of thousands is written in constant memory."""


def _offsets(path: Path) -> list[tuple[tuple[str, str, int], int]]:
    """(family, task id, sample) and byte offset of every whole line, sorted."""
    found = []
    offset = 0
    with path.open("rb") as file:
        for line in file:
            try:
                value = json.loads(line)
                found.append(((value["family"], value["task_id"], value["sample"]), offset))
            except ValueError:
                pass  # a torn last line; `store` reports damage anywhere else
            offset += len(line)
    return sorted(found)


def sorted_episodes(folder: Path) -> Iterator[Episode]:
    """The episodes of a run folder by family, task and sample, one in memory at a time."""
    path = folder / EPISODES
    if not path.exists():
        return
    offsets = _offsets(path)
    with path.open("rb") as file:
        for _, offset in offsets:
            file.seek(offset)
            yield Episode.from_json(json.loads(file.readline()))


def episode_row(episode: Episode) -> dict[str, Any]:
    """Columns of `episodes.parquet`; times in seconds, rates 0..1."""
    turns = episode.turns
    return {
        "task_id": episode.task_id,
        "family": episode.family,
        "suite": episode.suite,
        "kind": episode.kind,
        "difficulty": episode.difficulty,
        "labels": episode.labels,
        "sample": episode.sample,
        "perturbation": episode.perturbation,
        "success": episode.success,
        "solved": episode.solved,
        "progress": float(episode.progress),
        "turns": len(turns),
        "valid_turns": episode.valid_turns,
        "grounding_accuracy": episode.valid_turns / len(turns) if turns else 0.0,
        "format_error_turns": sum(bool(turn.format_errors) for turn in turns),
        "ended_by": episode.ended_by,
        "trims": len(episode.trims),
        "goal": episode.goal,
        "first_observation": episode.first_observation,
        "subgoals": list(episode.subgoals),
        "prompt_tokens": sum(turn.prompt_tokens or 0 for turn in turns),
        "completion_tokens": sum(turn.completion_tokens or 0 for turn in turns),
        "task_hash": episode.task_hash,
        "prompt_hash": episode.prompt_hash,
        "policy_s": episode.policy_s,
        "environment_s": episode.environment_s,
        "started": episode.started,
        "wall_s": episode.wall_s,
    }


def turn_rows(episode: Episode) -> Iterator[dict[str, Any]]:
    """Columns of `turns.parquet`."""
    for turn in episode.turns:
        yield {
            "task_id": episode.task_id,
            "family": episode.family,
            "sample": episode.sample,
            "turn": turn.turn,
            "thought": turn.thought,
            "action": turn.action,
            "observation": turn.observation,
            "progress": float(turn.progress),
            "valid": turn.valid,
            "format_errors": list(turn.format_errors),
            "subgoals_completed": list(turn.subgoals_completed),
            "reply": turn.reply,
            "finish_reason": turn.finish_reason,
            "prompt_tokens": turn.prompt_tokens,
            "completion_tokens": turn.completion_tokens,
            "policy_s": turn.policy_s,
            "environment_s": turn.environment_s,
        }


def _schemas() -> tuple[Any, Any]:
    import pyarrow as pa

    text, flag, whole, real = pa.string(), pa.bool_(), pa.int64(), pa.float64()
    episodes = {
        **dict.fromkeys(["task_id", "family", "suite", "kind", "difficulty", "labels"], text),
        **{"sample": whole, "perturbation": text, "success": flag, "solved": flag, "progress": real},
        **{"turns": whole, "valid_turns": whole, "grounding_accuracy": real, "format_error_turns": whole},
        **{"ended_by": text, "trims": whole, "goal": text, "first_observation": text},
        **{"subgoals": pa.list_(text), "prompt_tokens": whole, "completion_tokens": whole},
        **{"task_hash": text, "prompt_hash": text},
        **dict.fromkeys(["policy_s", "environment_s", "started", "wall_s"], real),
    }
    turns = {
        **{"task_id": text, "family": text, "sample": whole, "turn": whole},
        **{"thought": text, "action": text, "observation": text, "progress": real, "valid": flag},
        **{"format_errors": pa.list_(text), "subgoals_completed": pa.list_(whole), "reply": text},
        **{"finish_reason": text, "prompt_tokens": whole, "completion_tokens": whole},
        **{"policy_s": real, "environment_s": real},
    }
    return pa.schema(list(episodes.items())), pa.schema(list(turns.items()))


def data_frames(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Both tables for pandas: text as `string`, whole numbers as `int64` (`Int64` where one may be missing).

    From the parquet files where these are as new as the episodes; a run that is still going on has none yet.
    """
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq

    paths = (folder / "episodes.parquet", folder / "turns.parquet")
    written = (folder / EPISODES).stat().st_mtime_ns if (folder / EPISODES).exists() else 0
    if all(path.exists() and path.stat().st_mtime_ns >= written for path in paths):
        tables = [pq.read_table(path) for path in paths]
    else:
        episodes = list(sorted_episodes(folder))
        rows = [episode_row(e) for e in episodes], [row for e in episodes for row in turn_rows(e)]
        tables = [
            pa.Table.from_pylist(listed, schema=schema)
            for listed, schema in zip(rows, _schemas(), strict=True)
        ]
    first, second = (table.to_pandas(types_mapper={pa.string(): pd.StringDtype()}.get) for table in tables)
    return first, second.astype({"prompt_tokens": "Int64", "completion_tokens": "Int64"})


def write_parquet(folder: Path) -> None:
    """Write both tables anew, sorted by family, task, sample and turn."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schemas = _schemas()
    paths = (folder / "episodes.parquet", folder / "turns.parquet")
    temporary = tuple(path.with_name(f".{path.name}.tmp") for path in paths)
    try:
        with (
            pq.ParquetWriter(temporary[0], schemas[0]) as first,
            pq.ParquetWriter(temporary[1], schemas[1]) as second,
        ):
            batch: list[Episode] = []

            def flush() -> None:
                first.write_table(pa.Table.from_pylist([episode_row(e) for e in batch], schema=schemas[0]))
                rows = [row for e in batch for row in turn_rows(e)]
                second.write_table(pa.Table.from_pylist(rows, schema=schemas[1]))
                batch.clear()

            for episode in sorted_episodes(folder):
                batch.append(episode)
                if len(batch) == _BATCH:
                    flush()
            flush()
        for source, target in zip(temporary, paths, strict=True):
            source.replace(target)
    except OSError as error:
        for path in temporary:
            path.unlink(missing_ok=True)
        raise InfrastructureError(
            f"cannot write {folder}/*.parquet: {error}; episodes.jsonl is safe"
        ) from error
