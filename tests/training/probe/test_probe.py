"""`evalharness probe`: one reply to each prefix that ends in an error, judged by the real simulators."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from chat_server import ChatServer
from command_line import evalharness
from small_suites import first_tasks, freeze, home_at

from evalharness.envs import specs
from evalharness.training.datasets.conversation import Conversation, read_data
from evalharness.training.grounded.draft import ErrorPlan
from evalharness.training.grounded.grounded import Order, make
from evalharness.training.probe.prefixes import prefix_of, shares

SEED = 100


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Trajectories of two households, each with one run of errors, in a home that has their suite."""
    with home_at(tmp_path_factory.mktemp("probe")) as home:
        freeze("alfworld", SEED, first_tasks("alfworld", SEED, 2))
        path = home / "made.jsonl"
        order = Order(("alfworld",), SEED, 4, errors=ErrorPlan(runs=(1, 1)), wordings=None)
        asyncio.run(make(order, dict(specs()), path, workers=1))
        yield path


def conversations(path: Path) -> list[Conversation]:
    return list(read_data(path, []))


def end(request: dict[str, Any]) -> str:
    """The last two messages of a request: the error and the world's answer."""
    return "".join(message["content"] for message in request["messages"][-2:])


def corrections(path: Path) -> dict[str, str]:
    """Last message of a prefix -> the correction that the data has."""
    found = {}
    for conversation in conversations(path):
        at = next(i for i, message in enumerate(conversation.messages) if message.refine)
        found[conversation.messages[at - 2].content + conversation.messages[at - 1].content] = (
            conversation.messages[at].content
        )
    return found


def changed(path: Path, output: Path, change: Callable[[Any, Any], object]) -> Path:
    """The data set with `change(message before, message)` done to each message."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in rows:
        for before, message in pairwise(row["messages"]):
            change(before, message)
    output.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return output


Answer = Callable[[dict[str, Any]], str]


async def probed(
    made: Path, environment: dict[str, str], folder: Path, answer: Answer, *more: object, times: int = 1
) -> Any:
    """(the finished command, summary.json where there is one, the requests), of the last of so many times."""
    at_home = environment | {"EVALHARNESS_HOME": str(made.parent)}
    async with ChatServer(answer).running() as server:
        for _ in range(times):
            server.requests.clear()
            done = await asyncio.to_thread(
                evalharness, at_home, "probe", "--prefixes", made, "-o", folder,
                "--model", server.url, "--model-name", "toy", *more,
            )  # fmt: skip
    path = folder / "summary.json"
    return done, json.loads(path.read_text()) if path.exists() else None, server.requests


def test_a_prefix_ends_where_the_correction_begins(made: Path) -> None:
    for conversation in conversations(made):
        prefix = prefix_of(conversation)
        assert prefix is not None
        assert prefix.errors
        assert prefix.said[-len(prefix.errors) :] == prefix.errors
        assert prefix.messages[-1]["role"] == "user"
        assert conversation.messages[len(prefix.messages)].refine


def test_a_part_of_the_prefixes_is_of_all_families_in_equal_shares(made: Path) -> None:
    own = [prefix for conversation in conversations(made) if (prefix := prefix_of(conversation)) is not None]
    others = [replace(own[0], key=f"other {n}", family="babyai") for n in range(2)]
    assert [p.family for p in shares([*own, *others], 3)] == ["alfworld", "babyai", "alfworld"]
    assert len(shares([*own, *others], 9)) == 6


async def test_the_datas_own_corrections_are_other_actions_that_solve_the_task(
    made: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    known = corrections(made)

    def correct(request: dict[str, Any]) -> str:
        return known.get(end(request), "whatever")

    done, summary, requests = await probed(made, environment, tmp_path / "out", correct)
    assert done.returncode == 0, done.stderr
    assert summary["prefixes"] == 4
    assert sorted(filter(known.get, map(end, requests))) == sorted(known)
    row = summary["families"]["alfworld"]
    assert [row[figure]["count"] for figure in ("another", "valid", "solvable")] == [4, 4, 4]
    assert row["valid"]["floor"] == 1.0
    assert re.search(r"ALFWorld +4 +100\.0 .51\.0, ?100\.0.", done.stdout), done.stdout


async def test_the_prefixes_of_some_kinds_are_chosen(
    made: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    kind = conversations(made)[0].metadata["kind"]
    there = sum(conversation.metadata["kind"] == kind for conversation in conversations(made))
    options = ("--tasks", f"alfworld:kind={kind[:-1]}*")
    done, summary, _ = await probed(
        made, environment, tmp_path / "out", lambda request: "Action: look", *options
    )
    assert done.returncode == 0, done.stderr
    assert summary["prefixes"] == there > 0


async def test_the_same_command_asks_nothing_twice(
    made: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    known = corrections(made)
    done, summary, requests = await probed(
        made, environment, tmp_path / "out", lambda request: "Action: look", times=2
    )
    assert (done.returncode, summary["left"]) == (0, 0), done.stderr
    assert not known.keys() & set(map(end, requests))


async def test_the_same_error_again_counts_for_nothing(
    made: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    def repeat(request: dict[str, Any]) -> str:
        return str(request["messages"][-2]["content"])

    done, summary, _ = await probed(made, environment, tmp_path / "out", repeat)
    assert done.returncode == 0, done.stderr
    row = summary["families"]["all"]
    assert [row[figure]["count"] for figure in ("another", "solvable")] == [0, 0]
    assert row["format_errors"] == 0


async def test_a_reply_without_an_action_is_a_format_error(
    made: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    done, summary, _ = await probed(made, environment, tmp_path / "out", lambda request: "\x1b[31mno\x00")
    assert done.returncode == 0, done.stderr
    assert summary["families"]["all"]["format_errors"] == 4
    assert summary["families"]["all"]["another"]["count"] == 0


async def test_bad_requests_are_one_line(made: Path, environment: dict[str, str], tmp_path: Path) -> None:
    plain = changed(made, tmp_path / "plain.jsonl", lambda before, message: message.pop("refine", None))
    other = changed(
        made,
        tmp_path / "other.jsonl",
        lambda before, message: message.get("refine") and before.update(content="Observation: else"),
    )
    for path, options, said in (
        (plain, (), "no grounded conversation with an error and its correction"),
        (other, (), "the world answers otherwise than in the prefix"),
        (made, ("--tasks", "alfwrld"), "did you mean 'alfworld'"),
        (made, ("--tasks", "babyai"), "--tasks babyai: "),
        (made, ("--tasks", "alfworld,alfworld:kind=cool"), "--tasks alfworld:kind=cool: "),
        (made, ("--tasks", "alfworld:difficulty=hard"), "write alfworld or alfworld:kind=KIND"),
        (made, ("-n", 0), "-n is at least 1"),
    ):
        done, summary, _ = await probed(
            path, environment | {"EVALHARNESS_HOME": str(made.parent)}, tmp_path / "bad",
            lambda request: "Action: look", *options,
        )  # fmt: skip
        assert done.returncode == 2, (options, done.stderr)
        assert said in done.stderr.splitlines()[-1]
        assert summary is None
