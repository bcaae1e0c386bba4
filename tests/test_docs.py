"""The documentation: it builds without a broken link, its commands run, its worked example works."""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import yaml
from command_line import evalharness
from made_runs import make_run

from evalharness.cli import main, make_parser
from evalharness.cli.parser import subcommands, walk_commands
from evalharness.cli.run import read_seeds

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
_PLACEHOLDERS = {
    "short.py:ShortMemory": "act",
    "FILE.jsonl": "out.jsonl", "FILE": "out.csv", "TASK_ID": "babyai/agentboard/000", "NAME": "name", "DIR": "folder",
    "BASELINE": "RUN", "RUN_A": "RUN", "RUN_B": "RUN2", "LIST": "babyai", "MODEL": "random", "PATH": "folder",
}  # fmt: skip


def blocks(path: Path) -> Iterator[str]:
    """Indented and fenced blocks without a language, `sh` or `bash`."""
    text = path.read_text(encoding="utf-8")
    fenced = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
    for language, body in fenced.findall(text):
        if language in ("", "sh", "bash", "console"):
            yield body
    text = fenced.sub("", text)
    yield from re.findall(r"(?:^    .*\n)+", text, re.MULTILINE)


def commands(path: Path) -> Iterator[list[str]]:
    """Every `evalharness ...` of a page's blocks as arguments, in order; explanations after two spaces are cut off."""
    for block in blocks(path):
        for line in block.replace("\\\n", " ").splitlines():
            for part in line.strip().split(" && "):
                found = re.match(r"(?:\.venv/bin/)?evalharness (.*)", part)
                if found:
                    yield arguments(re.split(r"\s{2,}", found[1])[0])


def arguments(text: str) -> list[str]:
    """A command as written for people as one that can be given: what is optional is given, the first of a choice."""
    text = re.sub(r"\.\.\.|[\[\]]", "", text)
    text = re.sub(r"(\S+)( \| \S+)+", r"\1", text)
    words = shlex.split(text, comments=True)
    return [_PLACEHOLDERS.get(word, word) for word in words]


ALL = [(path.relative_to(ROOT).as_posix(), words) for path in PAGES for words in commands(path)]


def test_the_pages_have_commands_to_check() -> None:
    assert len(ALL) > 40
    assert {page for page, _ in ALL} >= {
        "README.md",
        "docs/quick-start.md",
        "docs/data.md",
        "docs/behaviour.md",
    }


