"""Which questions are played, and for how many turns."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from evalharness.cli import main
from evalharness.config import RunConfig
from evalharness.envs import specs
from evalharness.paper.hotpotqa.pages import PageStore
from evalharness.paper.hotpotqa.tasks import data_files
from evalharness.records.make_manifest import make_manifest
from evalharness.suites.selection import families_of_all, select

SPECS = specs()
SPEC = SPECS["hotpotqa"]


def test_a_run_draws_300_questions_and_says_with_which_seed(data: Path) -> None:
    tasks = select(SPECS, "all", "hotpotqa", data=data)["hotpotqa"]
    wanted = sorted(random.Random(233).sample(range(400), 300))
    assert [task.index for task in tasks] == wanted
    assert select(SPECS, "hotpotqa", "hotpotqa", data=data) == {"hotpotqa": tasks}
    other = select(SPECS, "all", "hotpotqa", data=data, suite_seed=5, questions="10")
    assert [task.index for task in other["hotpotqa"]] == sorted(random.Random(5).sample(range(400), 10))
    assert len(select(SPECS, "all", "hotpotqa", data=data, questions="all")["hotpotqa"]) == 400
    assert select(SPECS, "hotpotqa:0-1", "hotpotqa", data=data) == {"hotpotqa": tasks[:2]}
    left_out = next(i for i in range(400) if i not in wanted)
    [task] = select(SPECS, f"hotpotqa/hotpotqa/{left_out:04d}", "hotpotqa", data=data)["hotpotqa"]
    assert task.index == left_out
    config = RunConfig.of(model="oracle", suite="hotpotqa", suite_seed=5, questions="10")
    manifest = make_manifest(config, other, SPECS, {"hotpotqa": "p"}, {}, data)
    assert manifest.to_json()["draw"] == {"hotpotqa": {"tasks": 10, "seed": 5}}
    assert manifest.expected == {"hotpotqa": 10}
    assert manifest.held_out == {}
    assert manifest.provenance["hotpotqa"]["pages_sha256"] == PageStore(data_files(data)[1]).sha256


def test_all_means_the_416_tasks_and_the_family_is_added_by_name() -> None:
    assert families_of_all(SPECS, "open") == ["alfworld", "babyai", "jericho", "pddl", "sciworld"]
    assert families_of_all(SPECS, "hotpotqa") == ["hotpotqa"]
    added = select({f: SPECS[f] for f in ("hotpotqa", "pddl")}, "all,hotpotqa", "open", data=None, limit=2)
    assert {family: len(tasks) for family, tasks in added.items()} == {"hotpotqa": 2, "pddl": 2}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ["--suite", "agentboard", "--tasks", "hotpotqa"],
            "give --suite hotpotqa or --suite hotpotqa-live or --suite open",
        ),
        (["--suite", "hotpotqa"], "evalharness data import hotpotqa FILE"),
        (["--suite", "hotpotpa"], "'hotpotqa'"),
        (["--suite", "open", "--questions", "5"], "--questions"),
        (["--suite", "hotpotqa", "--questions", "0"], "number above 0, or all"),
        (["--suite", "hotpotqa", "--tasks", "babyai"], "'hotpotqa'"),
    ],
)
def test_what_cannot_be_played_is_said(
    arguments: list[str], told: str, tmp_path: Path, clean_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["run", "--model", "oracle", "--data", str(tmp_path / "none"), "-o", str(tmp_path / "run")]
    assert main([*command, *arguments]) == 2
    assert told in capsys.readouterr().err


def test_the_family_has_seven_turns_unless_the_user_says_otherwise() -> None:
    own, asked = (
        RunConfig.of(model="oracle", suite="open"),
        RunConfig.of(model="oracle", suite="open", max_turns=30),
    )
    assert own.agent.turn_limit(SPEC) == 7
    assert own.agent.turn_limit(SPECS["babyai"]) == 30
    assert asked.agent.turn_limit(SPEC) == 30
    tasks = {f: SPECS[f].suites.load_tasks("open", None, 0)[:1] for f in ("babyai", "hotpotqa")}
    manifests = [make_manifest(config, tasks, SPECS, {}, {}) for config in (own, asked)]
    assert manifests[0].turn_limits == {"babyai": 30, "hotpotqa": 7}
    assert manifests[1].turn_limits == {"babyai": 30, "hotpotqa": 30}
    assert manifests[0].digest != manifests[1].digest
    assert own.folder() != asked.folder()
    # a run without the family is the same run whether the limit was asked for or not
    alone = [
        make_manifest(config, {"babyai": tasks["babyai"]}, SPECS, {}, {}).digest for config in (own, asked)
    ]
    assert alone[0] == alone[1]
