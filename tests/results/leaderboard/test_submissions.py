"""Submissions: what is in them, that nothing in one leads out of it, and how they stand in a leaderboard."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from made_runs import make_run

from evalharness.base.errors import UserError
from evalharness.base.reading import sha256_of
from evalharness.checks.verify import verify
from evalharness.checks.verify.remembered import content_key, remember, was_verified
from evalharness.cli import main
from evalharness.records.episode import FailedTry, FurtherCall, Trial
from evalharness.records.identity import digest
from evalharness.records.store import read_episodes, read_manifest
from evalharness.records.submission import read_submission

SOLVED, NOTHING = (True, 1.0), (False, 0.0)
HOSTILE = '<img src=x onerror="alert(1)">'


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Into a pipe nothing is folded, whatever the terminal is that the tests were started in."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real run of two tasks, as a model's so that it has texts."""
    folder = tmp_path_factory.mktemp("played") / "run"
    options = ["--suite", "open", "--tasks", "pddl:0-1", "--max-turns", "4"]
    assert main(["run", "--model", "random", *options, "-o", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def submitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A made submission of a made run, which nothing would verify."""
    folder = tmp_path_factory.mktemp("submitted")
    run = make_run(folder / "run", {"babyai": [SOLVED] * 112}, name="toy")
    options = ["--name", HOSTILE, "--organization", "A & B", "--site", "https://example.org/?a=1&b=2"]
    arguments = [str(run), "-o", str(folder / "one"), *options, "--held-in", "babyai", "--no-verify"]
    assert main(["leaderboard", "submit", *arguments]) == 0
    return folder / "one"


@pytest.fixture
def submission(submitted: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(submitted, tmp_path / "subs" / "one"))


def metadata(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((folder / "metadata.yaml").read_text())
    return found


def edit(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    data = metadata(folder)
    change(data)
    (folder / "metadata.yaml").write_text(yaml.safe_dump(data))


@pytest.mark.slow
def test_a_submission_without_text_holds_the_actions_and_can_be_verified(
    played: Path, tmp_path: Path
) -> None:
    arguments = ["-o", str(tmp_path / "s"), "--without-text", "--held-in", "alfworld"]
    assert main(["leaderboard", "submit", str(played), *arguments]) == 0
    said = metadata(tmp_path / "s")
    assert (said["verified"], said["held_in"], said["model_text"]) == (False, ["alfworld"], False)
    [run] = said["runs"]
    text = (tmp_path / "s" / run["folder"] / "episodes.jsonl").read_text()
    episodes = [json.loads(line) for line in text.splitlines()]
    turns = [turn for episode in episodes for turn in episode["turns"]]
    assert len(turns) == 8
    assert {(turn["reply"], turn["thought"], turn["reasoning"]) for turn in turns} == {("", "", "")}
    assert all(turn["action"] for turn in turns)
    assert verify(tmp_path / "s" / run["folder"]).findings == ()
    assert main(["verify", str(tmp_path / "s")]) == 0


@pytest.mark.slow
def test_what_does_not_follow_from_its_actions_is_not_submitted(
    played: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Path(shutil.copytree(played, tmp_path / "run"))
    text = (run / "episodes.jsonl").read_text()
    (run / "episodes.jsonl").write_text(text.replace('"progress":0', '"progress":0.9', 1))
    assert main(["leaderboard", "submit", str(run), "-o", str(tmp_path / "s")]) == 2
    assert "is not submitted" in capsys.readouterr().err
    assert not (tmp_path / "s").exists()


def test_a_submission_tells_nothing_of_the_machine(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", {"babyai": [SOLVED]})
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["sessions"][0]["policy"] = {"argv": ["/home/me/vllm"], "requests": [{"tells_stop": False}]}
    manifest["identity"]["config"] |= {
        "model": "/home/me/model",
        "vllm_args": "--host me --max-model-len 4096",
    }
    manifest["identity"]["model"] |= {"url": "http://127.0.0.1:1/v1", "served": {"root": "/home/me/model"}}
    (run / "manifest.json").write_text(json.dumps(manifest))
    assert main(["leaderboard", "submit", str(run), "-o", str(tmp_path / "s"), "--no-verify"]) == 0
    texts = [path.read_text() for path in (tmp_path / "s").rglob("*") if path.is_file()]
    assert len(texts) == 4
    for text in texts:
        assert "/home/me" not in text
        assert "127.0.0.1" not in text
        assert str(tmp_path) not in text
    submitted = read_manifest(tmp_path / "s" / "runs" / "run")
    assert submitted.options["model"] == "model"
    assert submitted.options["vllm_args"] == "--max-model-len 4096"
    assert submitted.digest == digest(submitted.identity.to_json())


def test_every_call_of_every_trial_is_without_text_and_errors(tmp_path: Path) -> None:
    """An agent's own calls, and the trials before the last one, too."""
    run = make_run(tmp_path / "run", {"babyai": [SOLVED]})
    [episode] = read_episodes(run)
    failed = FailedTry("connect", "secret host", 1.0, 0.0)
    call = FurtherCall("reflect", "secret reply", reasoning="secret", failed_tries=(failed,))
    turn = dataclasses.replace(
        episode.turns[0], reply="secret", thought="secret", failed_tries=(failed,), further=(call,)
    )
    trial = Trial((turn,), 0.0, success=False, solved=False, ended_by="turn_limit", further=(call,))
    played = dataclasses.replace(episode, turns=(turn,), further=(call,), earlier=(trial,))
    (run / "episodes.jsonl").write_text(json.dumps(played.to_json()) + "\n")
    arguments = [str(run), "-o", str(tmp_path / "s"), "--no-verify", "--without-text"]
    assert main(["leaderboard", "submit", *arguments]) == 0
    text = (tmp_path / "s" / "runs" / "run" / "episodes.jsonl").read_text()
    assert (text.count('"reflect"'), text.count("secret")) == (4, 0)


BAD_PATHS = ["/etc", "../run", "runs/../../x", "runs//run", ".", "C:\\run", "runs\\run", ""]


@pytest.mark.parametrize("path", BAD_PATHS)
def test_a_path_that_leads_out_is_refused(submission: Path, path: str) -> None:
    edit(submission, lambda data: data["runs"][0].update(folder=path))
    with pytest.raises(UserError, match=r"metadata\.yaml is not usable: line \d+, runs\.0\.folder"):
        read_submission(submission)


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data["runs"][0]["files"].update({"../../secret": "0" * 64}),
        lambda data: data["runs"][0]["files"].pop("episodes.jsonl"),
        lambda data: data.update(site="javascript:alert(1)"),
        lambda data: data.update(date="today"),
        lambda data: data.update(name=""),
        lambda data: data.update(name="\x1b[31mred"),
        lambda data: data.update(organization="\u202eevil"),
        lambda data: data.update(held_in=["../x"]),
        lambda data: data.update(runs=[]),
        lambda data: data.update(extra=1),
        lambda data: data.pop("runs"),
    ],
)
def test_metadata_of_another_shape_is_refused(
    submission: Path, change: Callable[[dict[str, Any]], object]
) -> None:
    edit(submission, change)
    with pytest.raises(UserError, match=r"metadata\.yaml is not usable: line \d+"):
        read_submission(submission)


