"""Every token on record: as the server numbers them, whole, a row a turn, also after an interruption."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from chat_server import ChatServer, with_tokens
from hypothesis import given
from hypothesis import strategies as st

from evalharness.base.errors import UserError
from evalharness.config import RunConfig
from evalharness.records.store import read_episodes
from evalharness.records.tokens import TurnTokens, pack, unpack
from evalharness.runs.evaluation import evaluate

TEXT = "Thought: t\nAction: turn left"
ANSWER = partial(with_tokens, TEXT)


_ids = st.lists(st.integers(0, 5), max_size=6).map(tuple)
_turn = st.tuples(_ids, _ids).map(lambda pair: TurnTokens(pair[0], pair[1], (-0.25,) * len(pair[1])))


@given(st.lists(st.none() | _turn, max_size=5))
def test_what_is_packed_comes_back_whole(turns: list[TurnTokens | None]) -> None:
    assert list(unpack(pack("t", 0, turns))) == turns


async def run(server: ChatServer, folder: Path, **options: Any) -> None:
    config = RunConfig.of(
        model=server.url,
        model_name="toy",
        suite="open",
        tasks="babyai:0-1",
        max_turns=2,
        output=folder,
        **options,
    )
    await asyncio.to_thread(evaluate, config)


async def test_the_tokens_of_every_turn_are_in_a_table_of_their_own(clean_home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    async with ChatServer(answer=ANSWER).running() as server:
        await run(server, folder, record_tokens=True)
        sent = {
            tuple(ord(c) for m in request["messages"] for c in m["content"])
            for request in server.requests[1:]
        }
    rows = pq.read_table(folder / "tokens.parquet").to_pylist()
    keys = [(row["task_id"], row["sample"], row["turn"]) for row in rows]
    assert keys == [(f"babyai/open/00{task}", 0, turn) for task in (0, 1) for turn in (1, 2)]
    assert {tuple(row["prompt_token_ids"]) for row in rows} == sent
    assert all(row["completion_token_ids"] == [ord(c) for c in TEXT] for row in rows)
    assert all(row["logprobs"] == [-0.5] * len(TEXT) for row in rows)


async def test_a_turn_without_tokens_does_not_shift_the_ones_behind_it(
    clean_home: Path, tmp_path: Path
) -> None:
    """The log probabilities do not fit the first turn's tokens; the row of the second is the second's all the same."""

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        told = ANSWER(request)
        if len(request["messages"]) == 2 and request["messages"][-1]["content"] != "Say ok.":
            told["choices"][0]["logprobs"]["content"].pop()
        return told

    folder = tmp_path / "run"
    async with ChatServer(answer=answer).running() as server:
        await run(server, folder, record_tokens=True)
    rows = pq.read_table(folder / "tokens.parquet").to_pylist()
    assert [row["turn"] for row in rows] == [2, 2]
    assert all(f"{TEXT}Observation:" in "".join(map(chr, row["prompt_token_ids"])) for row in rows)


async def test_an_episode_that_was_begun_twice_and_a_torn_line_count_once(
    clean_home: Path, tmp_path: Path
) -> None:
    """Killed after the tokens of an episode were written and before the episode, and in the middle of a line."""
    folder = tmp_path / "run"
    async with ChatServer(answer=ANSWER).running() as server:
        await run(server, folder, record_tokens=True)
        whole = pq.read_table(folder / "tokens.parquet").to_pylist()
        episodes = (folder / "episodes.jsonl").read_bytes().splitlines(keepends=True)
        (folder / "episodes.jsonl").write_bytes(episodes[0])
        with (folder / "tokens.jsonl").open("ab") as file:
            file.write(b'{"task_id": "babyai/op')
        await run(server, folder, record_tokens=True)
    assert len((folder / "tokens.jsonl").read_bytes().splitlines()) == 3
    assert pq.read_table(folder / "tokens.parquet").to_pylist() == whole
    assert len(list(read_episodes(folder))) == 2


async def test_nothing_is_asked_for_or_written_unasked(clean_home: Path, tmp_path: Path) -> None:
    async with ChatServer(answer=ANSWER).running() as server:
        await run(server, tmp_path / "run")
    assert not any("logprobs" in request for request in server.requests)
    assert not list((tmp_path / "run").glob("tokens*"))


async def test_a_server_that_returns_none_is_refused(clean_home: Path, tmp_path: Path) -> None:
    async with ChatServer().running() as server:
        with pytest.raises(UserError, match="returns no token ids"):
            await run(server, tmp_path / "run", record_tokens=True)
