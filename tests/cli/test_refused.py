"""What a command cannot do is refused before anything is written: status 2, and one line with the fix."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from made_runs import make_run

from evalharness.cli import find_commands, main

NO_RUN = "nowhere does not exist"
NO_FAMILY = "unknown family 'babyia'; did you mean 'babyai'?"
REFUSED = [
    (
        "data agents windw",
        "--agent windw: no such agent; did you mean 'window'? (see: evalharness data agents)",
    ),
    ("judge agreement RUN", "agreement needs two raters; see: evalharness judge agreement --help"),
    ("show --behaviour RUN --family babyia", "did you mean 'babyai'?"),
    ("show --behaviour nowhere", NO_RUN),
    ("bon --model oracle -n 0 --suite open", "--samples 0"),
    ("bon --model oracle -n 1 --suite open", "Best-of-N needs at least two samples"),
    ("checkpoints nowhere --suite open", "give the folder that holds the checkpoints"),
    ("compare RUN OTHER", "RUN and OTHER have no task in common"),
    ("compare RUN nowhere", NO_RUN),
    ("data fetch atari", "unknown family atari; known: alfworld"),
    ("data verify atari", "unknown family atari; known: alfworld"),
    ("paper figure6 nowhere", "nowhere"),
    ("env serve babyia --suite open", "babyia"),
    ("export RUN --format csv --successful", "use its column `success`"),
    ("export RUN --format openai-chat -o /dev/null/x", "choose another with -o PATH"),
    ("export nowhere --format csv", NO_RUN),
    ("judge RUN --judge http://127.0.0.1:1 --turns 0", "--turns is at least 1"),
    ("judge nowhere --judge demo", NO_RUN),
    ("judge label nowhere", NO_RUN),
    ("leaderboard nowhere", NO_RUN),
    ("paper table2 nowhere", r"nowhere does not exist; name run folders, studies, or a data set's file"),
    (
        "judge mtbench --model http://127.0.0.1:1/v1 --judge http://127.0.0.1:1/v1 --questions nowhere.jsonl",
        "cannot read --questions nowhere.jsonl",
    ),
    ("data perturbations list babyia", NO_FAMILY),
    ("data perturbations show babyai P99", "there are: verbs, order,"),
    ("data perturbations show pddl verbs --kind griper", "griper"),
    ("run --model random --suite open --tasks babyai/open/999", "did you mean 'babyai/open/099'?"),
    ("report nowhere", NO_RUN),
    ("data protocols show verlagent", "--protocol verlagent: no such protocol; did you mean 'verl-agent'?"),
    ("data prompts show babyai --kind gripper", "leave --kind out"),
    ("data prompts show babyia", NO_FAMILY),
    ("data prompts export own --tasks babyia", NO_FAMILY),
    ("refine grounded --tasks babyia -n 1 -o x.jsonl --suite-seed 4", "babyia"),
    ("refine mix nowhere.jsonl -o x.jsonl", "cannot read nowhere.jsonl"),
    ("refine scripts -n 0 --model demo -o scripts", "-n is at least 1"),
    ("refine trajectories --scripts nowhere --model demo -o t", "make some with: evalharness refine scripts"),
    ("report RUN -o /dev/null/x", "choose another with -o FILE"),
    ("report nowhere", NO_RUN),
    ("run --model oracle --config nowhere.yaml", "no configuration file nowhere.yaml"),
    ("refine correct nowhere -o c.jsonl", NO_RUN),
    ("show RUN babyai/agentboard/999", "did you mean 'babyai/agentboard/001'?"),
    ("show nowhere", NO_RUN),
    ("data protocols show nowhere", "--protocol nowhere: no such protocol; there are: agentrefine"),
    ("data protocols import nowhere x", "evalharness data protocols list"),
    ("data suite build --suite-seed -1", "--suite-seed is at least 0"),
    ("data suite build --suite-seed 1 --tasks babyia", NO_FAMILY),
    ("sweep --model oracle --tasks babyai --perturb P99 --suite open", "P99"),
    ("show --tasks --suite opne", "did you mean 'open'?"),
    ("show --tasks babyai:500 --suite open", "babyai:500: the tasks of babyai are 0-111"),
    ("export nowhere --format wandb", "nowhere"),
    ("tune --model nowhere --data nowhere.jsonl -o t", "--model nowhere"),
    ("verify nowhere", "nowhere does not exist; name a run folder"),
]
NEVER_REFUSED = {"server", "doctor"}
"""All that can be wrong with these is their words, which the parser refuses."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    make_run(folder / "RUN", {"babyai": [(True, 1.0), (False, 0.25)]})
    make_run(folder / "OTHER", {"pddl": [(True, 1.0)]})
    return folder


def contents(folder: Path) -> dict[str, int]:
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in folder.rglob("*")}


@pytest.mark.parametrize(("line", "said"), REFUSED, ids=[line for line, _ in REFUSED])
def test_a_bad_request_is_one_line_and_writes_nothing(
    line: str,
    said: str,
    made: Path,
    clean_home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(made)
    before = contents(made)
    assert main(shlex.split(line)) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    (reason,) = (found for found in shown.err.splitlines() if "this is the open suite" not in found)
    assert reason.startswith("evalharness: ")
    assert said in reason
    assert contents(made) == before


def test_every_command_has_something_to_refuse() -> None:
    assert {line.split()[0] for line, _ in REFUSED} | NEVER_REFUSED == set(find_commands())
