"""Write episodes as tables: `episodes.parquet` (one row per episode) and `turns.parquet` (one row per turn)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalharness.base.errors import InfrastructureError
from evalharness.base.paths import real_path, replacing
from evalharness.base.reading import open_file, sha256_of
from evalharness.records.episode import Episode, read_episode
from evalharness.records.files import STUDY
from evalharness.records.store import EPISODES, locate_episodes, read_manifest
from evalharness.results.behaviour.figures import EpisodeFacts, episode_columns
from evalharness.results.behaviour.turns import action_reader, read_turns

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


_BATCH = 200
"""Number of episodes that are in memory at once while the tables are written."""


def read_sorted_episodes(folder: Path) -> Iterator[Episode]:
    """Yield the episodes of a run folder, sorted by family, task and sample; only one is in memory at a time.

    Raise UserError before the first episode if the folder is damaged.
    """
    yield from episodes_at(folder, sort_offsets(folder))


def sort_offsets(folder: Path, visit: Callable[[Episode], object] = lambda episode: None) -> list[int]:
    """Return the file offsets of the episodes, sorted by family, task and sample. Call `visit` with each episode in
    the order of the file. Raise UserError if the folder is damaged."""
    located = []
    for offset, episode in locate_episodes(folder):
        visit(episode)
        located.append(((episode.family, episode.task_id, episode.sample), offset))
    return [offset for _, offset in sorted(located)]


def episodes_at(folder: Path, offsets: Sequence[int]) -> Iterator[Episode]:
    """Yield the episodes at these offsets; only one is in memory at a time."""
    if not offsets:
        return
    with open_file(folder / EPISODES) as file:
        for offset in offsets:
            file.seek(offset)
            yield read_episode(file.readline())


def rows_of(episode: Episode) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return an episode's row of `episodes.parquet` and its rows of `turns.parquet`."""
    facts = read_turns(episode, action_reader(episode.family, episode.perturbation, episode.words))
    row, turns = list_recorded_rows(episode)
    row |= episode_columns(EpisodeFacts(episode, facts))
    return row, [turn | _columns(_TURN_READ, fact) for turn, fact in zip(turns, facts, strict=True)]


def list_recorded_rows(episode: Episode) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the rows of `rows_of` without the behaviour columns, which may change with the harness's version."""
    figures = json.dumps(dict(episode.figures), sort_keys=True) if episode.figures else None
    counts = {"turns": len(episode.turns), "trims": len(episode.trims)}
    row = _columns(_EPISODE, episode, **counts, figures=figures)
    which = {name: row[name] for name in ("task_id", "family", "sample")}
    turns = (_columns(_TURN, turn, **which, tries=1 + len(turn.failed_tries)) for turn in episode.turns)
    return row, list(turns)


def run_columns(folder: Path) -> dict[str, str | None]:
    """Return the columns that have the same value in all rows of a run."""
    manifest = read_manifest(folder)
    return {"model": manifest.display_name, "perturbation": manifest.config.perturb}


def folder_columns(folder: Path) -> dict[str, str | None]:
    """Return the columns with the names of run folder and study. Stored tables lack them, so a folder can be moved."""
    place = real_path(folder)
    is_studied = (place.parent / STUDY).is_file()
    return {"study": place.parent.name if is_studied else None, "run": place.name}


_TEXT, _TEXTS, _FLAG, _WHOLE, _REAL = "string", ["string"], "bool", "int64", "float64"
_RUN: Mapping[str, Any] = dict.fromkeys(("model", "perturbation"), _TEXT)
"""Column of `run_columns` -> type."""
_EPISODE: Mapping[str, Any] = {
    **dict.fromkeys(("task_id", "family", "suite", "kind", "difficulty", "labels"), _TEXT),
    **{"sample": _WHOLE, "success": _FLAG, "solved": _FLAG, "progress": _REAL},
    **{"turns": _WHOLE, "valid_turns": _WHOLE, "grounding_accuracy": _REAL, "format_error_turns": _WHOLE},
    **{"ended_by": _TEXT, "trims": _WHOLE, "goal": _TEXT, "first_observation": _TEXT},
    **{"subgoals": _TEXTS, "prompt_tokens": _WHOLE, "completion_tokens": _WHOLE},
    **{"figures": _TEXT, "reasoning_tokens": _WHOLE, "task_hash": _TEXT, "prompt_hash": _TEXT},
    **dict.fromkeys(("policy_s", "environment_s", "worker_s", "started", "wall_s"), _REAL),
}
"""Column -> type; [type] if the values are lists. Times are in seconds, rates are fractions 0..1."""
_EPISODE_READ = dict.fromkeys(
    ("error_turns", "longest_error_run", "no_effect_turns", "repeated_turns", "longest_loop", "help_turns",
     "distinct_observations", "distinct_actions", "distinct_places", "first_progress_turn"), _WHOLE
)  # fmt: skip
"""Column of `episode_columns` -> type."""
_TURN: Mapping[str, Any] = {
    **{"task_id": _TEXT, "family": _TEXT, "sample": _WHOLE, "turn": _WHOLE},
    **{"thought": _TEXT, "action": _TEXT, "observation": _TEXT, "progress": _REAL, "valid": _FLAG},
    **{"no_effect": _FLAG, "format_errors": _TEXTS, "subgoals_completed": [_WHOLE], "reply": _TEXT},
    **{"finish_reason": _TEXT, "prompt_tokens": _WHOLE, "completion_tokens": _WHOLE, "cached_tokens": _WHOLE},
    **{"tries": _WHOLE, **dict.fromkeys(("policy_s", "latency_s", "environment_s", "worker_s"), _REAL)},
    **{"reasoning": _TEXT, "reasoning_tokens": _WHOLE},
}
_TURN_READ = {"error": _FLAG, "progressed": _FLAG, "repeated": _FLAG, "place": _TEXT}
"""Attribute of `TurnFacts` that is a column -> type."""


