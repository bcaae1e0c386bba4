"""Episodes as tables: `episodes.parquet` (a row an episode) and `turns.parquet` (a row a turn)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalharness.base.errors import InfrastructureError
from evalharness.base.reading import open_file
from evalharness.records.episode import Episode, read_episode
from evalharness.records.store import EPISODES, located_episodes, read_episodes
from evalharness.records.tokens import TABLE, TOKENS, StoredTokens
from evalharness.results.behaviour.figures import Read, episode_columns, turn_columns
from evalharness.results.behaviour.turns import action_reader, read_turns

if TYPE_CHECKING:
    import pandas as pd


_BATCH = 200
"""Episodes held in memory at once: a run of thousands is written in constant memory."""


def sorted_episodes(folder: Path) -> Iterator[Episode]:
    """The episodes of a run folder by family, task and sample, one in memory at a time.

    Raises UserError before the first of them where the folder is damaged.
    """
    yield from episodes_at(folder, sorted_offsets(folder))


def sorted_offsets(folder: Path, seen: Callable[[Episode], object] = lambda episode: None) -> list[int]:
    """Where the episodes stand in the file, by family, task and sample. `seen` gets each on the way, in the order of
    the file. Raises UserError where the folder is damaged."""
    found = []
    for offset, episode in located_episodes(folder):
        seen(episode)
        found.append(((episode.family, episode.task_id, episode.sample), offset))
    return [offset for _, offset in sorted(found)]


def episodes_at(folder: Path, offsets: Sequence[int]) -> Iterator[Episode]:
    """One in memory at a time."""
    if not offsets:
        return
    with open_file(folder / EPISODES) as file:
        for offset in offsets:
            file.seek(offset)
            yield read_episode(file.readline())


def rows_of(episode: Episode) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """An episode's row of `episodes.parquet` and its rows of `turns.parquet`."""
    facts = read_turns(episode, action_reader(episode.family, episode.perturbation))
    row, turns = recorded_rows(episode)
    row |= episode_columns(Read(episode, facts))
    return row, [turn | turn_columns(fact) for turn, fact in zip(turns, facts, strict=True)]


