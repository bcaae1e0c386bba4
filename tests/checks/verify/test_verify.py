"""`evalharness verify`: an honest run passes, and each kind of forgery is found and named."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from chat_server import ChatServer, completion
from command_line import evalharness, run_compass
from made_runs import make_run, zip_of

from evalharness.base.errors import UserError
from evalharness.checks.verify import FolderCheck, verify
from evalharness.cli import main
from evalharness.records.identity import digest

pytestmark = pytest.mark.slow(120)  # every verdict comes from workers of its own


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three tasks, two attempts each at random, some of them solved in part."""
    folder = tmp_path_factory.mktemp("honest") / "run"
    options = ["--suite", "open", "--tasks", "pddl:0-2", "--samples", "2", "--temperature", "1"]
    assert main(["run", "--model", "random", *options, "--max-turns", "6", "-o", str(folder)]) == 0
    return folder


@pytest.fixture
def run(honest: Path, tmp_path: Path) -> Path:
    """A copy to forge."""
    return Path(shutil.copytree(honest, tmp_path / "run"))


def edit(run: Path, change: Callable[[list[dict[str, Any]]], None]) -> None:
    """Change the list of stored episodes, sorted by task and sample."""
    path = run / "episodes.jsonl"
    episodes = sorted(
        map(json.loads, path.read_text().splitlines()), key=lambda e: (e["task_id"], e["sample"])
    )
    change(episodes)
    path.write_text("".join(json.dumps(episode) + "\n" for episode in episodes))


def edit_json(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


def only_episodes(run: Path) -> None:
    """Without what a careful forger would have made again: the totals then cannot give him away."""
    for name in ("summary.json", "episodes.parquet", "turns.parquet"):
        (run / name).unlink()


def kinds(verdict: FolderCheck) -> set[str]:
    return {finding.kind for finding in verdict.findings}


def test_an_honest_run_is_verified(honest: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(honest)]) == 0
    said = capsys.readouterr().out
    assert "verified; 6 episodes and" in said


