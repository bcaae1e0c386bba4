"""What an environment says of itself in its `EnvSpec`; the harness has no line of its own about any of them."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import EntryPoint, PackageNotFoundError, version
from pathlib import Path

import pytest

from evalharness import envs
from evalharness.base.errors import UserError
from evalharness.config import RunConfig
from evalharness.envs import specs
from evalharness.envs.base import OwnBenchmark, TaskSuites
from evalharness.records.make_manifest import make_manifest
from evalharness.suites.selection import family_tasks

ROOT = Path(__file__).parents[2]
HERE = tomllib.loads((ROOT / "pyproject.toml").read_text())
FAMILIES = sorted(HERE["project"]["entry-points"]["evalharness.environments"])


def strings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def imported(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.lineno, f"{node.module}.{name.name}") for name in node.names)
        elif isinstance(node, ast.Import):
            yield from ((node.lineno, name.name) for name in node.names)


@pytest.mark.slow
def test_no_module_of_the_harness_names_an_environment() -> None:
    """Not as a value, and not as an import. Examples in help texts and docstrings are sentences, not names.

    HotpotQA, its table and the folders of teachers are of one family each."""
    names = {
        name
        for spec in map(specs().__getitem__, FAMILIES)
        for name in (spec.family, spec.title, spec.short_title, spec.gym_id, *spec.packages)
    }
    modules = tuple(f"evalharness.envs.{family}" for family in FAMILIES)
    of_one_family = ("paper/hotpotqa", "paper/hotpotqa_table.py", "training/teachers")
    found = []
    for path in sorted((ROOT / "evalharness").rglob("*.py")):
        if any(path.is_relative_to(ROOT / "evalharness" / room) for room in ("envs", *of_one_family)):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found += [(path.name, line, text) for line, text in strings(tree) if text in names]
        found += [(path.name, line, name) for line, name in imported(tree) if name.startswith(modules)]
    assert found == []


def test_a_manifest_records_the_packages_that_the_environments_name() -> None:
    spec = replace(specs()["alfworld"], packages=("pytest", "of-no-such-name"))
    config = RunConfig.of(model="oracle", suite="open", output=Path("run"))
    recorded = make_manifest(config, {}, {"alfworld": spec}, {}, {}).sessions[0].packages
    assert recorded["pytest"] == version("pytest")
    assert recorded["of-no-such-name"] is None
    assert {"aiohttp", "gymnasium", "numpy"} < set(recorded)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_packages_of_an_environment_are_installed(family: str) -> None:
    for name in specs()[family].packages:
        try:
            version(name)
        except PackageNotFoundError:
            pytest.fail(f"{family} names {name}, which is no installed distribution")


def test_titles_fit_the_columns_of_80_characters() -> None:
    short = [specs()[family].short_title for family in FAMILIES]
    assert max(map(len, short)) <= 4
    assert len(set(short)) == len(short)


def test_a_help_action_has_to_be_an_action() -> None:
    spec = specs()["alfworld"]
    with pytest.raises(ValueError, match="help_action 'help'"):
        replace(spec, actions=replace(spec.actions, help_action="help"))


@pytest.mark.parametrize("value", ["no_such_package:SPEC", "evalharness.envs:NO_SPEC"])
def test_an_environment_that_cannot_be_imported_is_named(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    broken = EntryPoint("sokoban", value, "evalharness.environments")
    monkeypatch.setattr(envs, "entry_points", lambda group: [broken])
    with pytest.raises(UserError, match=rf"sokoban .*{value}"):
        envs.specs.__wrapped__()


def test_a_task_id_must_name_its_family_and_suite() -> None:
    spec = specs()["babyai"]
    (task,) = spec.suites.load_tasks("open", None, 0)[:1]
    wrong = replace(spec, suites=TaskSuites({"agentboard": 1}, lambda *which: [replace(task, id="baby-0")]))
    with pytest.raises(UserError, match="'baby-0' must be babyai/agentboard/INDEX"):
        family_tasks(wrong, "agentboard", None, 0)


def test_another_package_cannot_change_the_held_out_score() -> None:
    with pytest.raises(ValueError, match="held_out"):
        replace(specs()["babyai"], family="sokoban", own=OwnBenchmark())