def recorded_rows(episode: Episode) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The same without what is read out of turns: every version has these columns alike."""
    return _episode_row(episode), list(_turn_rows(episode))


def _episode_row(episode: Episode) -> dict[str, Any]:
    """Times in seconds, rates 0..1."""
    turns = episode.turns
    return {
        **episode.outcome,
        "turns": len(turns),
        "valid_turns": episode.valid_turns,
        "grounding_accuracy": episode.grounding_accuracy,
        "format_error_turns": episode.format_error_turns,
        "ended_by": episode.ended_by,
        "trims": len(episode.trims),
        "goal": episode.goal,
        "first_observation": episode.first_observation,
        "subgoals": list(episode.subgoals),
        "prompt_tokens": episode.prompt_tokens,
        "completion_tokens": episode.completion_tokens,
        "figures": json.dumps(dict(episode.figures), sort_keys=True) if episode.figures else None,
        "reasoning_tokens": episode.reasoning_tokens,
        "task_hash": episode.task_hash,
        "prompt_hash": episode.prompt_hash,
        "policy_s": episode.policy_s,
        "environment_s": episode.environment_s,
        "worker_s": episode.worker_s,
        "started": episode.started,
        "wall_s": episode.wall_s,
    }


def _turn_rows(episode: Episode) -> Iterator[dict[str, Any]]:
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
            "no_effect": turn.no_effect,
            "format_errors": list(turn.format_errors),
            "subgoals_completed": list(turn.subgoals_completed),
            "reply": turn.reply,
            "finish_reason": turn.finish_reason,
            "prompt_tokens": turn.prompt_tokens,
            "completion_tokens": turn.completion_tokens,
            "cached_tokens": turn.cached_tokens,
            "tries": 1 + len(turn.failed_tries),
            "policy_s": turn.policy_s,
            "latency_s": turn.latency_s,
            "environment_s": turn.environment_s,
            "worker_s": turn.worker_s,
            "reasoning": turn.reasoning,
            "reasoning_tokens": turn.reasoning_tokens,
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
        **{"figures": text, "reasoning_tokens": whole, "task_hash": text, "prompt_hash": text},
        **dict.fromkeys(["policy_s", "environment_s", "worker_s", "started", "wall_s"], real),
        **dict.fromkeys(["error_turns", "longest_error_run", "no_effect_turns"], whole),
        **dict.fromkeys(["repeated_turns", "longest_loop"], whole),
        **dict.fromkeys(["help_turns", "distinct_observations", "distinct_actions"], whole),
        **dict.fromkeys(["distinct_places", "first_progress_turn"], whole),
    }
    turns = {
        **{"task_id": text, "family": text, "sample": whole, "turn": whole},
        **{"thought": text, "action": text, "observation": text, "progress": real, "valid": flag},
        **{
            "no_effect": flag,
            "format_errors": pa.list_(text),
            "subgoals_completed": pa.list_(whole),
            "reply": text,
        },
        **{"finish_reason": text, "prompt_tokens": whole, "completion_tokens": whole, "cached_tokens": whole},
        **{"tries": whole, **dict.fromkeys(["policy_s", "latency_s", "environment_s", "worker_s"], real)},
        **{"reasoning": text, "reasoning_tokens": whole},
        **{"error": flag, "progressed": flag, "repeated": flag, "place": text},
    }
    return pa.schema(list(episodes.items())), pa.schema(list(turns.items()))


def data_frames(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Both tables for pandas: text as `string`, whole numbers as `int64` (`Int64` where one may be missing).

    From the parquet files where these hold every episode; a run that is still going on has none yet.
    """
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq

    paths = (folder / "episodes.parquet", folder / "turns.parquet")
    schemas = _schemas()
    whole = all(_columns(path) == schema.names for path, schema in zip(paths, schemas, strict=True))
    if whole and (
        not (folder / EPISODES).exists() or all(_made_from(path) == _size(folder) for path in paths)
    ):
        tables = [pq.read_table(path) for path in paths]
    else:  # a run that is still going on, or one that an earlier version wrote with fewer columns
        rows = [rows_of(episode) for episode in sorted_episodes(folder)]
        tables = [
            pa.Table.from_pylist([row for row, _ in rows], schema=schemas[0]),
            pa.Table.from_pylist([turn for _, turns in rows for turn in turns], schema=schemas[1]),
        ]
    first, second = (table.to_pandas(types_mapper={pa.string(): pd.StringDtype()}.get) for table in tables)
    missing = ("no_effect_turns", "distinct_places", "first_progress_turn")
    return (
        first.astype(dict.fromkeys(missing, "Int64")),
        second.astype(
            {
                "no_effect": "boolean",
                **dict.fromkeys(
                    ("prompt_tokens", "completion_tokens", "reasoning_tokens", "cached_tokens"), "Int64"
                ),
            }
        ),
    )


_MADE_FROM = b"evalharness.episodes_bytes"
"""Key of a table's metadata: how long `episodes.jsonl` was when the table was made. That file only grows, so its
length tells whether a table is out of date; times of change do not, on a clock that has been set back."""


def _size(folder: Path) -> int:
    path = folder / EPISODES
    return path.stat().st_size if path.exists() else 0


def _columns(path: Path) -> list[str] | None:
    """None for a table that is not there or not readable."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        names: list[str] = pq.read_schema(path).names
    except (OSError, pa.ArrowException):
        return None
    return names


def _made_from(path: Path) -> int | None:
    """None for a table that is not there, not readable, or does not say."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return int((pq.read_schema(path).metadata or {})[_MADE_FROM])
    except (OSError, KeyError, ValueError, pa.ArrowException):
        return None


def write_parquet(folder: Path) -> None:
    """Write both tables anew, sorted by family, task, sample and turn."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schemas = [schema.with_metadata({_MADE_FROM: str(_size(folder))}) for schema in _schemas()]
    paths = (folder / "episodes.parquet", folder / "turns.parquet")
    temporary = tuple(path.with_name(f".{path.name}.tmp") for path in paths)
    try:
        with (
            pq.ParquetWriter(temporary[0], schemas[0]) as first,
            pq.ParquetWriter(temporary[1], schemas[1]) as second,
        ):
            batch: list[Episode] = []

            def flush() -> None:
                rows = [rows_of(episode) for episode in batch]
                turns = [turn for _, listed in rows for turn in listed]
                first.write_table(pa.Table.from_pylist([row for row, _ in rows], schema=schemas[0]))
                second.write_table(pa.Table.from_pylist(turns, schema=schemas[1]))
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
