"""One run, one model: what happens when another one is served at the same address while a run goes on, when the server
no longer says which one it serves, and when what a replay says was changed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import chat_server as cs
import pytest
import scripted_model
from against_server import asking
from chat_server import ChatServer

from evalharness.base.errors import UserError
from evalharness.cli import main
from evalharness.models.endpoint import TURN_FORM, ChatEndpoint, Sampling
from evalharness.models.replicas import Replica, Replicas
from evalharness.records.store import read_episodes, read_manifest
from tests.judge.runs import make_judged_run
from tests.judge.scripted_judge import judge
from tests.training.synthesis.synthesis_commands import ALL, write_personas

A = {"root": "/ckpt/a", "max_model_len": 4096}
B = {"root": "/ckpt/b", "max_model_len": 4096}
TURNS = 6


@dataclass
class Swapped(ChatServer):
    """Serves A, which turns left, and from request `at` on B, which turns right; `between` breaks what comes before."""

    says: dict[str, Any] = field(default_factory=lambda: A)
    at: int = 10**9
    between: tuple[cs.Fault, ...] = ()
    closes: bool = False
    """Every connection after one answer."""
    lists: int = 0

    def __post_init__(self) -> None:
        self.answer = lambda request: f"Action: turn {'left' if self.says == A else 'right'}"

    async def chat(self, request: cs.web.Request) -> cs.web.StreamResponse:
        if len(self.requests) + 1 == self.at:
            self.faults, self.says = list(self.between), B
        return self._ended(await super().chat(request))

    async def models(self, request: cs.web.Request) -> cs.web.StreamResponse:
        self.lists += 1
        if self.faults and self.between[0] is not cs.hang_up:
            return await self.faults.pop(0)(request)
        return self._ended(await super().models(request))

    def _ended(self, response: cs.web.StreamResponse) -> cs.web.StreamResponse:
        if self.closes:
            response.force_close()
        return response


def command(folder: Path, *servers: ChatServer) -> list[str]:
    models = [word for server in servers for word in ("--model", server.url)]
    options = ("--model-name", "toy", "--suite", "open", "--tasks", "babyai:0-7", "--max-turns", TURNS)
    return [str(word) for word in ("run", *models, *options, "--concurrency", 2, "-o", folder)]


async def run(folder: Path, *servers: ChatServer) -> int:
    return await asyncio.to_thread(main, command(folder, *servers))


def directions(folder: Path) -> list[str]:
    """Of every stored turn."""
    return [turn.reply.removeprefix("Action: turn ") for e in read_episodes(folder) for turn in e.turns]


BUSY = cs.status(503, "loading", {"Retry-After": "0"})
BAD = cs.status(502, "bad gateway")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("between", "closes"),
    [
        pytest.param((BAD,) * 5, False, id="502 for a while"),
        pytest.param((BUSY,) * 5, False, id="503 with Retry-After"),
        pytest.param((), True, id="every connection is closed"),
        pytest.param((), False, id="no failure at all"),
        pytest.param((cs.hang_up,), False, id="the connection is cut"),
    ],
)
async def test_no_reply_of_another_model_gets_into_the_table(
    between: tuple[cs.Fault, ...],
    closes: bool,
    clean_home: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """B comes when two players have had the turns of two episodes and four more: at least one has ended."""
    folder, server = tmp_path / "run", Swapped(at=1 + 2 * TURNS + 4, between=between, closes=closes)
    async with server.running():
        assert await run(folder, server) == 2
        told = capsys.readouterr().err
        assert "another model" in told
        assert 'root: "/ckpt/a" there, "/ckpt/b" now' in told
        assert set(directions(folder)) == {"left"}
        before = {(e.task_id, e.started) for e in read_episodes(folder)}
        assert before  # those of the first model are kept
        assert await run(folder, server) == 2
        server.at, server.says = 10**9, A
        assert await run(folder, server) == 0
    assert before < {(e.task_id, e.started) for e in read_episodes(folder)}
    assert set(directions(folder)) == {"left"}
    assert len(list(read_episodes(folder))) == 8


async def test_the_server_that_answered_is_looked_at() -> None:
    """Of several: an episode of the first is not held up by the second, and one of the second is not vouched for by
    the first."""
    async with Swapped().running() as one, Swapped().running() as two:
        endpoints = [ChatEndpoint(server.url, "toy", sampling=Sampling()) for server in (one, two)]
        group = Replicas([Replica(name, end) for name, end in zip(("1", "2"), endpoints, strict=True)])
        await asyncio.gather(*(endpoint.start() for endpoint in endpoints))
        first, second = (group.conversation(key, 0, TURN_FORM) for key in "ab")
        await first.reply([{"role": "user", "content": "u"}], turn=1)
        group.replicas[0].mark_down()
        await second.reply([{"role": "user", "content": "u"}], turn=1)
        two.says = B
        await first.confirm()
        with pytest.raises(UserError, match=f"{two.url} .*another model"):
            await second.confirm()
        await group.close()


class Routed(ChatServer):
    """A router: every reply names the model that wrote it, `names` first and then `then`; `key` is where."""

    def __init__(self, *names: str | None, then: str | None = "toy-2024", key: str = "model") -> None:
        super().__init__()
        self.names, self.then, self.text = list(names), then, self.answer

        def answer(request: dict[str, Any]) -> dict[str, Any]:
            name = self.names.pop(0) if self.names else self.then
            return {**cs.completion(str(self.text(request))), **({} if name is None else {key: name})}

        self.answer = answer


@pytest.mark.parametrize(
    ("key", "first", "other", "counts"),
    [
        ("model", "toy-2024", "fallback", True),  # `toy`, which was asked for, is an alias and does not count
        ("model", "toy-2024", None, True),
        ("system_fingerprint", "vllm-0.32.0-tp4-f5b33cdd", "vllm-0.32.0-a1b2c3d4", True),
        ("system_fingerprint", "fp_44709d6fcb", "fp_1bb46167f9", False),
        ("weight_version", "step-1", "step-2", True),
    ],
)
async def test_a_reply_of_another_source_than_the_first_reply_is_asked_for_again(
    key: str, first: str, other: str | None, counts: bool
) -> None:
    async with Routed(first, other, then=first, key=key).running() as server, asking(server.url) as endpoint:
        reply = await endpoint.chat([{"role": "user", "content": "u"}], seed=1)
    assert [failed.kind for failed in reply.failed_tries] == ["another_model"] * counts
    assert not counts or json.dumps(other) in reply.failed_tries[0].error
    assert endpoint.source is not None
    assert first in endpoint.source.values()


async def test_replies_of_endpoints_must_name_the_same_model(
    clean_home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with Routed(then="one").running() as first, Routed(then="two").running() as second:
        assert await run(tmp_path / "run", first, second) == 2
    assert "'one'" in (told := capsys.readouterr().err)
    assert "'two'" in told


@pytest.mark.slow
@pytest.mark.parametrize("closes", [False, True])
async def test_a_look_does_not_come_with_every_turn(closes: bool, clean_home: Path, tmp_path: Path) -> None:
    server = Swapped(closes=closes)
    async with server.running():
        assert await run(tmp_path / "run", server) == 0
    episodes, turns = 8, len(directions(tmp_path / "run"))
    assert turns == episodes * TURNS
    assert (
        server.lists <= 2 + episodes
    )  # one before anything, one when the run starts, at most one an episode


async def test_one_look_serves_all_who_wait_for_one() -> None:
    async with Swapped().running() as server, asking(server.url) as endpoint:
        before = server.lists
        await asyncio.gather(*(endpoint.confirm() for _ in range(50)))
    assert 1 <= server.lists - before <= 2  # the second for those who came while the first was under way


def many(*, pieces: bool, entry: dict[str, Any]) -> cs.Fault:
    """The list of a router with 4,001 models."""
    listed = [{"id": f"model-{number}", "root": "x" * 50} for number in range(4000)]
    data = json.dumps({"data": [*listed, {"id": "toy", **entry}]}).encode()

    async def fault(request: cs.web.Request) -> cs.web.StreamResponse:
        response = cs.web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        size = 10_000 if pieces else len(data)
        for start in range(0, len(data), size):
            await response.write(data[start : start + size])
            await asyncio.sleep(0)
        return response

    return fault


@pytest.mark.slow
@pytest.mark.parametrize("pieces", [True, False])
async def test_a_long_list_is_read_whole(
    pieces: bool, clean_home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = ChatServer(list_fault=many(pieces=pieces, entry=A))
    async with server.running():
        assert await run(tmp_path / "run", server) == 0
        assert read_manifest(tmp_path / "run").identity.model["served"]["root"] == "/ckpt/a"
        server.list_fault = many(pieces=pieces, entry=B)
        capsys.readouterr()
        assert await run(tmp_path / "run", server) == 2
    told = capsys.readouterr()
    assert "another model" in told.err
    assert told.out == ""


async def huge(request: cs.web.Request) -> cs.web.StreamResponse:
    return cs.web.Response(body=b'{"data": [' + b" " * (9 * 2**20) + b"]}", content_type="application/json")


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault",
    [cs.body("<html>", "text/html"), huge],
    ids=["HTML", "9 MB"],
)
async def test_a_list_that_cannot_be_read_is_said_and_makes_no_identity_weaker(
    fault: cs.Fault,
    clean_home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    server = ChatServer(says=A)
    async with server.running():
        named, default = command(tmp_path / "run", server), command(tmp_path / "run", server)[:-2]
        assert await asyncio.to_thread(main, named) == await asyncio.to_thread(main, default) == 0
        server.list_fault = fault
        capsys.readouterr()
        for again in (named, default):
            assert await asyncio.to_thread(main, again) == 2
            told = capsys.readouterr()
            assert told.out == ""
            assert f"{server.url}/models" in told.err
            assert "list of models" in told.err
            assert '"root": "/ckpt/a"' in told.err
        first = command(tmp_path / "first", server)
        assert await asyncio.to_thread(main, first) == 0
        assert "if this URL later serves another model" in " ".join(capsys.readouterr().err.split())
        assert read_manifest(tmp_path / "first").identity.model["url"] == server.url


@pytest.mark.slow
async def test_a_list_that_breaks_while_a_run_goes_on_ends_it(
    clean_home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = Swapped()
    folder = tmp_path / "run"

    def answer(request: dict[str, Any]) -> str:
        if len(server.requests) == 1 + 2 * TURNS + 4:
            server.list_fault = cs.body("<html>", "text/html")
        return "Action: turn left"

    server.answer = answer
    async with server.running():
        words = [*command(folder, server), "--timeout", "2", "--tries", "1", "--concurrency", "1"]
        assert await asyncio.to_thread(main, words) == 3
    assert len(list(read_episodes(folder))) == 2
    assert "list of models" in (folder / "errors.jsonl").read_text()
    told = " ".join(capsys.readouterr().err.split())
    assert "stopped answering" not in told


@pytest.mark.slow
def test_a_replay_of_changed_actions_is_another_policy(
    clean_home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    played = ["--suite", "open", "--tasks", "babyai:0-1", "--max-turns", "4"]
    assert main(["run", "--model", "random", *played, "-o", str(tmp_path / "source")]) == 0
    replay = ["run", "--model", f"replay:{tmp_path / 'source'}", *played, "-o", str(tmp_path / "replay")]
    assert main(replay) == 0
    capsys.readouterr()
    assert main(replay) == 0
    assert "2 of 2 episodes" in capsys.readouterr().out
    lines = (tmp_path / "source" / "episodes.jsonl").read_text().splitlines()
    changed = [json.loads(line) for line in lines]
    changed[0]["turns"][0]["reply"] = "Thought: t\nAction: drop"
    (tmp_path / "source" / "episodes.jsonl").write_text("".join(json.dumps(one) + "\n" for one in changed))
    assert main(replay) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert "model.replies_sha256" in told.err


OF_B = "A word of the second model."
Asking = Callable[[Path, ChatServer], list[object]]
"""(folder for its input, server) -> a command that asks the server's model many things, all but -o."""


