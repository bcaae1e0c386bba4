"""`evalharness refine correct`: a model's own errors, corrected by the teacher in the real simulators."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from against_server import evaluated
from chat_server import ChatServer
from small_suites import first_tasks, freeze, home_at

from evalharness.cli import main
from evalharness.records.store import EPISODES
from evalharness.training.datasets.conversation import Conversation, read_data, read_manifest
from evalharness.training.grounded.takeover import WHY, find_takeovers

pytestmark = pytest.mark.slow(15)

SEED = 100


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A run of the random policy on four households."""
    with home_at(tmp_path_factory.mktemp("correction")) as home:
        freeze("alfworld", SEED, first_tasks("alfworld", SEED, 4))
        folder = home / "run"
        assert main([*_PLAY, "--suite-seed", str(SEED), "-o", str(folder)]) == 0
        yield folder


_PLAY = ("run", "--model", "random", "--suite", "open", "--tasks", "alfworld", "--max-turns", "12")


def correct_episode(run: Path, name: str, *options: object, runs: Sequence[Path] = ()) -> list[Conversation]:
    path = run.parent / name
    words = ["refine", "correct", run, *runs, "-o", path, *options]
    assert main([*map(str, words)]) == 0
    return list(read_data(path, []))


@pytest.mark.parametrize(
    ("found", "after"),
    [
        ("", []),
        ("..", []),
        (".x.", [2]),
        ("xx..x", [2, 5]),
        ("xxxxx", [2]),
        (".xxxx.x", [3, 7]),
    ],
)
def test_the_teacher_takes_over_after_a_run_of_faults_or_two_of_them(found: str, after: list[int]) -> None:
    find_faults = ["invalid" if letter == "x" else None for letter in found]
    assert find_takeovers(find_faults, 9) == after
    assert find_takeovers(find_faults, 1) == after[:1]


def test_the_teacher_goes_on_from_the_models_own_errors(run: Path) -> None:
    conversations = correct_episode(run, "all.jsonl", "--per-episode", 3)
    assert conversations
    for conversation in conversations:
        turns, after = conversation.player_turns, conversation.metadata["taken_over_after"]
        own, taught = turns[:after], turns[after:]
        assert not any(turn.loss for turn in own)
        assert own[-1].error
        assert taught[0].refine
        assert all(turn.loss and not turn.error for turn in taught)
        assert not any(turn.refine for turn in taught[1:])
        assert taught[0].content.startswith(f"Thought: {WHY[own[-1].error[0]]} ")
        assert conversation.metadata["progress"][-1] == 1.0
    manifest = read_manifest(run.parent / "all.jsonl")
    assert manifest is not None
    assert manifest["made"]["models"] == ["random"]
    assert len({conversation.id for conversation in conversations}) == len(conversations)


@pytest.mark.parametrize(
    ("family", "question"), [("babyai", "check available actions"), ("pddl", "check valid actions")]
)
def test_a_model_that_asked_what_it_can_do_is_corrected_like_one_that_did_not(
    family: str, question: str, tmp_path: Path
) -> None:
    def taught(*said: str) -> list[list[str]]:
        """What the teacher says in each conversation, after a model that says this, then nothing valid."""

        def answer(request: dict[str, Any]) -> str:
            turn = sum(message["role"] == "assistant" for message in request["messages"])
            return f"Thought: t\nAction: {said[turn] if turn < len(said) else 'eat'}"

        async def played(folder: Path) -> None:
            async with ChatServer(answer).running() as server:
                await evaluated(server, folder, tasks=family, suite_seed=SEED)

        folder = tmp_path / "-".join(said)
        asyncio.run(played(folder))
        return [
            [turn.content for turn in conversation.player_turns[conversation.metadata["taken_over_after"] :]]
            for conversation in correct_episode(folder, f"{folder.name}.jsonl")
        ]

    with home_at(tmp_path / "home"):
        freeze(family, SEED, first_tasks(family, SEED, 3))
        straight, asked = taught("eat"), taught(question, "eat")
    assert straight
    assert asked == straight


