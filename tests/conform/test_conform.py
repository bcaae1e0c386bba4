"""A faithful recording matches, a damaged one is found out, an excepted difference is not counted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalharness.base.errors import UserError
from evalharness.envs import specs
from tests.conform.__main__ import main
from tests.conform.rules import load_tolerances
from tests.conform.transcripts import read_transcripts

EXAMPLE = Path(__file__).parents[1] / "support" / "example_environment"

Damage = Callable[[list[dict[str, Any]]], None]


# -- recordings made from a real adapter, and damaged


@pytest.fixture(scope="module")
def recording(published_data: Path) -> list[dict[str, Any]]:
    """What BabyAI really does for three tasks, written as the recorder of the originals writes it."""
    spec = specs()["babyai"]
    environment = spec.make(published_data)
    rows = []
    for task in spec.suites.load_tasks("agentboard", published_data, 0)[3:6]:
        observation, _ = environment.reset(options={"task": task})
        row: dict[str, Any] = {
            "task": "babyai",
            "id": task.index,
            "script": "simple",
            "goal": environment.goal,
        }
        row |= {
            "init_obs": observation,
            "steps": [],
            "success": False,
            "extra": {"a recorder's": "own field"},
        }
        for number in range(12):
            seen = [action for action in environment.valid_actions() if action.startswith("go to red ball")]
            action = (
                ["turn left", "dance", "check valid actions"][number]
                if number < 3
                else [*seen, "turn left"][0]
            )
            observation, _, terminated, _, info = environment.step(action)
            row["steps"].append(
                {
                    "action": action,
                    "obs": observation,
                    "progress": info["progress"],
                    "done": terminated,
                    "valid": info["valid"],
                }
            )
            row["success"] = info["success"]
            if terminated:
                break
        rows.append(row)
    return rows


def conform(rows: list[dict[str, Any]], data: Path, folder: Path, *more: str) -> tuple[int, dict[str, Any]]:
    """Exit status and JSON result for these transcripts."""
    file = folder / "recorded.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = folder / "result.json"
    status = main([str(file), "--data", str(data), "--workers", "1", "--json", str(result), *more])
    return status, json.loads(result.read_text())["families"]["babyai"]


def copy(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return json.loads(json.dumps(rows))  # type: ignore[no-any-return]


@pytest.mark.data
def test_a_faithful_recording_matches_in_every_field(
    recording: list[dict[str, Any]], published_data: Path, tmp_path: Path
) -> None:
    status, result = conform(recording, published_data, tmp_path)
    assert status == 0
    steps = sum(len(row["steps"]) for row in recording)
    assert any(row["success"] for row in recording)
    assert result["transcripts"] == {"total": 3, "matched": 3}
    assert result["steps"] == {"total": steps, "replayed": steps, "matched": steps}
    assert {name: (tally["equal"], tally["compared"]) for name, tally in result["fields"].items()} == {
        **dict.fromkeys(["goal", "initial_observation", "success"], (3, 3)),
        **dict.fromkeys(["observation", "progress", "done", "valid"], (steps, steps)),
    }


def _damage_step(field: str, change: Callable[[Any], Any]) -> Damage:
    def damage(rows: list[dict[str, Any]]) -> None:
        rows[1]["steps"][2][field] = change(rows[1]["steps"][2][field])

    return damage


def _damage_row(field: str, value: Any) -> Damage:
    def damage(rows: list[dict[str, Any]]) -> None:
        rows[1][field] = value

    return damage


@pytest.mark.data
@pytest.mark.parametrize(
    ("field", "step", "damage"),
    [
        ("observation", 2, _damage_step("obs", lambda text: text + " ")),
        ("progress", 2, _damage_step("progress", lambda value: value + 1e-6)),
        ("done", 2, _damage_step("done", lambda value: not value)),
        ("valid", 2, _damage_step("valid", lambda value: not value)),
        ("goal", None, _damage_row("goal", "go home")),
        ("initial_observation", None, _damage_row("init_obs", "It is dark.")),
        ("success", None, lambda rows: rows[1].update(success=not rows[1]["success"])),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_one_changed_value_is_the_one_difference_found(
    recording: list[dict[str, Any]],
    published_data: Path,
    tmp_path: Path,
    field: str,
    step: int | None,
    damage: Damage,
) -> None:
    rows = copy(recording)
    damage(rows)
    status, result = conform(rows, published_data, tmp_path)
    assert status == 1
    assert result["transcripts"] == {"total": 3, "matched": 2}
    found = [(d["id"], d["step"], d["field"]) for d in result["differences"]]
    assert found == [(rows[1]["id"], step, field)]
    assert result["fields"][field]["different"] == 1


@pytest.mark.data
def test_an_excepted_difference_is_counted_apart_and_shown_with_its_reason(
    recording: list[dict[str, Any]],
    published_data: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = copy(recording)
    rows[0]["goal"] = rows[1]["goal"] = "placeholder"
    exceptions = tmp_path / "exceptions.yaml"
    exceptions.write_text(
        f"babyai:\n- fields: [goal]\n  where: {{id: {rows[0]['id']}}}\n  because: shown as a placeholder there\n"
    )
    status, result = conform(rows, published_data, tmp_path, "--exceptions", str(exceptions))
    assert status == 1  # the other transcript's goal is not excepted
    assert [d["id"] for d in result["differences"]] == [rows[1]["id"]]
    rows[1]["goal"] = recording[1]["goal"]
    capsys.readouterr()
    status, result = conform(rows, published_data, tmp_path, "--exceptions", str(exceptions))
    assert status == 0
    assert result["fields"]["goal"]["excepted"] == 1
    assert result["transcripts"]["matched"] == 3
    assert "shown as a placeholder there" in " ".join(capsys.readouterr().out.split())


@pytest.mark.data
def test_what_was_not_recorded_is_not_compared(
    recording: list[dict[str, Any]], published_data: Path, tmp_path: Path
) -> None:
    rows = copy(recording)[:1]
    for name in ("goal", "init_obs", "success", "script"):
        del rows[0][name]
    rows[0]["steps"] = [{"action": step["action"]} for step in rows[0]["steps"]]
    rows[0]["steps"][0]["obs"] = None
    status, result = conform(rows, published_data, tmp_path)
    assert status == 0
    assert {tally["compared"] for tally in result["fields"].values()} == {0}
    assert result["steps"]["replayed"] == len(rows[0]["steps"])


@pytest.mark.data
def test_the_report_marks_the_change_and_lets_no_control_character_through(
    recording: list[dict[str, Any]],
    published_data: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = copy(recording)
    rows[0]["steps"][1]["obs"] = "\x1b[2J\ud800 gone"
    conform(rows, published_data, tmp_path)
    out = capsys.readouterr().out
    assert "\x1b[2J" not in out
    assert "action 'dance': observation" in out
    assert "recorded: \\x1b[2J" in out
    assert "\\ud800 gone" in out


@pytest.mark.data
def test_data_that_is_missing_is_a_bad_request(
    recording: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "recorded.jsonl"
    file.write_text(json.dumps(recording[0]))
    assert main([str(file), "--data", str(tmp_path / "nowhere")]) == 2
    assert "evalharness data import" in capsys.readouterr().err


# -- files that are no recordings


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\n\n", "is empty"),
        (b"hello", "not JSON"),
        (b"\xff\xfe\x00", "not UTF-8"),
        (b"[1, 2]", "no transcript"),
        (b'{"some": "other file"}', "no transcript"),
        (
            b'{"task": "babyai", "id": 0, "steps": []}\n{"task": "babyai", "id": 0, "st',
            r"recorded\.jsonl:2 is not",
        ),
        (
            b'{"task": "babyai", "id": 0, "steps": []}\n{"task": "babyai", "id": 1}',
            r"recorded\.jsonl:2 is no",
        ),
        (b'{"task": "babyai", "id": "x", "steps": []}', "no transcript"),
        (b'{"task": ["babyai"], "id": 0, "steps": []}', "task: .*string"),
        (b'{"task": "babyai", "id": 0, "steps": {}}', "steps: .*list"),
        (b'{"task": "babyai", "id": 0, "steps": ["go"]}', r"steps\.0: .*dictionary"),
        (b'{"task": "babyai", "id": 0, "steps": [{"obs": "x"}]}', r"steps\.0\.action: field required"),
        (
            b'{"task": "babyai", "id": 0, "steps": [{"action": "x", "done": "no"}]}',
            r"steps\.0\.done: .*boolean",
        ),
        (
            b'{"task": "babyai", "id": 0, "steps": [{"action": "x", "progress": "half"}]}',
            r"steps\.0\.progress: .*number",
        ),
        (b"[" * 100_000, "not JSON"),
    ],
)
def test_a_corrupt_or_foreign_file_is_one_clear_line(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "recorded.jsonl"
    file.write_bytes(content)
    with pytest.raises(UserError, match=message):
        read_transcripts(file)


def test_bad_requests(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.jsonl"
    actions = tmp_path / "a.actions.jsonl"
    actions.write_text('{"task": "babyai", "id": 0, "valid_actions": []}\n')
    for row, more, message in [
        ('{"task": "atari", "id": 0, "steps": []}', [], "unknown family 'atari'"),
        ('{"task": "babyai", "id": 0, "steps": []}', ["--family", "pddl"], "'pddl'"),
        ('{"task": "babyai", "id": 0, "steps": []}', ["--workers", "0"], "--workers"),
        ('{"task": "babyai", "id": 0, "valid_actions": []}', [], "steps"),
        (
            '{"task": "babyai", "id": 0, "steps": []}',
            ["--exceptions", str(tmp_path / "no.yaml")],
            "no.yaml",
        ),
    ]:
        file.write_text(row)
        assert main([str(file), *more]) == 2
        assert message in capsys.readouterr().err
    assert main([str(tmp_path / "none.jsonl")]) == 2
    assert "none.jsonl" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("babyai: [{fields: [goal]}]", "because"),
        ("babyai: [{fields: [colour], because: it is not a field}]", "goal"),
        ("babyai: [{fields: [goal], action: '(', because: no regular expression}]", "regular expression"),
        (
            "babyai:\n- {fields: [goal], wher: {id: 1}, because: a typing error}",
            r"babyai\.0\.wher: ",
        ),
        ("atari: []", "unknown family"),
        ("- just a list", "valid dictionary"),
        ("{", "not usable: line 1"),
    ],
)
def test_a_wrong_exceptions_file_is_one_clear_line(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "exceptions.yaml"
    file.write_text(text)
    with pytest.raises(UserError, match=message):
        load_tolerances(file)


# -- an environment that breaks costs its own transcript only (the example environment, in real processes)


@pytest.mark.slow
def test_a_crash_a_hang_and_an_exception_are_differences_of_their_transcripts(tmp_path: Path) -> None:
    def row(index: int, action: str, seen: str) -> dict[str, Any]:
        return {"task": "compass", "id": index, "steps": [{"action": action, "obs": seen}]}

    file = tmp_path / "recorded.jsonl"
    rows = [
        row(1, "turn right", "You face east."),
        row(2, "fault always exit", "You cannot do that."),
        row(3, "fault always hang", "You cannot do that."),
        row(4, "fault always raise", "You cannot do that."),
        row(5, "fault kill", "You cannot do that."),  # breaks once: the second try is a match
        row(6, "turn left", "You face west."),
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "faults").mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "tests.conform", str(file), "--workers", "2", "--json", "-"],
        env={**os.environ, "PYTHONPATH": str(EXAMPLE), "COMPASS_FAULTS": str(tmp_path / "faults")},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    result = json.loads(done.stdout)["families"]["compass"]
    assert result["transcripts"] == {"total": 6, "matched": 3}
    crashes = {found["id"]: found["ours"] for found in result["differences"]}
    assert "exit status 7" in crashes[2]
    assert "'step'" in crashes[3]
    assert "the needle fell off" in crashes[4]
    assert sorted(crashes) == [2, 3, 4]
    assert "crash" in done.stderr  # with JSON on standard output, the report goes to standard error
