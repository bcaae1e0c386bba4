"""A perturbation from a file: its run needs the file no more, and a file that changes meanings is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from evalharness.base.errors import UserError
from evalharness.checks.verify import verify
from evalharness.cli import main
from evalharness.envs import specs
from evalharness.protocol.perturb import make_surface
from evalharness.protocol.perturbation_names import read_files
from evalharness.records.store import read_manifest

GO, TAKE = "please walk to {receptacle}", "from {receptacle} please take {object}"


def write(path: Path, family: str = "alfworld", **changes: Any) -> str:
    path.write_text(yaml.safe_dump({"description": "polite verbs", "families": {family: changes}}))
    return str(path)


def test_a_run_is_played_verified_repeated_and_reported_without_its_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path / "polite.yaml", actions={"go": GO, "take": TAKE}, join_numbers=True)
    task, run = ["--suite", "open", "--tasks", "alfworld:0"], tmp_path / "run"
    assert main(["run", "--model", "oracle", *task, "--perturb", file, "-o", str(run)]) == 0
    manifest = read_manifest(run)
    [name] = manifest.config.own_perturbations or {}
    assert (manifest.config.perturb, name.partition("@")[0]) == (name, "polite")
    assert "please walk to" in (run / "episodes.jsonl").read_text()
    Path(file).unlink()
    assert verify(run).findings == ()
    assert main(["run", "--config", str(run / "config.yaml"), "-o", str(tmp_path / "again")]) == 0
    assert read_manifest(tmp_path / "again").digest == manifest.digest
    capsys.readouterr()
    assert main(["report", str(run), "-o", str(tmp_path / "page.html")]) == 0
    assert main(["compare", str(run), str(tmp_path / "again")]) == 0


def test_a_sweep_plays_files_beside_names(tmp_path: Path) -> None:
    file = write(tmp_path / "polite.yaml", actions={"go": GO})
    sweep = [
        "sweep",
        "--model",
        "oracle",
        "--suite",
        "open",
        "--tasks",
        "alfworld:0",
        "--json",
        str(tmp_path / "j"),
    ]
    assert main([*sweep, "--perturb", "P3", file, "-o", str(tmp_path / "study")]) == 0
    columns = [column["name"] for column in json.loads((tmp_path / "j").read_text())["columns"]]
    assert columns == ["unperturbed", "P3", read_files(file)[0]]


def test_a_name_follows_from_the_content_and_joins_with_others(tmp_path: Path) -> None:
    file = write(tmp_path / "mine.yaml", actions={"go": GO})
    spec = specs()["alfworld"]
    name, _ = read_files(f"P3+{file}")
    assert make_surface(spec, name).to_world("from desk 1 take pen 2") == "take pen 2 from desk 1"
    assert make_surface(spec, name).to_world("please walk to desk 1") == "go to desk 1"
    write(tmp_path / "mine.yaml", actions={"go": "walk to {receptacle}"})
    assert read_files(f"P3+{file}")[0] != name


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"actions": {"go": "walk"}}, "slots"),
        ({"actions": {"go": "walk to {receptacle.__class__}"}}, "slots"),
        ({"actions": {"go": "walk to {receptacle!r}"}}, "slots"),
        ({"actions": {"take": "take {object}{receptacle}"}}, "slots"),
        ({"actions": {"go": "walk to {"}}, "slots"),
        ({"actions": {"fly": "fly"}}, "no action fly"),
        ({"actions": {"go": "open {receptacle}"}}, "same new wording"),
        ({"actions": {"open": "close {receptacle}", "close": "open {receptacle}"}}, "is still an action"),
        ({"code": "print()"}, "no such key"),
        ({"family": "pddl"}, "has no changes for alfworld"),
    ],
)
def test_a_file_that_is_no_rewording_is_refused(tmp_path: Path, changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        make_surface(specs()["alfworld"], read_files(write(tmp_path / "mine.yaml", **changes))[0])


def test_a_strangers_manifest_names_no_file_and_no_other_definition(tmp_path: Path) -> None:
    file = write(tmp_path / "polite.yaml", actions={"go": GO})
    task, run = ["--suite", "open", "--tasks", "alfworld:0"], tmp_path / "run"
    assert main(["run", "--model", "oracle", *task, "--perturb", file, "-o", str(run)]) == 0
    manifest = json.loads((run / "manifest.json").read_text())
    config = manifest["identity"]["config"]
    [definition] = config["own_perturbations"].values()
    for change in ({"perturb": file}, {"own_perturbations": {"polite@000000000000": definition}}):
        forged = {**manifest, "identity": {**manifest["identity"], "config": config | change}}
        (run / "manifest.json").write_text(json.dumps(forged))
        with pytest.raises(UserError, match="is damaged"):
            read_manifest(run)


def test_a_file_without_effect_or_with_an_unknown_family_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = ["run", "--model", "oracle", "--suite", "open", "--tasks", "babyai:0", "-o", str(tmp_path / "run")]
    for file, named in (
        (write(tmp_path / "none.yaml", "babyai", prose={"not in the prompt": "x"}), "BabyAI"),
        (write(tmp_path / "other.yaml", "babiai", upper_case=True), "did you mean 'babyai'"),
    ):
        assert main([*run, "--perturb", file]) == 2
        assert named in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