def judging(folder: Path, server: ChatServer) -> list[object]:
    run = make_judged_run(folder / "run", tasks=2)
    server.answer = judge(lambda turn: False)
    return ["judge", run, "--turns", 20, "--judge", server.url, "--judge-name", "toy"]


def grading(folder: Path, server: ChatServer) -> list[object]:
    """The grades. The judge is the model itself."""
    questions = folder / "questions.jsonl"
    lines = ({"question_id": n, "category": "math", "turns": ("one?", "two?")} for n in range(4))
    questions.write_text("".join(json.dumps(line) + "\n" for line in lines))
    server.answer = lambda request: '{"reason": "so", "rating": 7}'
    which = ("--model", server.url, "--model-name", "toy", "--judge", server.url, "--judge-name", "toy")
    return ["judge", "mtbench", "--questions", questions, *which]


def writing(folder: Path, server: ChatServer) -> list[object]:
    server.answer = scripted_model.answer
    personas = write_personas(folder, ALL[:10])
    which = ("--model", server.url, "--model-name", "toy")
    return ["refine", "scripts", "--personas", personas, "-n", 10, *which]


def kept(folder: Path) -> str:
    """All that a command has written, hidden files as well."""
    return "".join(path.read_text(errors="replace") for path in folder.rglob("*") if path.is_file())


