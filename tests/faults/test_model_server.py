"""A model server that breaks one answer in four, in every way at hand."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import chat_server as cs
from chat_server import ChatServer

from evalharness.records.store import read_episodes

from .runs import answer, asked, assert_equal_runs, begin, errors, options, play

_COMPLETION = json.dumps(cs.completion("Action: turn up"))
FAULTS: dict[str, cs.Fault] = {
    "429": cs.status(429, headers={"Retry-After": "0"}),
    "429 without a word": cs.status(429),
    "500": cs.status(500),
    "503": cs.status(503, "\x1b]0;loading\x07"),
    "hangs up": cs.hang_up,
    "closes in the middle": cs.close_in_the_middle,
    "invalid JSON": cs.body("{not json"),
    "half of the JSON": cs.body(_COMPLETION[: len(_COMPLETION) // 2]),
    "brackets": cs.body("[" * 200_000),
    "empty": cs.body(""),
    "no choices": cs.body('{"choices": []}'),
    "an error that is called a success": cs.body('{"error": {"message": "overloaded"}}'),
    "a page": cs.body("<html>Bad gateway</html>", "text/html"),
    "events": cs.body("data: {}\n\n", "text/event-stream"),
    "10 MB": cs.ten_megabytes,
    "stalls": cs.stall,
    "drips for ever": cs.drip_without_end,
}


async def test_results_do_not_depend_on_faults_that_pass(environment: dict[str, str], tmp_path: Path) -> None:
    rng = random.Random(3)
    met: Counter[str] = Counter()

    def sometimes(request: dict[str, Any]) -> cs.Fault | None:
        if rng.random() > 0.25:
            return None
        slow = rng.random() < 0.1
        name = rng.choice([n for n in FAULTS if (n in ("stalls", "drips for ever")) == slow])
        met[name] += 1
        return FAULTS[name]

    async with ChatServer(answer=answer).running() as server:
        # By chance one turn meets fault after fault: its episode starts over, which changes nothing either.
        arguments = options(server, "--samples", 4, "--concurrency", 16, "--timeout", 3, "--tries", 10)
        await play(environment, tmp_path / "whole", *arguments)
        undisturbed = asked(server)
        server.choose_fault = sometimes
        await play(environment, tmp_path / "broken", *arguments)
        assert asked(server) == undisturbed  # a turn that is asked again is the same request
    assert set(met) == set(FAULTS)
    assert_equal_runs(tmp_path / "whole", tmp_path / "broken")
    tries = [t for e in read_episodes(tmp_path / "broken") for turn in e.turns for t in turn.failed_tries]
    kinds = {"busy", "server_error", "truncated", "invalid", "too_long", "timeout"}
    assert {failed.kind for failed in tries} == kinds
    assert len(tries) <= met.total()


async def test_an_answer_that_drips_in_is_an_answer(environment: dict[str, str], tmp_path: Path) -> None:
    async with ChatServer(answer=lambda request: "Action: turn up").running() as server:
        arguments = options(server, "--limit", 2)
        await play(environment, tmp_path / "whole", *arguments)
        server.choose_fault = lambda request: cs.drip(20, 0.01)
        await play(environment, tmp_path / "broken", *arguments)
    assert_equal_runs(tmp_path / "whole", tmp_path / "broken")
    assert not errors(tmp_path / "broken")


async def test_an_episode_that_the_server_always_breaks_is_reported_apart_and_owed(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """Exit status 3, every try on record, no number made of what is left as if it were all; the same command then
    completes the run."""

    def is_victim(request: dict[str, Any]) -> bool:
        return "Goal: face east" in request["messages"][1]["content"].rpartition("your turn")[2]

    async with ChatServer(answer=answer).running() as server:
        arguments = options(server, "--concurrency", 8, "--tries", 1, "--limit", 8)
        await play(environment, tmp_path / "whole", *arguments)
        broken = cs.status(500, "out of memory", cs.AT_ONCE)
        server.choose_fault = lambda request: broken if is_victim(request) else None
        process = await begin(environment, tmp_path / "broken", *arguments)
        await process.communicate()
        assert process.returncode == 3
        summary = json.loads((tmp_path / "broken" / "summary.json").read_text())
        family = summary["families"]["compass"]
        assert (family["n"], family["selected"], family["infrastructure_failures"]) == (6, 8, 2)
        given_up = [error for error in errors(tmp_path / "broken") if error["final"]]
        assert len(given_up) == 2
        assert [len(error["tries"]) for error in given_up] == [6, 6]
        assert {t["kind"] for error in given_up for t in error["tries"]} == {"server_error"}
        server.choose_fault = lambda request: None
        await play(environment, tmp_path / "broken", *arguments)
    assert_equal_runs(tmp_path / "whole", tmp_path / "broken")
    summary = json.loads((tmp_path / "broken" / "summary.json").read_text())
    assert summary["families"]["compass"]["infrastructure_failures"] == 0


async def test_a_harness_that_was_asleep_goes_on(environment: dict[str, str], tmp_path: Path) -> None:
    """SIGSTOP, and SIGCONT when every deadline has passed, as when a laptop's lid is closed."""
    import signal

    async with ChatServer(answer=answer, latency=0.02).running() as server:
        arguments = options(server, "--samples", 2, "--concurrency", 4, "--timeout", 1.5)
        await play(environment, tmp_path / "whole", *arguments)
        process = await begin(environment, tmp_path / "broken", *arguments, "--tries", 5)
        ended = asyncio.create_task(process.communicate())
        await server.after(30)
        process.send_signal(signal.SIGSTOP)
        await asyncio.sleep(4)
        process.send_signal(signal.SIGCONT)
        await ended
    assert process.returncode == 0
    assert_equal_runs(tmp_path / "whole", tmp_path / "broken")
