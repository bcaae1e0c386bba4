"""`evalharness bon`: the table as published, estimates without bias, quality of the samples, growing studies."""

from __future__ import annotations

import asyncio
import csv
import json
from collections import Counter
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from chat_server import ChatServer
from made_runs import Outcome, make_run
from rich.console import Console

from evalharness.base.errors import UserError
from evalharness.cli import bon, main, make_parser
from evalharness.protocol.prompt import prompts_folder
from evalharness.records.store import read_episodes, read_manifest
from evalharness.results.best_of_n import BestOfN, best_of_n
from evalharness.results.published import load_table
from evalharness.results.scored_run import load_scored_run
from evalharness.results.terminal.best_of_n import print_best_of_n, select_ks

SOLVED, HALF, NOTHING = (True, 1.0), (False, 0.5), (False, 0.0)


def study(folder: Path, greedy: list[Any], samples: list[Any], family: str = "pddl") -> BestOfN:
    n = len(samples[0])
    first = make_run(folder / "greedy", {family: greedy}, name="m")
    second = make_run(folder / "samples", {family: samples}, name="m", samples=n, temperature=1.0)
    return best_of_n(load_scored_run(first), load_scored_run(second))


def test_the_table_is_greedy_best_and_their_difference(tmp_path: Path) -> None:
    found = study(
        tmp_path, [SOLVED, HALF, NOTHING], [[NOTHING, NOTHING], [SOLVED, HALF], [NOTHING, (False, 0.25)]]
    )
    (family,) = found.families
    assert family.greedy == {"success": pytest.approx(1 / 3), "progress": pytest.approx(0.5)}
    assert family.best == {"success": pytest.approx(1 / 3), "progress": pytest.approx(1.25 / 3)}
    assert family.delta["progress"] == pytest.approx(-0.25 / 3)
    assert family.one_sample["progress"] == pytest.approx((0 + 0.75 + 0.125) / 3)
    assert [task.any_success for task in found.tasks] == [False, True, False]
    assert [task.best_progress for task in found.tasks] == [0.0, 1.0, 0.25]


def test_samples_may_be_drawn_as_the_model_recommends(tmp_path: Path) -> None:
    greedy = make_run(tmp_path / "greedy", {"pddl": [SOLVED]}, sampling="model", temperature=0.0)
    samples = make_run(tmp_path / "samples", {"pddl": [[SOLVED, HALF]]}, sampling="model", samples=2)
    console = Console(record=True, width=80)
    print_best_of_n(console, best_of_n(load_scored_run(greedy), load_scored_run(samples)))
    assert "model recommends" in " ".join(console.export_text().split())


@pytest.mark.parametrize("outcome", [SOLVED, HALF, NOTHING])
def test_a_difference_of_nothing_has_an_interval_with_a_width(tmp_path: Path, outcome: Outcome) -> None:
    (family,) = study(tmp_path, [outcome] * 12, [[outcome, outcome]] * 12).families
    for measure in ("success", "progress"):
        low, high = family.delta_ci95[measure]
        assert low < family.delta[measure] == 0.0 < high


def test_the_csv_has_the_columns_of_the_published_table(tmp_path: Path) -> None:
    rows = study(tmp_path, [HALF], [[SOLVED, HALF]]).rows()
    published = load_table("best_of_n")[0]
    assert [row["decoding"] for row in rows] == ["greedy", "BoN", "delta"]
    assert rows[1]["pddl_success"] == 100.0
    assert rows[2]["pddl_progress"] == 50.0
    assert set(rows[0]) <= {*published.names, *published.numbers}


def test_curves_end_at_the_best_of_all_samples(tmp_path: Path) -> None:
    found = study(tmp_path, [HALF, HALF], [[SOLVED, NOTHING, HALF], [NOTHING, NOTHING, HALF]])
    ends = {row["curve"]: row["rate"] for row in found.curves if row["k"] == 3}
    assert ends == {"best_success": 0.5, "best_progress": 0.75, "every_success": 0.0}
    starts = {row["curve"]: row["rate"] for row in found.curves if row["k"] == 1}
    assert starts["best_success"] == pytest.approx(1 / 6)
    assert starts["every_success"] == pytest.approx(1 / 6)
    assert found.families[0].best == {"success": 0.5, "progress": 0.75}


