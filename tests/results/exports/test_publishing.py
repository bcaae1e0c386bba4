"""Exports to publish a run or to train on it, read by what they are for: the formats' own packages."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import throwaway
from made_runs import make_run

from evalharness.cli import main

SOLVED, HALF, NOTHING = (True, 1.0), (False, 0.5), (False, 0.0)
SIZES = {"babyai": 112, "sciworld": 90, "pddl": 60, "jericho": 20}
TEXT = "Thought: t\nAction: turn left"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    outcomes = {family: [SOLVED] * (n // 2) + [HALF] * (n - n // 2) for family, n in SIZES.items()}
    return make_run(tmp_path_factory.mktemp("runs") / "whole", outcomes, name="acme/toy-1")


def export(run: Path, form: str, target: Path, *more: str) -> Path:
    assert main(["export", str(run), "--format", form, "-o", str(target), *more]) == 0
    return target


def both(target: Path) -> tuple[dict[str, Any], list[dict[str, Any]], Path]:
    [document] = target.rglob("*.json")
    [samples] = target.rglob("*.jsonl")
    return json.loads(document.read_text()), [json.loads(line) for line in samples.open()], samples


REQUIRED = {
    (): (
        "schema_version",
        "evaluation_id",
        "retrieved_timestamp",
        "source_metadata",
        "model_info",
        "eval_library",
    ),
    ("source_metadata",): ("source_type", "source_organization_name", "evaluator_relationship"),
    ("eval_library",): ("name", "version"),
    ("model_info",): ("name", "id", "additional_details"),
    ("model_info", "additional_details"): ("deployment_type", "model_availability"),
    ("evaluation_results", 0): ("evaluation_name", "source_data", "metric_config", "score_details"),
    ("evaluation_results", 0, "metric_config"): ("lower_is_better", "min_score", "max_score"),
    ("evaluation_results", 0, "score_details"): ("score",),
    ("detailed_evaluation_results",): ("format", "file_path"),
}
"""Of schema 0.3.0, for where its package cannot be had."""


def test_every_eval_ever_has_what_the_schema_requires(whole: Path, tmp_path: Path) -> None:
    document, samples, path = both(export(whole, "every-eval-ever", tmp_path / "out"))
    for keys, required in REQUIRED.items():
        part: Any = document
        for key in keys:
            part = part[key]
        assert set(required) <= part.keys(), keys
    results = {result["evaluation_result_id"]: result for result in document["evaluation_results"]}
    assert len(results) == 2 * (len(SIZES) + 1)
    assert results["held_out/success_rate"]["score_details"]["score"] == 0.5
    interval = results["babyai/progress_rate"]["score_details"]["uncertainty"]["confidence_interval"]
    assert interval["lower"] < 0.75 < interval["upper"]
    assert len(samples) == document["detailed_evaluation_results"]["total_rows"] == 2 * 282
    assert (
        document["detailed_evaluation_results"]["checksum"] == hashlib.sha256(path.read_bytes()).hexdigest()
    )
    for result, found in results.items():
        scores = [s["evaluation"]["score"] for s in samples if s["evaluation_result_id"] == result]
        if not result.startswith("held_out"):
            assert sum(scores) / len(scores) == pytest.approx(found["score_details"]["score"])


VALIDATE = """
import sys
from pathlib import Path
from every_eval_ever.validator.validation_core import validate_file
root = Path(sys.argv[1])
names = frozenset(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())
for name in sorted(names):
    report = validate_file(root / name, repo_path=name, available_files=names,
                           read_repo_file=lambda one: (root / one).read_text(), run_semantic_checks=True)
    assert report.valid and not report.warnings, (name, report.errors[:3], report.warnings[:3])
print(len(names))
"""


def test_every_eval_ever_passes_the_packages_own_validation(
    whole: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    """A run of a model with chat, and one of a model with tool calls, by the validator of every_eval_ever 0.3.0."""
    export(
        whole, "every-eval-ever", tmp_path / "out", "--organization", "Acme", "--relationship", "first_party"
    )
    packages = throwaway.overlay(
        tmp_path / "packages", "--no-deps", "--python-version", "3.12", "every_eval_ever==0.3.0"
    )
    done = subprocess.run(
        [sys.executable, "-c", VALIDATE, str(tmp_path / "out")],
        env={**environment, "PYTHONPATH": str(packages)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "2"), done.stderr


def test_the_same_run_gives_the_same_bytes(whole: Path, tmp_path: Path) -> None:
    pair = [export(whole, "every-eval-ever", tmp_path / name) for name in ("one", "two")]
    one, two = ({p.name: p.read_bytes() for p in target.rglob("*") if p.is_file()} for target in pair)
    assert list(one.values()) == list(two.values())


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--format", "every-eval-ever", "--model-id", "../x"], "give --model-id DEVELOPER/NAME"),
        (["--format", "every-eval-ever", "--relationship", "friend"], "first_party"),
        (["--format", "every-eval-ever", "--successful"], "no meaning"),
    ],
)
def test_what_cannot_be_published_is_refused_and_leaves_nothing(
    whole: Path, tmp_path: Path, options: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", str(whole), *options, "-o", str(tmp_path / "out")]) == 2
    assert reason in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