def test_a_leaderboard_of_verified_runs_leaves_out_what_does_not_follow(
    honest: Path, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(run, lambda episodes: episodes[0].update(success=True, progress=1.0))
    table = ["leaderboard", "--no-published", "--verify", "--json", str(tmp_path / "board.json")]
    assert main([*table, str(honest), str(run), str(tmp_path / "nothing")]) == 0
    board = json.loads((tmp_path / "board.json").read_text())
    assert [(row["folder"], row["verification"]) for row in board["rows"]] == [(str(honest), "verified")]
    assert capsys.readouterr().err.count("left out: ") == 2
    assert main([*table, str(run)]) == 2, "no run is left"


def test_verify_and_leaderboard_take_a_colleagues_zip(
    honest: Path, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(run, lambda episodes: episodes[0].update(success=True, progress=1.0))
    good, forged = zip_of(honest, tmp_path / "good.zip"), zip_of(run, tmp_path / "forged.zip")
    out = zip_of(honest, tmp_path / "out.zip", {"../summary.json": b"{}"})
    before = sorted(tmp_path.iterdir())
    assert main(["verify", str(good)]) == 0
    assert f"{good}/alpha: verified" in capsys.readouterr().out
    table = ["leaderboard", "--no-published", "--verify", "--json", str(tmp_path / "board.json")]
    assert main([*table, str(good), str(forged), str(out)]) == 0
    board = json.loads((tmp_path / "board.json").read_text())
    assert [(row["folder"], row["verification"]) for row in board["rows"]] == [(f"{good}/alpha", "verified")]
    lines = [line for line in capsys.readouterr().err.splitlines() if "left out: " in line]
    assert [name for line in lines for name in ("forged.zip", "out.zip") if name in line] == [
        "out.zip",
        "forged.zip",
    ]
    assert sorted(tmp_path.iterdir()) == sorted([*before, tmp_path / "board.json"])


@pytest.mark.parametrize("perturbation", ["verbs", "order"])
def test_an_honest_perturbed_run_is_verified(tmp_path: Path, perturbation: str) -> None:
    options = ["--suite", "open", "--tasks", "pddl:0-1", "--max-turns", "5", "--perturb", perturbation]
    assert main(["run", "--model", "random", *options, "-o", str(tmp_path / "run")]) == 0
    verdict = verify(tmp_path / "run")
    assert verdict.findings == ()
    assert verdict.turns == 10


async def test_replies_with_format_errors_are_read_again_as_they_were(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """Cut off, without an action, with an invented observation that a stop sequence ended, with two actions."""
    replies = [
        completion("Thought: I", finish_reason="length"),
        completion("no idea"),
        completion("Thought: t\nAction: look", stop_reason="\nObservation:"),
        completion("<think>\nhm\n</think>\nThought: t\nAction: look\nAction: turn left"),
        completion("Action: turn left\nObservation: I won."),
    ]

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        said = sum(message["role"] == "assistant" for message in request["messages"])
        return replies[min(said, 4)]

    async with ChatServer(answer).running() as server:
        options = ("--model", server.url, "--model-name", "toy", "--limit", 1, "--max-turns", 5)
        done = await asyncio.to_thread(run_compass, environment, tmp_path / "run", *options)
    assert done.returncode == 0, done.stderr
    said = await asyncio.to_thread(evalharness, environment, "verify", tmp_path / "run")
    assert (said.returncode, "verified; 1 episodes and 5 turns" in said.stdout) == (0, True), said.stdout

    def change(episodes: list[dict[str, Any]]) -> None:
        episodes[0]["turns"][1]["format_errors"] = ["empty"]

    edit(tmp_path / "run", change)
    said = await asyncio.to_thread(evalharness, environment, "verify", tmp_path / "run")
    assert said.returncode == 1
    assert 'turn 2: format errors: ["empty"] recorded, ["no_action"] found' in said.stdout


async def test_tool_calls_are_read_again_as_they_were(environment: dict[str, str], tmp_path: Path) -> None:
    """A good call, one of a tool that there is not, none at all, and two at once."""

    def call(name: str, arguments: str) -> dict[str, Any]:
        return {"id": "c1", "type": "function", "function": {"name": name, "arguments": arguments}}

    good = call("act", '{"command": "turn left"}')
    calls = [[good], [call("fly", "{}")], [], [good, good]]

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        said = sum(message["role"] == "assistant" for message in request["messages"])
        whole = completion("I turn.")
        whole["choices"][0]["message"]["tool_calls"] = calls[min(said, 3)]
        return whole

    async with ChatServer(answer).running() as server:
        options = ("--model-name", "toy", "--limit", 1, "--max-turns", 4, "--agent", "tools")
        done = await asyncio.to_thread(
            run_compass, environment, tmp_path / "run", "--model", server.url, *options
        )
    assert done.returncode == 0, done.stderr
    said = await asyncio.to_thread(evalharness, environment, "verify", tmp_path / "run")
    assert (said.returncode, "verified; 1 episodes and" in said.stdout) == (0, True), said.stdout


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m["identity"].update(turn_limits={"pddl": "many"}),
        lambda m: m["sessions"][0].update(policy={"requests": [1]}),
        lambda m: m["sessions"][0].update(packages={"": 1}),
        lambda m: m.update(draw={"pddl": 3}),
        lambda m: m["identity"]["config"].update(perturb="../x"),
    ],
)
def test_no_manifest_ends_in_a_traceback(
    run: Path, change: Callable[[dict[str, Any]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    edit_json(run / "manifest.json", change)
    (run / "episodes.jsonl").write_text("")
    only_episodes(run)
    assert main(["verify", str(run)]) in (1, 2)
    assert "Traceback" not in capsys.readouterr().err


def test_a_forged_success_is_found(run: Path) -> None:
    def change(episodes: list[dict[str, Any]]) -> None:
        episode = next(e for e in episodes if not e["success"])
        episode |= {"success": True, "solved": True, "progress": 1.0, "ended_by": "success"}
        episode["turns"][-1]["progress"] = 1.0

    edit(run, change)
    only_episodes(run)
    verdict = verify(run)
    assert kinds(verdict) == {"replay", "score"}
    assert {f.what: (f.recorded, f.found) for f in verdict.findings if f.kind == "score"}["success"] == (
        True,
        False,
    )


def test_a_changed_action_is_found_by_its_reply(run: Path) -> None:
    def change(episodes: list[dict[str, Any]]) -> None:
        episodes[0]["turns"][0]["action"] = "look around"

    edit(run, change)
    only_episodes(run)
    [finding] = verify(run).findings
    assert (finding.kind, finding.recorded) == ("reply", ["look around"])
    assert finding.where == "pddl/open/000, sample 0, turn 1"


def test_a_changed_action_and_reply_are_found_by_the_environment(run: Path) -> None:
    def change(episodes: list[dict[str, Any]]) -> None:
        turn = episodes[0]["turns"][0]
        said = "dance with the ball"
        turn |= {"action": said, "reply": f"Thought: {turn['thought']}\nAction: {said}"}

    edit(run, change)
    only_episodes(run)
    assert "replay" in kinds(verify(run))


def test_a_changed_observation_is_found_at_its_turn(run: Path) -> None:
    def change(episodes: list[dict[str, Any]]) -> None:
        episodes[3]["turns"][2]["observation"] = "You win."

    edit(run, change)
    only_episodes(run)
    [finding] = verify(run).findings
    assert (finding.kind, finding.what, finding.recorded) == ("replay", "observation", "You win.")
    assert finding.where.endswith("turn 3")


def test_a_dropped_episode_is_found(run: Path) -> None:
    dropped: list[dict[str, Any]] = []
    edit(run, lambda episodes: dropped.append(episodes.pop(2)))
    only_episodes(run)
    [finding] = verify(run).findings
    assert finding.kind == "missing"
    assert finding.where == f"{dropped[0]['task_id']}, sample {dropped[0]['sample']}"


def test_an_added_episode_is_found(run: Path) -> None:
    def change(episodes: list[dict[str, Any]]) -> None:
        episodes += [
            episodes[0] | {"task_id": "pddl/open/999"},
            episodes[0] | {"sample": 2},
            dict(episodes[0]),
        ]

    edit(run, change)
    only_episodes(run)
    verdict = verify(run)
    assert [f.kind for f in verdict.findings] == ["added", "added", "repeated"]
    assert verdict.episodes == 6


def test_an_episode_that_was_cut_short_is_found(run: Path) -> None:
    """An episode of a model cannot stop by itself; one of the random policy may, so the run is called a model's."""

    def change(episodes: list[dict[str, Any]]) -> None:
        episodes[0]["turns"] = episodes[0]["turns"][:2]
        episodes[0] |= {"progress": episodes[0]["turns"][-1]["progress"], "ended_by": "policy_stopped"}

    edit(run, change)
    only_episodes(run)

    def rename(manifest: dict[str, Any]) -> None:
        manifest["identity"]["config"]["model"] = "endpoint"
        manifest["digest"] = digest(manifest["identity"])

    edit_json(run / "manifest.json", rename)
    found = [str(finding) for finding in verify(run).findings if finding.kind == "replay"]
    assert len(found) == 1
    assert "turn 2 of 6" in found[0]


def test_turns_after_the_end_are_found(run: Path) -> None:
    def change(episodes: list[dict[str, Any]]) -> None:
        turn = episodes[0]["turns"][-1] | {"policy_s": 0.0}  # the time of all turns is as it was
        episodes[0]["turns"] += [turn | {"turn": 7}, turn | {"turn": 8}]

    edit(run, change)
    only_episodes(run)
    found = [str(finding) for finding in verify(run).findings]
    assert any("2 turns" in line and "6 turns" in line for line in found), found


def test_a_task_of_another_suite_is_found(run: Path) -> None:
    def change(episodes: list[dict[str, Any]]) -> None:
        episodes[0] |= {"task_hash": "0" * 64, "perturbation": "verbs", "prompt_hash": "1"}

    edit(run, change)
    only_episodes(run)
    assert [f.what for f in verify(run).findings] == ["task hash", "prompt hash", "perturbation"]


def test_totals_that_the_episodes_do_not_make_are_found(run: Path) -> None:
    edit_json(run / "summary.json", lambda s: s["families"]["pddl"].update(success_rate=0.99))
    frame = pd.read_parquet(run / "episodes.parquet")
    frame.loc[0, "progress"] = 0.77
    frame.to_parquet(run / "episodes.parquet", index=False)
    turns = pd.read_parquet(run / "turns.parquet")
    pd.concat([turns, turns.tail(1).assign(turn=9)]).to_parquet(run / "turns.parquet", index=False)
    verdict = verify(run)
    assert [(f.kind, f.recorded) for f in verdict.findings] == [
        ("table", 0.77),
        ("table", None),
        ("summary", 0.99),
    ]
    assert verdict.findings[2].where == "summary.json, families.pddl.success_rate"


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (lambda m: m.update(digest="0" * 64), "digest"),
        (lambda m: m["identity"]["tasks_sha256"].update(pddl="0" * 64), "tasks_sha256.pddl"),
        (lambda m: m["expected"].update(pddl=2), "expected.pddl"),
        (lambda m: m["held_out"].pop("sciworld"), "held_out.sciworld"),
        (lambda m: m["labels"].update(pddl="official"), "labels.pddl"),
        (lambda m: m.update(suite="agentboard"), "suite"),
        (lambda m: m["identity"].update(turn_limits={"pddl": 30}), "turn_limits"),
    ],
)
def test_a_manifest_that_does_not_fit_its_configuration_is_found(
    run: Path, change: Callable[[dict[str, Any]], None], where: str
) -> None:
    edit_json(run / "manifest.json", change)
    assert f"manifest.json, {where}" in {f.where for f in verify(run).findings}


def test_a_cut_off_or_damaged_line_is_found_and_the_rest_replayed(run: Path) -> None:
    path = run / "episodes.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[1] = b'{"task_id": 3}\n'
    path.write_bytes(b"".join(lines)[:-40])
    only_episodes(run)
    verdict = verify(run)
    assert [f.kind for f in verdict.findings] == ["damaged", "damaged", "missing", "missing"]
    assert "cut off" in str(verdict.findings[1])
    assert verdict.episodes == 4


def test_a_drawn_sample_is_the_same_again(tmp_path: Path) -> None:
    options = ["--suite", "open", "--tasks", "pddl", "--draw", "2", "--max-turns", "2"]
    assert main(["run", "--model", "random", *options, "-o", str(tmp_path / "run")]) == 0
    assert verify(tmp_path / "run").findings == ()


def test_every_column_of_a_table_is_compared(run: Path) -> None:
    for name, column, forged in (("episodes", "turns", 1), ("turns", "thought", "x" * 300)):
        frame = pd.read_parquet(run / f"{name}.parquet")
        frame.loc[0, column] = forged
        frame.to_parquet(run / f"{name}.parquet", index=False)
    assert [f.what for f in verify(run).findings] == ["turns", "thought"]


def test_a_summary_from_before_a_number_was_added_is_no_forgery(run: Path) -> None:
    edit_json(run / "summary.json", lambda s: s.pop("format_error_kinds"))
    assert verify(run).findings == ()
    edit_json(run / "summary.json", lambda s: s["families"].pop("pddl"))
    assert [f.where for f in verify(run).findings] == ["summary.json, families.pddl"]


def test_families_that_a_summary_of_another_version_adds_are_found(run: Path) -> None:
    edit_json(run / "manifest.json", lambda m: m["sessions"][-1].update(evalharness="0.0.1"))
    edit_json(run / "summary.json", lambda s: s["families"].update(alfworld=s["families"]["pddl"]))
    assert [f.where for f in verify(run).findings] == ["summary.json, families.alfworld"]


@pytest.mark.parametrize("listed", [False, True])
def test_a_manifest_cannot_have_files_read(run: Path, tmp_path: Path, listed: bool) -> None:
    """`--tasks @FILE` is a person's option."""
    (tmp_path / "secret").write_text("hunter2\n")
    named = f"@{tmp_path / 'secret'}"

    def change(manifest: dict[str, Any]) -> None:
        manifest["identity"]["config"]["tasks"] = [named] if listed else named
        manifest["digest"] = digest(manifest["identity"])

    edit_json(run / "manifest.json", change)
    with pytest.raises(UserError, match=r"tasks: ") as refused:
        verify(run)
    assert "hunter2" not in str(refused.value)


def test_a_made_up_run_is_found(tmp_path: Path) -> None:
    """Tasks and observations that no environment gave."""
    made = make_run(tmp_path / "made", {"babyai": [(True, 1.0)] * 3}, suite="open", tasks="babyai:0-2")
    assert {"manifest", "task", "replay", "score"} <= kinds(verify(made))


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda folder: None, "does not exist"),
        (lambda folder: folder.mkdir(), "no run"),
        (lambda folder: folder.write_text("x"), "file"),
    ],
)
def test_what_is_no_run_folder_is_refused(
    tmp_path: Path, make: Callable[[Path], None], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    make(tmp_path / "x")
    assert main(["verify", str(tmp_path / "x")]) == 2
    assert reason in capsys.readouterr().err


def test_a_manifest_of_no_run_is_refused_in_one_line(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit_json(run / "manifest.json", lambda m: m["identity"]["config"].update(tasks="pddl:0-999999"))
    assert main(["verify", str(run)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_several_folders_are_all_checked(
    honest: Path, run: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A folder that holds runs stands for them; all findings are in the JSON."""
    edit(run, lambda episodes: episodes.pop() and None)
    assert main(["verify", str(honest), str(tmp_path), "--json", str(tmp_path / "v.json")]) == 1
    found = json.loads((tmp_path / "v.json").read_text())["runs"]
    assert [each["verified"] for each in found] == [True, False]
    assert "missing" in {finding["kind"] for finding in found[1]["findings"]}
    assert "NOT verified" in capsys.readouterr().out