def test_the_held_out_score_needs_every_task_of_its_families(tmp_path: Path) -> None:
    samples = {"babyai": [[SOLVED, HALF]] * 2, "pddl": [[NOTHING, HALF]] * 1}
    greedy = {family: [HALF] * len(listed) for family, listed in samples.items()}
    runs = [
        make_run(tmp_path / "greedy", greedy, name="m"),
        make_run(tmp_path / "samples", samples, name="m", samples=2, temperature=1.0),
    ]
    for sizes, expected in (({"babyai": 2, "pddl": 1}, 2 / 3), ({"babyai": 2, "pddl": 2}, None)):
        loaded = [load_scored_run(run) for run in runs]
        for run in loaded:
            run.manifest.held_out.clear()
            run.manifest.held_out.update(sizes)
        last = best_of_n(*loaded).families[-1]
        assert (last.family == "held_out") == (expected is not None)
        if expected is not None:
            assert last.best["success"] == pytest.approx(expected)


def test_tasks_with_missing_samples_are_left_out_and_told(tmp_path: Path) -> None:
    study(tmp_path, [HALF, SOLVED], [[HALF, HALF], [SOLVED, SOLVED]])
    path = tmp_path / "samples" / "episodes.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    found = best_of_n(load_scored_run(tmp_path / "greedy"), load_scored_run(tmp_path / "samples"))
    assert [task.task_id for task in found.tasks] == ["pddl/agentboard/000"]
    assert [note[:12] for note in found.notes] == ["1 of 2 tasks"]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"name": "other"}, "another model"),
        ({"temperature": 0.5}, "greedy"),
        ({"max_turns": 20}, "turn limit"),
        ({"perturb": "verbs"}, "perturbation verbs there, none here"),
        ({"max_tokens": 64}, "64 there, 256 here"),
        ({"vllm_args": "--max-model-len 2048"}, "vllm_args --max-model-len 2048 there, none here"),
        ({"prompts": {"pddl": "of their own"}}, "prompts for PDDL"),
        (
            {"prompts": {"pddl": "of their own"}, "max_turns": 9},
            "9 there, 30 here; .*PDDL",
        ),
    ],
)
def test_a_greedy_run_of_something_else_is_refused(tmp_path: Path, options: dict[str, Any], why: str) -> None:
    greedy = make_run(tmp_path / "greedy", {"pddl": [HALF]}, **{"name": "m", **options})
    samples = make_run(tmp_path / "samples", {"pddl": [[HALF, HALF]]}, name="m", samples=2, temperature=1.0)
    with pytest.raises(UserError, match=why):
        best_of_n(load_scored_run(greedy), load_scored_run(samples))


def test_the_tables_fit_80_columns(tmp_path: Path) -> None:
    sizes = dict.fromkeys(("alfworld", "babyai", "jericho", "pddl", "sciworld"), 2)
    greedy = make_run(tmp_path / "greedy", {f: [SOLVED] * n for f, n in sizes.items()}, name="m")
    samples = make_run(
        tmp_path / "samples", {f: [[SOLVED] * 10] * n for f, n in sizes.items()}, name="m", samples=10, temperature=1.0
    )  # fmt: skip
    console = Console(width=80, record=True, file=StringIO())
    print_best_of_n(console, best_of_n(load_scored_run(greedy), load_scored_run(samples)))
    text = console.export_text()
    assert all(len(line.rstrip()) <= 80 for line in text.splitlines())
    assert "…" not in text
    assert select_ks(10) == list(range(1, 11))
    assert select_ks(100) == [1, 2, 3, 4, 6, 8, 16, 32, 64, 100]


def prompts(requests: list[dict[str, Any]]) -> list[str]:
    """Which task each episode's first request is about."""
    return [r["messages"][-1]["content"] for r in requests if len(r["messages"]) == 2 and r["max_tokens"] > 4]