def test_the_same_command_gives_the_same_bytes(run: Path) -> None:
    correct_episode(run, "one.jsonl")
    correct_episode(run, "two.jsonl", "--workers", 1)
    assert (run.parent / "one.jsonl").read_bytes() == (run.parent / "two.jsonl").read_bytes()


def test_runs_in_folders_of_one_name_are_told_apart(run: Path) -> None:
    other = run.parent / "elsewhere" / run.name
    shutil.copytree(run, other)
    twice = correct_episode(run, "twice.jsonl", runs=[other])
    manifest = read_manifest(run.parent / "twice.jsonl")
    assert manifest is not None
    assert list(manifest["made"]["runs"]) == ["1/run", "2/run"]
    assert len({conversation.id for conversation in twice}) == len(twice)


def test_the_models_turns_stand_there_as_an_evaluation_goes_on_with_them(run: Path) -> None:
    """Without its thinking, and without the observation that it made up."""
    thinking = run.parent / "thinking" / run.name
    shutil.copytree(run, thinking)
    episodes = [json.loads(line) for line in (thinking / EPISODES).read_text().splitlines()]
    for turn in (turn for episode in episodes for turn in episode["turns"]):
        turn["reply"] = f"<think>\nHm.\n</think>\n\n{turn['reply']}\nObservation: You win."
    (thinking / EPISODES).write_text("".join(json.dumps(episode) + "\n" for episode in episodes))
    plain, thought = correct_episode(run, "plain.jsonl"), correct_episode(thinking, "thought.jsonl")
    assert [conversation.messages for conversation in thought] == [
        conversation.messages for conversation in plain
    ]


def test_without_errors_the_teacher_plays_the_same_tasks_from_their_first_turn(run: Path) -> None:
    own, none = correct_episode(run, "own.jsonl"), correct_episode(run, "without.jsonl", "--errors", "none")
    assert {conversation.id for conversation in own} <= {conversation.id for conversation in none}
    hashes = {conversation.id: conversation.task_hash for conversation in own}
    for conversation in none:
        turns = conversation.player_turns
        assert conversation.metadata["taken_over_after"] == 0
        assert not any(turn.error or turn.refine for turn in turns)
        assert all(turn.loss for turn in turns)
        assert conversation.metadata["progress"][-1] == 1.0
        assert hashes.get(conversation.id, conversation.task_hash) == conversation.task_hash


def test_a_task_that_is_played_the_same_way_again_is_one_conversation(run: Path) -> None:
    other = run.parent / "again" / run.name
    shutil.copytree(run, other)
    options = ("--errors", "none")
    once, again = (
        correct_episode(run, "once.jsonl", *options),
        correct_episode(run, "again.jsonl", *options, runs=[other]),
    )
    assert [conversation.messages for conversation in again] == [
        conversation.messages for conversation in once
    ]
    manifest = read_manifest(run.parent / "again.jsonl")
    assert manifest is not None
    assert list(manifest["made"]["tally"]["not_made"].values()) == [len(once)]


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """What is said of a command that ends with status 2, in one line."""
    capsys.readouterr()
    assert main([*map(str, arguments)]) == 2
    said = capsys.readouterr().err.strip()
    assert "\n" not in said
    return said


def test_what_cannot_be_corrected_is_said_in_a_line(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = run.parent / "none.jsonl"
    correct = ("refine", "correct", run, "-o", output)
    excluded = refused(capsys, *correct, "--exclude-suite-seeds", SEED)
    assert f"(suite seed {SEED})" in excluded
    for option in ("--per-episode", "--workers"):
        assert f"{option} " in refused(capsys, *correct, option, 0)
    other = run.parent / "other"
    assert main([*_PLAY, "--suite-seed", str(SEED), "--perturb", "P1", "-o", str(other)]) == 0
    said = refused(capsys, "refine", "correct", other, "-o", output)
    assert "agent react" in said
    assert not output.exists()