@pytest.mark.parametrize("what", ["folder", "file", "metadata"])
def test_links_are_not_followed(submission: Path, tmp_path: Path, what: str) -> None:
    [run] = (submission / "runs").iterdir()
    original = {"folder": run, "file": run / "episodes.jsonl", "metadata": submission / "metadata.yaml"}[what]
    shutil.move(original, tmp_path / "elsewhere")
    original.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="is a link"):
        read_submission(submission)


def test_an_edited_a_missing_and_an_added_file_are_found(submission: Path) -> None:
    [run] = (submission / "runs").iterdir()
    (run / "turns.parquet").write_bytes(b"")
    with pytest.raises(UserError, match="does not list"):
        read_submission(submission)
    (run / "turns.parquet").unlink()
    with (run / "summary.json").open("a") as file:
        file.write(" ")
    with pytest.raises(UserError, match="not the file that was submitted"):
        read_submission(submission)
    (run / "summary.json").unlink()
    with pytest.raises(UserError, match="not readable"):
        read_submission(submission)


def test_a_text_that_is_no_yaml_is_one_line(submission: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (submission / "metadata.yaml").write_text("name: [\n\x1b[31m")
    assert main(["verify", str(submission)]) == 2
    said = capsys.readouterr().err
    assert (said.count("\n"), "\x1b" in said) == (1, False)


def rows(folder: Path, target: Path, *more: str) -> list[dict[str, Any]]:
    assert main(["leaderboard", "--from", str(folder), *more, "--json", str(target)]) == 0
    found: list[dict[str, Any]] = json.loads(target.read_text())["rows"]
    return [row for row in found if row["folder"] is not None]


def test_submissions_stand_in_the_table_marked_as_declared_and_as_not_verified(
    submission: Path, tmp_path: Path, clean_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`verified: true` in a file is nobody's verification; a replay on this machine is."""
    edit(submission, lambda data: data.update(verified=True))
    [row] = rows(tmp_path / "subs", tmp_path / "board.json")
    assert (row["series"], row["name"], row["held_in"]) == ("submissions", HOSTILE, ["babyai"])
    assert row["verification"] == "not verified"
    assert row["submitter"].startswith("A & B, 20")
    assert "[not verified]" in capsys.readouterr().out
    [run] = (submission / "runs").iterdir()
    remember(run, content_key(run))
    [row] = rows(tmp_path / "subs", tmp_path / "board.json")
    assert row["verification"] == "verified"
    with (run / "episodes.jsonl").open("a") as file:
        file.write("\n")
    edit(
        submission,
        lambda data: data["runs"][0]["files"].update({"episodes.jsonl": sha256_of(run / "episodes.jsonl")}),
    )
    assert main(["leaderboard", "--from", str(submission)]) == 2


def test_one_bad_submission_does_not_keep_others_from_the_table(
    submission: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = Path(shutil.copytree(submission, submission.with_name("two")))
    edit(other, lambda data: data["runs"][0].update(folder="../one/runs/run"))
    open_run = make_run(tmp_path / "open", {"pddl": [SOLVED]}, suite="open")
    three = ["leaderboard", "submit", str(open_run), "-o", str(tmp_path / "subs" / "three"), "--no-verify"]
    assert main(three) == 0
    assert len(rows(tmp_path / "subs", tmp_path / "board.json")) == 1
    said = capsys.readouterr()
    assert "left out: two: " in said.err
    assert "was played on suite open" in said.err
    assert said.out.count("left out: ") == 2


def test_a_submission_whose_families_or_temperature_are_not_of_the_table_stands_in_it(
    submission: Path, tmp_path: Path
) -> None:
    edit(submission, lambda data: data.update(held_in=["hotpotqa"]))
    path = submission / metadata(submission)["runs"][0]["folder"] / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["identity"]["config"]["temperature"] = None
    path.write_text(json.dumps(manifest))
    edit(submission, lambda data: data["runs"][0]["files"].update({path.name: sha256_of(path)}))
    [row] = rows(tmp_path / "subs", tmp_path / "board.json")
    assert row["held_in"] == ["hotpotqa"]


def test_a_forged_submission_is_left_out_when_it_is_verified(
    submission: Path, tmp_path: Path, clean_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A made run of the open suite: its observations are no environment's."""
    run = make_run(tmp_path / "open", {"pddl": [SOLVED]}, suite="open", tasks="pddl:0")
    target = tmp_path / "all" / "forged"
    assert main(["leaderboard", "submit", str(run), "-o", str(target), "--no-verify"]) == 0
    assert main(["leaderboard", "--from", str(target), "--no-published", "--verify"]) == 2
    assert "its numbers do not follow from its actions" in capsys.readouterr().err


def test_nothing_of_a_submission_runs_in_the_page(submission: Path, tmp_path: Path) -> None:
    page = tmp_path / "board.html"
    assert main(["leaderboard", "--from", str(submission), "-o", str(page)]) == 0
    text = page.read_text()
    assert "<img" not in text
    assert 'href="https://example.org/?a=1&amp;b=2"' in text
    assert "A &amp; B" in text


def test_a_bomb_of_aliases_is_refused_before_it_is_unfolded(submission: Path) -> None:
    """Nine levels of nine merged aliases each: unfolded, gigabytes of memory."""
    bomb = "a0: &a0 {k: 1}\n" + "".join(
        f"a{i}: &a{i} {{<<: [{','.join([f'*a{i - 1}'] * 9)}]}}\n" for i in range(1, 10)
    )
    (submission / "metadata.yaml").write_text(bomb)
    with pytest.raises(
        UserError, match=r"not usable: line .* more than 100,000 values, aliases counted each time"
    ):
        read_submission(submission)


def test_a_pipe_is_not_waited_for(submission: Path) -> None:
    [run] = (submission / "runs").iterdir()
    (run / "episodes.jsonl").unlink()
    os.mkfifo(run / "episodes.jsonl")
    with pytest.raises(UserError, match="is not a plain file"):
        read_submission(submission)
    with pytest.raises(UserError, match="is not a plain file"):
        verify(run)


def test_what_changes_while_it_is_replayed_is_not_remembered(played: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(played, tmp_path / "run"))
    before = content_key(run)
    with (run / "summary.json").open("a") as file:
        file.write(" ")
    remember(run, before)
    assert not was_verified(run)