@pytest.mark.slow
@pytest.mark.parametrize("at", [9, 14])
@pytest.mark.parametrize("asking", [judging, grading, writing])
async def test_what_another_model_answered_is_not_kept(
    asking: Asking, at: int, clean_home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """B comes without any failure. With A back, the rest is asked again."""
    out, server = tmp_path / "out", Swapped()
    async with server.running():
        command = asking(tmp_path, server)
        own = server.answer
        server.answer = lambda request: own(request) if server.says == A else OF_B
        words = [str(word) for word in (*command, "-o", out, "--concurrency", 2)]
        server.at = at
        assert await asyncio.to_thread(main, words) == 2
        assert "another model" in capsys.readouterr().err
        assert OF_B not in kept(out)
        server.at, server.says = 10**9, A
        assert await asyncio.to_thread(main, words) == 0
    assert OF_B not in kept(out)


_PLAY = ["run", "--suite", "open", "--tasks", "babyai:0", "--max-turns", "1"]


@pytest.mark.parametrize(
    ("command", "more"), [pytest.param(_PLAY, ["--samples", "2"], marks=pytest.mark.slow), (["judge"], [])]
)
async def test_a_command_does_not_continue_with_replies_of_another_model(
    command: list[str], more: list[str], clean_home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing of such a start is kept, and the first model continues."""
    server, out = Routed(), tmp_path / "out"
    words = [*command, "--model", "URL", "--model-name", "toy", "-o", str(out)]
    if command == ["judge"]:
        source = make_judged_run(tmp_path / "run", tasks=2)
        words = [
            "judge",
            str(source),
            "--judge",
            "URL",
            "--judge-name",
            "toy",
            "-o",
            str(out),
            "--turns",
            "2",
        ]
        server.text, more = judge(lambda turn: False), ["--turns", "4"]
    async with server.running():
        words = [server.url if word == "URL" else word for word in words]
        assert await asyncio.to_thread(main, words) == 0
        before, server.then = kept(out), "fallback"
        capsys.readouterr()
        assert await asyncio.to_thread(main, [*words, *more]) == 2
        assert '"toy-2024" there, "fallback" now' in capsys.readouterr().err
        assert kept(out) == before
        server.then = "toy-2024"
        assert await asyncio.to_thread(main, [*words, *more]) == 0
