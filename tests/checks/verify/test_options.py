"""A real run edited consistently: the manifest with its digest, the episodes, the summary made anew, no tables. What
the folder still says elsewhere gives the edit away; what is said nowhere else is marked in tables as only stated."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from made_runs import make_run

from evalharness.base import reading
from evalharness.base.errors import UserError
from evalharness.checks.verify import Finding, verify
from evalharness.checks.verify.described import find_missing, version_notes
from evalharness.checks.verify.options import config_findings
from evalharness.cli import main
from evalharness.envs import specs
from evalharness.protocol.prompt import load_prompt
from evalharness.records.identity import digest
from evalharness.records.store import read_manifest
from evalharness.results.run_labels import labels_of
from evalharness.results.scored_run import load_scored_run
from evalharness.results.summarize import earlier_timing, write_summary

Change = Callable[[dict[str, Any]], object]


def play(folder: Path, *options: str) -> Path:
    fixed = ["--suite", "open", "--tasks", "pddl:0-1", "-o", str(folder)]
    assert main(["run", *fixed, *options]) == 0
    return folder


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sampled = ("--temperature", "1", "--max-tokens", "512", "--max-turns", "5")
    return play(tmp_path_factory.mktemp("honest") / "run", "--model", "random", *sampled)


@pytest.fixture
def run(honest: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(honest, tmp_path / "run"))


def forge(run: Path, change: Change, of_episode: Change = lambda episode: None) -> list[Finding]:
    """Edit the manifest and every episode, make whatever follows from these anew, and verify."""
    manifest = json.loads((run / "manifest.json").read_text())
    change(manifest)
    manifest["digest"] = digest(manifest["identity"])
    (run / "manifest.json").write_text(json.dumps(manifest))
    episodes = [json.loads(line) for line in (run / "episodes.jsonl").read_text().splitlines()]
    for episode in episodes:
        of_episode(episode)
    (run / "episodes.jsonl").write_text("".join(json.dumps(episode) + "\n" for episode in episodes))
    write_summary(run, earlier_timing(run))
    for name in ("episodes.parquet", "turns.parquet"):
        (run / name).unlink()
    return list(verify(run).findings)


def as_of_a_model(manifest: dict[str, Any]) -> None:
    manifest["model_name"] = "toy"
    manifest["identity"]["config"] |= {"model": "endpoint", "model_name": "toy"}
    manifest["identity"]["model"] = {"kind": "endpoint", "name": "toy"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("option", "value", "original"),
    [("max_tokens", 256, 512), ("temperature", 0.0, 1.0), ("model", "oracle", "random"), ("seed", 3, 0)],
)
def test_an_option_that_config_yaml_says_otherwise_is_found(
    run: Path, option: str, value: Any, original: Any
) -> None:
    def change(manifest: dict[str, Any]) -> None:
        manifest["identity"]["config"][option] = value
        if option == "model":
            manifest["model_name"] = manifest["identity"]["model"]["name"] = value

    [finding] = forge(run, change)
    assert (finding.kind, finding.where) == ("option", f"config.yaml, {option}")
    assert (finding.recorded, finding.found) == (value, original)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "keys"),
    [
        (lambda m: m.update(model_name="GPT-9"), {"model_name"}),
        (lambda m: m["identity"]["model"].update(name="GPT-9"), {"identity.model.name"}),
        (
            lambda m: m["identity"].update(model={"kind": "vllm", "name": "x"}),
            {"identity.model.kind", "identity.model.name"},
        ),
        (
            lambda m: m["sessions"][0].update(policy={"requests": [{"sampling": {"temperature": 0.7}}]}),
            {"temperature"},
        ),
    ],
)
def test_a_name_or_a_request_that_is_not_the_configurations_is_found(
    run: Path, change: Change, keys: set[str]
) -> None:
    found = forge(run, change)
    assert {finding.where for finding in found} == {f"manifest.json, {key}" for key in keys}


@pytest.mark.slow
def test_fewer_turns_than_were_played_are_found(run: Path) -> None:
    """The limit lowered, and every episode cut off there; without config.yaml the time of the turns tells."""

    def cut(episode: dict[str, Any]) -> None:
        episode["turns"] = episode["turns"][:2]
        episode |= {"progress": episode["turns"][-1]["progress"], "ended_by": "turn_limit"}

    (run / "config.yaml").unlink()
    found = forge(run, lambda m: m["identity"]["config"].update(max_turns=2), cut)
    assert [f.kind for f in found] == ["option"] * 2


@pytest.mark.slow
def test_a_reply_longer_than_the_run_allowed_is_found(run: Path) -> None:
    def longer(episode: dict[str, Any]) -> None:
        episode["turns"][1] |= {"prompt_tokens": 900, "completion_tokens": 300}

    def change(manifest: dict[str, Any]) -> None:
        as_of_a_model(manifest)
        manifest["identity"]["config"]["max_tokens"] = 256

    (run / "config.yaml").unlink()
    found = forge(run, change, longer)
    assert {(f.kind, f.recorded, f.found) for f in found} == {("option", 300, 256)}
    assert found[0].where.endswith("turn 2")


@pytest.mark.slow
def test_replies_of_a_model_in_a_run_of_a_script_are_found(run: Path) -> None:
    def asked(episode: dict[str, Any]) -> None:
        episode["turns"][0] |= {"prompt_tokens": 900, "completion_tokens": 30}

    found = forge(run, lambda manifest: None, asked)
    assert {f.kind for f in found} == {"option"}


@pytest.mark.slow
def test_an_action_edited_with_its_observation_is_found_unless_the_environment_answers_so(run: Path) -> None:
    """Who chose an action cannot be told; what the environment answers to it can."""

    def dance(episode: dict[str, Any]) -> None:
        turn = episode["turns"][0]
        said = f"Thought: {turn['thought']}\nAction: dance"
        turn |= {"action": "dance", "reply": said, "observation": "You dance."}

    assert {finding.kind for finding in forge(run, lambda manifest: None, dance)} >= {"replay"}


@pytest.mark.slow
def test_prompts_of_ones_own_under_our_hash_are_noted(tmp_path: Path) -> None:
    spec = specs()["pddl"]
    ours = load_prompt(spec)
    own = tmp_path / "prompts"
    assert main(["data", "prompts", "export", "--tasks", "pddl", str(own)]) == 0
    with (own / "pddl.yaml").open("a") as file:
        file.write("# mine\n")
    run = play(tmp_path / "run", "--model", "random", "--max-turns", "2", "--prompts", str(own))

    def change(manifest: dict[str, Any]) -> None:
        manifest["identity"]["prompts_sha256"]["pddl"] = ours.sha256

    assert forge(run, change, lambda episode: episode.update(prompt_hash=ours.sha256)) == []
    [note] = verify(run).notes
    assert "config.yaml" in note


def test_versions_that_the_starts_of_a_run_mix_are_noted(tmp_path: Path) -> None:
    [start] = read_manifest(make_run(tmp_path / "run", {"pddl": [(True, 1.0)]})).sessions
    assert version_notes([start, start]) == []
    older = start.model_copy(
        update={"evalharness": "0.1", "packages": {**(start.packages or {}), "numpy": "1.0"}}
    )
    notes = version_notes([start, older, start])
    assert [note.split()[0] for note in notes] == ["evalharness", "numpy", "numpy"]
    assert all(each in notes[0] for each in (start.evalharness, "0.1"))


@pytest.mark.parametrize("text", ["- 1\n", "a: &a [*a]\n", "[" * 5000, "\x00", "max_tokens: {}\n"])
def test_a_config_yaml_that_holds_no_options_is_a_finding(tmp_path: Path, text: str) -> None:
    run = make_run(tmp_path / "run", {"pddl": [(True, 1.0)]}, suite="open")
    (run / "config.yaml").write_text(text)
    assert {finding.kind for finding in config_findings(run, read_manifest(run))} == {"option"}


def test_a_script_is_named_beside_the_name_it_was_given(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", {"pddl": [(True, 1.0)]}, suite="open", name="GPT-9")
    manifest = json.loads((run / "manifest.json").read_text())
    for model, shown in (
        ({"kind": "scripted", "name": "oracle"}, "GPT-9 (oracle)"),
        ({"kind": "scripted", "name": "replay:results/x"}, "GPT-9 (replay)"),
        ({"kind": "endpoint", "name": "GPT-9"}, "GPT-9"),
    ):
        manifest["identity"]["model"] = model
        (run / "manifest.json").write_text(json.dumps(manifest))
        scored = load_scored_run(run)
        assert (labels_of([scored]), scored.name) == ([shown], shown)


def test_a_line_that_no_memory_should_hold_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "LONGEST_LINE", 100)
    run = make_run(tmp_path / "run", {"babyai": [(True, 1.0)]}, suite="open", tasks="babyai:0")
    with pytest.raises(UserError, match="longer"):
        verify(run)


def test_a_task_that_lacks_many_episodes_is_one_finding() -> None:
    findings = find_missing({("a", 0), ("b", 0)}, ["a", "b"], 10_000, set())
    assert len(findings) == 2
    for task, finding in zip("ab", findings, strict=True):
        assert finding.where == task
        assert "9999 of its 10000" in finding.what
    assert [finding.where for finding in find_missing({("a", 1)}, ["a"], 3, set())] == [
        "a, sample 0",
        "a, sample 2",
    ]
