"""`manifest.json` and `summary.json` are models: nothing of a file is lost, and docs/schemas describes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from made_runs import make_run
from schemas import schemas

from evalharness.records.manifest import Manifest
from evalharness.records.store import MANIFEST, SUMMARY, RunStore, read_manifest
from evalharness.records.stored import Stored
from evalharness.records.summary import Summary, Timing
from evalharness.results.summarize import earlier_timing, write_summary

DOCS = Path(__file__).parents[2] / "docs" / "schemas"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    solved, half = (True, 1.0), (False, 0.5)
    return make_run(tmp_path / "run", {"babyai": [solved, half], "pddl": [half]}, suite="open")


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def test_the_schemas_in_the_docs_are_those_of_the_models() -> None:
    found = {path.name: path.read_text(encoding="utf-8") for path in DOCS.iterdir()}
    assert found == schemas(), "out of date: python tests/support/schemas.py docs/schemas"


@pytest.mark.parametrize("name", [MANIFEST, SUMMARY])
def test_every_field_says_what_it_is(name: str) -> None:
    schema = read(DOCS / name)
    for shape in (schema, *schema["$defs"].values()):
        assert [key for key, field in shape["properties"].items() if "description" not in field] == []


@pytest.mark.parametrize(("model", "name"), [(Manifest, MANIFEST), (Summary, SUMMARY)])
def test_a_file_that_was_read_is_written_as_it_was(model: type[Stored], name: str, run: Path) -> None:
    """Keys that are not there stay away, and keys of another version stay."""
    write_summary(run, Timing(wall_s=3.0, sessions=1))
    written = read(run / name)
    assert json.loads(json.dumps(model.of(written).to_json())) == written
    inner = {MANIFEST: "identity", SUMMARY: "families"}[name]
    written |= {"later": {"known": [None]}, inner: written[inner] | {"later": written[inner].get("babyai")}}
    assert json.loads(json.dumps(model.of(written).to_json())) == written


def test_a_run_of_another_version_is_continued_with_all_that_it_says(run: Path) -> None:
    manifest = read(run / MANIFEST)
    later = {**manifest, "later": 1, "sessions": [manifest["sessions"][0] | {"later": {"a": [1]}}]}
    (run / MANIFEST).write_text(json.dumps(later))
    with RunStore(run) as store:
        store.load_or_refuse(manifest)
        store.begin(manifest)
    assert read(run / MANIFEST) == {**later, "sessions": [*later["sessions"], *manifest["sessions"]]}


def test_times_of_another_version_are_kept(run: Path) -> None:
    performance = {
        "efficiency": 0.5, "bound": "model", "time": {"model": 1.0}, "server": None, "events": [],
        "later": [1],
    }  # fmt: skip
    write_summary(run, Timing.of({"wall_s": 3.0, "performance": performance}))
    write_summary(run, earlier_timing(run))
    assert read(run / SUMMARY)["performance"] == performance
    assert read_manifest(run).turn_limits == {"babyai": 30, "pddl": 30}