@pytest.fixture
def elsewhere(tmp_path: Path, clean_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with what the commands of the pages name: two runs, a checkpoint's folder."""
    monkeypatch.chdir(tmp_path)
    for name, outcome in (("RUN", (True, 1.0)), ("RUN2", (False, 0.5)), ("RUN3", (False, 0.0))):
        run = make_run(tmp_path / name, {"babyai": [outcome, (False, 0.25)]}, name=name)
        episodes = [json.loads(line) for line in (run / "episodes.jsonl").read_text().splitlines()]
        for i, turn in enumerate(turn for episode in episodes for turn in episode["turns"]):
            turn["thought"] = f"{name} thinks of door {i}"
        (run / "episodes.jsonl").write_text("".join(json.dumps(episode) + "\n" for episode in episodes))
    chat = [
        {"role": "user", "content": "Open it."},
        {"role": "assistant", "content": "Thought: I do.\nAction: open"},
    ]
    (tmp_path / "train.jsonl").write_text(json.dumps({"messages": chat}) + "\n")
    return tmp_path


whole_parser = cache(make_parser)
READING = {
    "show",
    "compare",
    "export",
    "leaderboard",
    "paper",
}
"""Commands that are carried out as they stand; they need neither model nor data."""
NOT_OF_MADE_RUNS = {"wandb", "mlflow", "trackio", "--verify"}
"""These send to a tracker, or replay what is given: made runs are refused. They have tests of their own."""
NO_FAMILY = {"lamps"}
"""What the worked example adds; its own test runs its commands."""


@pytest.mark.parametrize(("where", "words"), ALL, ids=[f"{where}: {' '.join(words)}" for where, words in ALL])
def test_every_command_of_the_docs_runs_or_parses(where: str, words: list[str], elsewhere: Path) -> None:
    """Those that read run folders are carried out on made ones. Those that install, download, serve or play are checked
    against the parser and, of `run`, against the configuration; quick start's and the example's are played below."""
    from evalharness.config import make_config

    if "--help" in words:
        return
    args = whole_parser().parse_args(words)
    carried_out = words[0] in READING and NOT_OF_MADE_RUNS.isdisjoint(words)
    if carried_out and not any(family in word for word in words for family in NO_FAMILY):
        known = [word for word in words if word.startswith("results/")]
        for number, word in enumerate(known, start=1):  # repeats are joined with commas
            for name in word.split(","):
                outcomes = {"babyai": [(True, 1.0), (False, 0.25)]}
                label = {"data_size": str(4000 * number)}
                make_run(elsewhere / name, outcomes, suite="open", name=word, label=label)
        sizes = (f"{Path(word).name},{4000 * number}\n" for number, word in enumerate(known, start=1))
        (elsewhere / "sizes.csv").write_text("".join(sizes))
        assert main(words) == 0, words
    elif words[0] == "run":
        given = {key: value for key, value in vars(args).items() if value is not None}
        fields = {
            key: value
            for key, value in given.items()
            if key not in ("run", "debug", "data", "json", "config", "dry_run")
        }
        if isinstance(args.seed, str):
            fields["seed"] = read_seeds(args.seed)[0]
        fields.setdefault("suite", "open")
        model = make_config(fields).policy.model
        assert args.model is None or model == args.model[0]


@pytest.mark.parametrize("script", sorted(DOCS.glob("*.sh")), ids=lambda path: path.name)
def test_every_command_of_the_scripts_parses(script: Path, tmp_path: Path) -> None:
    """They run with a program of this name that writes down its words and does nothing."""
    program = tmp_path / "evalharness"
    program.write_text(
        f'#!/bin/sh\nprintf "%s\\0" "$@" >> {tmp_path}/words\nprintf "\\n" >> {tmp_path}/words\n'
    )
    program.chmod(0o755)
    path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    folder = tmp_path / "out"
    (folder / "runs").mkdir(parents=True)
    (folder / "runs" / "round-0").mkdir()
    subprocess.run(["bash", str(script), str(folder)], env={**os.environ, "PATH": path}, check=True)
    given = [line.split("\0")[:-1] for line in (tmp_path / "words").read_text().splitlines()]
    assert len(given) > 10
    for words in given:
        whole_parser().parse_args(words)


def inline() -> Iterator[tuple[str, str]]:
    for path in PAGES:
        text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        for found in re.findall(r"`evalharness ([^`]+)`", text):
            yield path.relative_to(ROOT).as_posix(), found


@pytest.mark.parametrize(("where", "text"), sorted(set(inline())))
def test_commands_and_options_named_in_passing_exist(where: str, text: str) -> None:
    parser = whole_parser()
    words = re.sub(r"[\[\]|]", " ", text).split()
    named = [word for word in words if not word.startswith("-")]
    known = [parser]
    if named and not named[0].isupper():
        assert named[0] in subcommands(parser), text
        known.append(subcommands(parser)[named[0]])
        known += walk_commands(known[-1])
        if subcommands(known[1]) and len(named) > 1 and named[1].islower():
            assert named[1] in subcommands(known[1]), text
    options = {option for each in known for action in each._actions for option in action.option_strings}
    for word in words:
        if word.startswith("-"):
            assert word.split("=")[0] in options, text


@pytest.mark.parametrize(("candidate", "status"), [("oracle", 0), ("random", 1)])
def test_the_workflow_of_the_ci_page_passes_a_good_model_and_fails_a_bad_one(
    candidate: str, status: int, tmp_path: Path, clean_home: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Its evalharness commands, with scripts for models, fewer tasks, and a file for the job's summary."""
    [text] = re.findall(
        r"^```yaml[^\n]*\n(.*?)^```", (DOCS / "ci.md").read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    [job] = yaml.safe_load(text)["jobs"].values()
    steps = [step["run"] for step in job["steps"] if step.get("run", "").startswith("evalharness ")]
    monkeypatch.chdir(tmp_path)
    values = {"$MODEL": candidate, "$GITHUB_SHA": "0123abc"}
    quick = ["--tasks", "babyai:0-7,pddl:0-3"]
    assert main(["run", "--model", "oracle", "--suite", "open", *quick, "-o", "baseline"]) == 0
    statuses, summary = [], ""
    for step in steps:
        words, _, target = step.partition(" >> ")
        given = [values.get(word, word) for word in shlex.split(words)][1:]
        if given[0] == "run":
            at = given.index("--draw")
            given[at : at + 2] = quick
        capsys.readouterr()
        statuses.append(main(given))
        summary += capsys.readouterr().out if target else ""
    assert statuses == [0, 0, status, 0]
    verdict = "fails" if status else "passes"
    assert f"B {verdict} --fail-if pooled" in summary
    assert "0123abc" in summary.splitlines()[0]
    assert (tmp_path / "report.html").stat().st_size > 1000


def test_every_option_has_a_help_text() -> None:
    for parser in walk_commands(whole_parser()):
        for action in parser._actions:
            if not isinstance(action, argparse._SubParsersAction):
                assert action.help, f"{parser.prog}: {action.option_strings or action.dest}"


@pytest.mark.slow
def test_the_site_builds_and_no_link_leads_nowhere(tmp_path: Path) -> None:
    pytest.importorskip("material", reason="the extra `docs` is not installed")
    # Not --quiet: mkdocs counts only the warnings that it prints.
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "--max-turns N" in (tmp_path / "site" / "cli" / "run.html").read_text(encoding="utf-8")
    home = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    loaded = re.findall(r'(?:src|href)="(https?://[^"]+)"[^>]*(?:rel="stylesheet"|></script>)', home)
    assert loaded == []  # no request to another host


def files_of_the_example(folder: Path) -> dict[str, str]:
    """The worked example as its page has it, written out; installed as pip would name it."""
    text = (DOCS / "adding-an-environment.md").read_text(encoding="utf-8")
    found = dict(re.findall(r'^```\w+ title="([^"]+)"\n(.*?)^```', text, re.DOTALL | re.MULTILINE))
    for name, content in found.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    project = tomllib.loads(found["pyproject.toml"])["project"]
    info = folder / f"{project['name']}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    lines = [f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in points.items())
             for group, points in project["entry-points"].items()]  # fmt: skip
    (info / "entry_points.txt").write_text("".join(lines))
    return found


def test_the_worked_example_of_adding_an_environment(tmp_path: Path, environment: dict[str, str]) -> None:
    """Its files are written as the page has them, and its commands given; the oracle solves every task."""
    package, work = tmp_path / "package", tmp_path / "work"
    work.mkdir()
    files = files_of_the_example(package)
    assert set(files) == {"lamps/__init__.py", "lamps/adapter.py", "lamps/lamps.yaml", "pyproject.toml"}
    surroundings = {**environment, "PYTHONPATH": str(package)}
    given = [words for where, words in ALL if where.endswith("adding-an-environment.md")]
    assert len(given) == 4
    code = (
        "import sys, shlex; from evalharness.cli import main\n"
        "for line in sys.argv[1:]:\n"
        "    assert main(shlex.split(line)) == 0, line\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *map(shlex.join, given)],
        cwd=work, env=surroundings, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    summary = evalharness(surroundings, "show", work / "results" / "lamps-oracle", "--json", "-")
    assert '"success_rate": 1.0' in summary.stdout
    # Beside the installed example, every command that reads runs works on a run that never played it.
    run = make_run(work / "main", {"babyai": [(True, 1.0)], "pddl": [(False, 0.5)]})
    reading = [
        ["show"], ["show", run], ["compare", run, run], ["leaderboard", run], ["paper", "table1", run],
        ["verify", "results/lamps-oracle"], ["report", run, "-o", work / "page.html"],
        ["export", run, "--format", "atif", "-o", work / "atif"],
        ["run", "--model", "oracle", "--suite", "open", "--tasks", "all", "--dry-run"],
    ]  # fmt: skip
    code = code.replace("== 0", "in (0, 1)")
    done = subprocess.run(
        [sys.executable, "-c", code, *(shlex.join(map(str, words)) for words in reading)],
        cwd=work, env=surroundings, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Lamps" not in done.stdout.rpartition("ALFWorld")[2]


@pytest.mark.slow
def test_the_quick_start(tmp_path: Path, clean_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its commands in their order, but those that install, download or need a checkpoint; then its Python."""
    monkeypatch.chdir(tmp_path)
    played = set()
    for where, words in ALL:
        if where != "docs/quick-start.md":
            continue
        scripted = words[0] == "run" and words[words.index("--model") + 1] in ("random", "oracle")
        if scripted or (words[0] in READING and not any(word.startswith("RUN") for word in words)):
            assert main(words) == 0, words
            played.add(words[0])
    assert played >= {"run", "show", "compare"}, "the first steps need no model of one's own"
    text = (DOCS / "quick-start.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    exec(compile(code, "quick-start.md", "exec"), {})