def _columns(columns: Iterable[str], of: object, **made: Any) -> dict[str, Any]:
    """Map each column to its value in `made`, or else to the attribute of `of` with the same name."""
    row = {name: made[name] if name in made else getattr(of, name) for name in columns}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in row.items()}


def _schemas() -> tuple[Any, Any]:
    import pyarrow as pa

    def kind(of: Any) -> Any:
        return pa.list_(kind(of[0])) if isinstance(of, list) else pa.type_for_alias(of)

    episodes, turns = {**_RUN, **_EPISODE, **_EPISODE_READ}, {**_RUN, **_TURN, **_TURN_READ}
    return tuple(pa.schema((name, kind(of)) for name, of in part.items()) for part in (episodes, turns))


def data_frames(*folders: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the tables of episodes and of turns of several runs for pandas. Text is `string`; whole numbers are
    `int64`, or `Int64` if a value may be missing."""
    import pandas as pd
    import pyarrow as pa

    runs = [_arrow_tables(folder) for folder in folders]
    first, second = (
        pa.concat_tables(tables).to_pandas(types_mapper={pa.string(): pd.StringDtype()}.get)
        for tables in zip(*runs, strict=True)
    )
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


def _arrow_tables(folder: Path) -> list[pa.Table]:
    """Return the tables of episodes and turns, from the parquet files if these are current, else from the episodes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    paths = (folder / "episodes.parquet", folder / "turns.parquet")
    schemas = _schemas()
    made_from = _hash_sources(folder)
    if all(_is_current(path, schema.names, made_from) for path, schema in zip(paths, schemas, strict=True)):
        tables = [pq.read_table(path).replace_schema_metadata() for path in paths]
    else:
        rows, columns = [rows_of(episode) for episode in read_sorted_episodes(folder)], run_columns(folder)
        tables = [
            pa.Table.from_pylist([row | columns for row, _ in rows], schema=schemas[0]),
            pa.Table.from_pylist([turn | columns for _, turns in rows for turn in turns], schema=schemas[1]),
        ]
    for at, (name, value) in enumerate(folder_columns(folder).items()):
        tables = [
            table.add_column(at, name, pa.repeat(pa.scalar(value, pa.string()), len(table)))
            for table in tables
        ]
    return tables


_MADE_FROM = b"evalharness.episodes_sha256"
"""Key in a table's metadata for the hash of the `episodes.jsonl` that the table was made from."""


def _hash_sources(folder: Path) -> bytes:
    path = folder / EPISODES
    with suppress(OSError):
        return sha256_of(path).encode()
    return b"not readable" if path.exists() else b""


def _is_current(path: Path, names: list[str], made_from: bytes) -> bool:
    """Return whether the parquet file is readable, has the columns `names`, and was made from the current episodes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with open_file(path) as file:
            schema = pq.read_schema(file)
        current = not made_from or (schema.metadata or {}).get(_MADE_FROM) == made_from
        return bool(schema.names == names and current)
    except (OSError, pa.ArrowException):
        return False


def write_parquet(folder: Path) -> None:
    """Write `episodes.parquet` and `turns.parquet`, sorted by family, task, sample and turn."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schemas = [schema.with_metadata({_MADE_FROM: _hash_sources(folder)}) for schema in _schemas()]
    try:
        with (
            replacing(folder / "turns.parquet") as turns_file,
            replacing(folder / "episodes.parquet") as episodes_file,
            pq.ParquetWriter(episodes_file, schemas[0]) as first,
            pq.ParquetWriter(turns_file, schemas[1]) as second,
        ):
            batch: list[Episode] = []
            columns = run_columns(folder)

            def flush() -> None:
                rows = [rows_of(episode) for episode in batch]
                turns = [turn | columns for _, listed in rows for turn in listed]
                first.write_table(pa.Table.from_pylist([row | columns for row, _ in rows], schema=schemas[0]))
                second.write_table(pa.Table.from_pylist(turns, schema=schemas[1]))
                batch.clear()

            for episode in read_sorted_episodes(folder):
                batch.append(episode)
                if len(batch) == _BATCH:
                    flush()
            flush()
    except OSError as error:
        kept = "is complete" if (folder / EPISODES).is_file() else "is missing, too"
        raise InfrastructureError(f"cannot write {folder}/*.parquet: {error}; {EPISODES} {kept}") from error
