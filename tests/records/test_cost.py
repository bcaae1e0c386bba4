"""What a run costs by the user's prices, and a limit that stops it before it costs more."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from chat_server import ChatServer
from command_line import evalharness, run_compass
from made_runs import made_episode, make_task

from evalharness.base.errors import UserError
from evalharness.cli import main
from evalharness.config import make_config
from evalharness.play.budget import Budget
from evalharness.records.cost import Prices, Tokens, read_prices
from evalharness.records.episode import FurtherCall, Trial
from evalharness.records.store import read_episodes

PRICES = {"input": 2.0, "output": 10.0, "input_cache_read": 0.5}
USAGE = {
    "prompt_tokens": 1000,
    "completion_tokens": 100,
    "prompt_tokens_details": {"cached_tokens": 600},
}
TURN = (400 * 2 + 600 * 0.5 + 100 * 10) / 1e6


def write(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value))
    return path


def summary(folder: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((folder / "summary.json").read_text())
    return data


async def play(environment: dict[str, str], folder: Path, server: ChatServer, *more: object) -> Any:
    options = ("--model", server.url, "--model-name", "toy", "--max-turns", 4, "--concurrency", 2)
    return await asyncio.to_thread(run_compass, environment, folder, *options, *more)


def test_cached_tokens_have_a_price_of_their_own_and_cost_as_the_others_without_one() -> None:
    tokens = Tokens(prompt=1000, cached=600, completion=100)
    assert Prices(**PRICES).of(tokens) == pytest.approx(TURN)
    assert Prices(input=2.0, output=10.0).of(tokens) == pytest.approx(3000 / 1e6)


def test_prices_of_several_models_are_found_by_name(tmp_path: Path) -> None:
    path = write(tmp_path / "prices.json", {"a": PRICES, "b": {**PRICES, "output": 1.0}})
    assert read_prices(path, "b").output == 1.0
    with pytest.raises(UserError, match="'c', only of a, b"):
        read_prices(path, "c")


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ({"input": 1.0}, "output: field required"),
        ({**PRICES, "input": -1}, "input: input should be greater"),
        ({**PRICES, "reasoning": 1.0}, "reasoning: extra inputs"),
        ([1], "valid dictionary"),
    ],
)
def test_a_file_that_holds_no_prices_is_refused_with_the_place(
    tmp_path: Path, content: Any, complaint: str
) -> None:
    with pytest.raises(UserError, match=complaint):
        read_prices(write(tmp_path / "prices.json", content), "m")


def test_a_limit_without_prices_is_refused() -> None:
    with pytest.raises(UserError, match="--cost-limit needs --prices"):
        make_config({"model": "oracle", "cost_limit": 1.0})


async def test_a_run_tells_its_cost_and_show_tells_it_again(
    environment: dict[str, str], tmp_path: Path
) -> None:
    run, prices = tmp_path / "run", write(tmp_path / "prices.json", PRICES)
    async with ChatServer(usage=USAGE).running() as server:
        done = await play(environment, run, server, "--prices", prices)
    assert done.returncode == 0, done.stderr
    turns = [turn for episode in read_episodes(run) for turn in episode.turns]
    assert {turn.cached_tokens for turn in turns} == {600}
    found = summary(run)["cost"]
    successes = sum(episode.success for episode in read_episodes(run))
    assert successes
    assert found["total"] == pytest.approx(len(turns) * TURN)
    assert found["families"]["compass"]["total"] == found["total"]
    assert found["per_success"] == pytest.approx(found["total"] / successes)
    for printed in (done.stdout, evalharness(environment, "show", run).stdout):
        assert f"cost {len(turns) * TURN:.4g} · {found['per_success']:.4g} for" in printed


async def test_prices_can_be_given_to_a_run_that_is_finished(
    environment: dict[str, str], tmp_path: Path
) -> None:
    run, prices = tmp_path / "run", write(tmp_path / "prices.json", PRICES)
    async with ChatServer(usage=USAGE).running() as server:
        await play(environment, run, server)
        assert "cost" not in summary(run)
        asked = len(server.requests)
        done = await play(environment, run, server, "--prices", prices)
        assert len(server.requests) == asked
    assert done.returncode == 0, done.stderr
    assert summary(run)["cost"]["total"] > 0


async def test_a_cost_limit_stops_the_run_and_a_higher_one_continues_it(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """Every reply is paid for, also those of episodes that the limit broke off."""
    run, prices = tmp_path / "run", write(tmp_path / "prices.json", PRICES)
    limit = 20.5 * TURN
    async with ChatServer(answer=lambda request: "Action: turn up", usage=USAGE).running() as server:
        done = await play(environment, run, server, "--prices", prices, "--cost-limit", limit)
        assert done.returncode == 3, done.stderr
        assert "--cost-limit" in done.stderr
        replies = len(server.requests) - 1  # the first request of all is a probe
        cost = summary(run)["cost"]
        assert cost["total"] == pytest.approx(replies * TURN)
        assert cost["total"] <= limit + 2 * TURN  # two requests may be in flight
        assert len(list(read_episodes(run))) == 5  # of four turns each: a sixth would not have fitted
        assert cost["unfinished"] == 0
        assert not (run / "errors.jsonl").exists()

        again = await play(environment, run, server, "--prices", prices, "--cost-limit", limit)
        assert again.returncode == 3, again.stderr
        assert len(list(read_episodes(run))) == 5
        rest = await play(environment, run, server, "--prices", prices, "--cost-limit", 1000 * TURN)
        assert rest.returncode == 0, rest.stderr
    assert len(list(read_episodes(run))) == 20


async def test_what_unfinished_episodes_cost_is_counted_and_remembered(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """The limit comes in the middle of the first two episodes."""
    run, prices = tmp_path / "run", write(tmp_path / "prices.json", PRICES)
    async with ChatServer(answer=lambda request: "Action: turn up", usage=USAGE).running() as server:
        done = await play(environment, run, server, "--prices", prices, "--cost-limit", 2.5 * TURN)
        assert done.returncode == 3, done.stderr
        lost = len(server.requests) - 1
        assert 3 <= lost <= 4
        assert summary(run)["cost"]["unfinished"] == pytest.approx(lost * TURN)
        await play(environment, run, server, "--prices", prices)
    cost = summary(run)["cost"]
    assert cost["unfinished"] == pytest.approx(lost * TURN)
    assert cost["total"] == pytest.approx((80 + lost) * TURN)


def test_of_a_stored_episode_reflections_and_earlier_trials_are_paid_for_too() -> None:
    asked: dict[str, Any] = {"prompt_tokens": 1000, "completion_tokens": 100, "cached_tokens": 600}
    episode = made_episode(make_task("pddl", 0), turns=1)
    turns = (replace(episode.turns[0], **asked),)
    trial = Trial(turns, 0.0, False, False, "turn_limit", further=(FurtherCall("reflect", "x", **asked),))
    budget = Budget(Prices(**PRICES), None)
    budget.count_stored(replace(episode, turns=turns, earlier=(trial,)))
    assert budget.spent == budget.finished_cost == pytest.approx(3 * TURN)


async def test_a_limit_that_cannot_be_kept_stops_at_once(environment: dict[str, str], tmp_path: Path) -> None:
    prices = write(tmp_path / "prices.json", PRICES)
    async with ChatServer(usage=None).running() as server:
        done = await play(environment, tmp_path / "run", server, "--prices", prices, "--cost-limit", 5)
    assert done.returncode == 3
    assert "--cost-limit" in done.stderr


@pytest.mark.slow
def test_a_run_of_a_script_has_no_cost(
    tmp_path: Path, clean_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prices, run = write(tmp_path / "prices.json", PRICES), tmp_path / "run"
    arguments = ["run", "--model", "oracle", "--suite", "open", "--tasks", "babyai:0", "-o", str(run)]
    assert main([*arguments, "--prices", str(prices)]) == 0
    assert "cost" not in summary(run)