@pytest.mark.slow
async def test_a_study_of_two_samples_grows_to_four_and_plays_nothing_again(tmp_path: Path) -> None:
    folder, tasks, table = tmp_path / "study", tmp_path / "tasks.csv", tmp_path / "bon.json"

    def answer(request: dict[str, Any]) -> str:
        return f"Action: {('turn left', 'move forward', 'check available actions')[request['seed'] % 3]}"

    async with ChatServer(answer=answer).running() as server:
        options = [
            "bon", "--model", server.url, "--model-name", "toy", "--suite", "open", "--tasks", "babyai:0-2",
            "--max-turns", "3", "--concurrency", "4", "-o", str(folder),
        ]  # fmt: skip
        assert await asyncio.to_thread(main, [*options, "-n", "2"]) == 0
        first = list(server.requests)
        kept = (folder / "samples" / "episodes.jsonl").read_bytes()
        played = (folder / "greedy" / "episodes.jsonl").read_bytes()
        server.requests.clear()
        more = [*options, "-n", "4", "--tasks-csv", str(tasks), "--json", str(table)]
        assert await asyncio.to_thread(main, more) == 0
        second = list(server.requests)
        fewer = await asyncio.to_thread(main, [*options, "-n", "2"])
    assert fewer == 2
    assert Counter(r["temperature"] for r in first if len(r["messages"]) == 2 and r["max_tokens"] > 4) == {
        0: 3,
        1: 6,
    }
    assert {r["temperature"] for r in second} == {1}
    assert len(prompts(second)) == 6  # two more of each of three tasks
    assert (folder / "greedy" / "episodes.jsonl").read_bytes() == played
    assert (folder / "samples" / "episodes.jsonl").read_bytes().startswith(kept)
    episodes = list(read_episodes(folder / "samples"))
    assert Counter(e.task_id for e in episodes) == dict.fromkeys({e.task_id for e in episodes}, 4)
    assert read_manifest(folder / "samples").config.samples == 4
    # A request's seed tells samples of one task apart, and is the same whenever the sample is asked for again.
    assert len({r["seed"] for r in first + second if r["temperature"] == 1 and r["max_tokens"] > 4}) == 36
    rows = list(csv.DictReader(tasks.read_text().splitlines()))
    assert [(row["task_id"], row["samples"]) for row in rows] == [
        (f"babyai/open/00{i}", "4") for i in range(3)
    ]
    assert json.loads(table.read_text())["samples"] == 4


async def test_samples_of_a_task_are_played_side_by_side(tmp_path: Path) -> None:
    """So that the server still holds their common prefix."""
    async with ChatServer().running() as server:
        options = [
            "run", "--model", server.url, "--model-name", "toy", "--suite", "open", "--tasks", "babyai:0-3",
            "--samples", "4", "--temperature", "1", "--max-turns", "2", "--concurrency", "4", "-o", str(tmp_path / "r"),
        ]  # fmt: skip
        assert await asyncio.to_thread(main, options) == 0
        begun = prompts(server.requests)
    assert sorted(begun.count(prompt) for prompt in set(begun)) == [4, 4, 4, 4]
    for prompt in set(begun):
        at = [index for index, other in enumerate(begun) if other == prompt]
        # Four in flight may overtake each other by a few places; task after task they would be twelve apart.
        assert at[-1] - at[0] <= 6


def test_samples_and_temperature_come_from_flag_file_variable_or_default_in_this_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def planned(*flags: str) -> tuple[int, float]:
        args = make_parser().parse_args(["bon", "--model", "random", "--suite", "open", *flags])
        config = bon._runs(args)["samples"]
        return config.selection.samples, config.policy.temperature

    file = tmp_path / "config.yaml"
    file.write_text("samples: 3\ntemperature: 0.5\n")
    assert planned() == (10, 1.0)
    assert planned("--config", str(file)) == (3, 0.5)
    assert planned("--config", str(file), "-n", "4") == (4, 0.5)


def test_a_wrong_greedy_run_is_refused_before_anything_is_played(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    greedy = make_run(tmp_path / "greedy", {"babyai": [HALF]}, name="m", suite="open")
    options = ["bon", "--suite", "open", "--model", "random", "--tasks", "babyai:0", "-n", "2"]
    assert main([*options, "--greedy", str(greedy), "-o", str(tmp_path / "study")]) == 2
    assert "another model" in capsys.readouterr().err
    assert not (tmp_path / "study").exists()


@pytest.mark.parametrize(
    ("option", "why"),
    [
        (["--max-tokens", "64"], "256 there, 64 here"),
        (["--prompts", "own"], "prompts for BabyAI"),
    ],
)
def test_a_greedy_run_of_another_protocol_is_refused_before_anything_is_played(
    option: list[str],
    why: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own").mkdir()
    text = (prompts_folder() / "babyai.yaml").read_text()
    Path("own/babyai.yaml").write_text(f"{text}# of our own\n")
    model = ["--suite", "open", "--model", "random", "--tasks", "babyai:0"]
    assert main(["run", *model, "--max-turns", "2", "-o", "greedy"]) == 0
    capsys.readouterr()
    bon = ["bon", *model, "--max-turns", "2", "-n", "2", "--greedy", "greedy", "-o", "study"]
    assert main([*bon, *option]) == 2
    assert why in capsys.readouterr().err
    assert not Path("study").exists()


@pytest.mark.parametrize(
    ("options", "expected"),
    [(["-n", "1"], "two samples"), (["-n", "3", "--temperature", "0"], "temperature 0")],
)
def test_a_best_of_n_that_means_nothing_is_refused(
    options: list[str], expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bon", "--suite", "open", "--model", "random", "-o", str(tmp_path / "s"), *options]) == 2
    assert expected in capsys.readouterr().err
    assert not (tmp_path / "s").exists()
