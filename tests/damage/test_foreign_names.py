"""No name that stands in a folder of somebody else leads a command to that folder's code or to another file of it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from made_runs import make_run
from refine_conversations import erring_conversation

from evalharness.cli import main, make_parser
from evalharness.cli.parser import CommandParser, children
from evalharness.config import OPTIONS
from evalharness.judge import judging
from evalharness.judge.draw import load_turns
from evalharness.records.answers import make_manifest
from evalharness.records.manifest import Manifest
from evalharness.training.datasets.conversation import write_data

_AGENT = """\
from pathlib import Path
from evalharness.agents.react import ReactAgent
Path(__file__).with_name("ran").touch()
class X(ReactAgent):
    name = "x"
"""
_SLOW = (
    "run",
    "sweep",
    "bon",
    "checkpoints",
    "verify",
    "plot",
    "report",
    "leaderboard --no-published --",
)
"""About a second for each; they are tried with one name."""
_CODE = ("{evil}/agent.py:X", "evil/agent.py:X", "evil.agent:X")
_NAMES = (*_CODE, "@evil/tasks.txt", "evil", "../../../evil", "{evil}")
_NOBODY = "--model http://127.0.0.1:9/v1 --model-name x"
_ONE = "--suite open --tasks babyai:0"
_NEW = f"{_NOBODY} {_ONE} --dry-run"

COMMANDS: Mapping[str, tuple[str, ...]] = {
    "run": (
        "--config run/config.yaml -o out --dry-run",
        f"--protocol protocol.yaml {_NEW}",
        f"--model replay:run {_ONE} --dry-run",
        f"--model random {_ONE} -o run",
        f"{_NOBODY} {_ONE} -o run",
    ),
    "sweep": (
        "--config run/config.yaml --tasks babyai -o study --dry-run",
        f"--over protocol=protocol.yaml,agentrefine {_NEW} -o study",
    ),
    "bon": ("--config run/config.yaml -o study --dry-run",),
    "checkpoints": (f"checkpoints --config run/config.yaml {_ONE} -o study --dry-run",),
    "show": ("run", "run babyai/open/000", "study", ".", "run other --behaviour"),
    "verify": ("run", "study"),
    "compare": ("run other",),
    "leaderboard": (
        "--no-published run",
        "--no-published run --verify",
    ),
    "paper": ("table1 run study", "."),
    "export": tuple(
        f"run --format {form} -o exported-{form}"
        for form in ("csv", "parquet", "atif", "openai-chat", "mlflow")
    ),
    "refine scripts": (),
    "refine trajectories": (f"--scripts run {_NOBODY} -o played",),
    "refine grounded": (),
    "refine correct": ("run -o corrected.jsonl",),
    "refine from-runs": ("run -o of-runs.jsonl --keep all",),
    "refine mix": ("data.jsonl data.jsonl -o mixed.jsonl",),
    "refine read": ("data.jsonl -o read.jsonl",),
    "refine export": ("data.jsonl --format sharegpt -o exported",),
    "tune": ("--model run --data data.jsonl -o run",),
    "tune install": (),
    "tune uninstall": (),
    "report": ("run other -o page.html", "study -o page.html", "run --figure plots", "study --figure plots"),
    "judge": ("run --judge random", "data.jsonl --judge random"),
    "judge label": ("run --export labels.csv", "data.jsonl --export labels.csv"),
    "judge agreement": ("run/labels/person run/judgements/toy", "simulator run/judgements/toy"),
    "judge mtbench": (),
    "data agents": (),
    "data protocols list": (),
    "data protocols show": ("protocol.yaml",),
    "data protocols import": ("verl-agent .",),
    "data prompts export": (),
    "data prompts show": (),
    "data perturbations list": (),
    "data perturbations show": (),
    "data suite build": (),
    "env serve": (),
    "server install": (),
    "server uninstall": (),
    "data import": (". --data brought",),
    "data fetch": (),
    "data verify": ("--data run",),
    "data status": ("--data run",),
    "data path": (),
    "doctor": (),
    "server status": (),
}
"""Command -> what it is given of the stranger's folder; nothing: it reads no folder."""


_opened: list[str] = []
"""Files of folders called `evil` that were opened since it was last cleared."""


def _note_opened(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and "/evil/" in f"/{arguments[0]}" and os.path.exists(arguments[0]):  # noqa: PTH110
        _opened.append(str(arguments[0]))


sys.addaudithook(_note_opened)


def _commands(parser: CommandParser, name: str = "") -> Iterator[str]:
    for word, child in children(parser).items():
        yield f"{name} {word}".strip()
        yield from _commands(child, f"{name} {word}".strip())


def test_no_command_is_missing() -> None:
    above = {
        "refine",
        "env",
        "server",
        "data",
        "data protocols",
        "data prompts",
        "data perturbations",
        "data suite",
    }
    assert set(_commands(make_parser())) <= COMMANDS.keys() | above


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each text in a JSON value, and each null: (what holds it, its key)."""
    for key, each in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(each, dict | list):
            yield from _places(each)
        elif each is None or isinstance(each, str):
            yield value, key


def _accepts(manifest: Any) -> bool:
    try:
        Manifest.model_validate(manifest)
    except ValueError:
        return False
    return True


@pytest.fixture(scope="module")
def strangers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a stranger hands over, with nothing bad in it."""
    folder = tmp_path_factory.mktemp("strangers")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name in ("run", "other", "study/one"):
            make_run(folder / name, {"babyai": [(True, 1.0)]}, suite="open")
        (folder / "study" / "study.json").write_text('{"schema": 1, "kind": "sweep", "runs": {"one": "one"}}')
        shutil.copytree(folder / "study" / "one", folder / "study" / "unperturbed")
        run = load_turns(folder / "run")
        task, sample, turn = next(iter(run.turns))
        (folder / "labels.csv").write_text(
            f"task_id,sample,turn,label,kind,note\n{task},{sample},{turn},right,,n\n"
        )
        assert main(["judge", "label", "run", "--rater", "person", "--import", "labels.csv"]) == 0
        identity = {"kind": judging.KIND, "run_digest": run.digest, "model": {"name": "toy"}}
        judged = folder / "run" / "judgements" / "toy"
        judged.mkdir(parents=True)
        manifest = make_manifest(identity, "toy", drawn={"turns": 1, "seed": 0}, plain=False)
        (judged / "manifest.json").write_text(json.dumps(manifest))
        (judged / judging.JUDGEMENTS).write_text("")
    write_data(folder / "data.jsonl", [erring_conversation()], {"by": "hand", "prompts": {"babyai": "x"}})
    (folder / "checkpoints" / "step-1").mkdir(parents=True)
    (folder / "protocol.yaml").write_text(
        "name: mine\ntitle: x\ntexts: x\nagent: window\nturns: 7\ntasks: babyai:0\nsuite: open\n"
    )
    (folder / "run" / "config.yaml").write_text(
        yaml.safe_dump(
            {"suite": "open", "tasks": "babyai:0", "model": "http://127.0.0.1:9/v1", "model_name": "x"}
        )
    )
    evil = folder / "evil"
    evil.mkdir()
    (evil / "agent.py").write_text(_AGENT)
    for name in ("tasks.txt", "texts.json", "babyai.yaml", "template.jinja"):
        (evil / name).write_text("babyai:0\n")
    return folder


def _edit(path: Path, change: Callable[[Any], None]) -> None:
    """Change a file of JSON, JSON lines or YAML."""
    text = path.read_text()
    if path.suffix == ".yaml":
        value = yaml.safe_load(text)
        change(value)
        path.write_text(yaml.safe_dump(value))
    elif path.suffix == ".jsonl":
        lines = [json.loads(line) for line in text.splitlines()]
        change(lines)
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    else:
        value = json.loads(text)
        change(value)
        path.write_text(json.dumps(value))


def _filled(names: Sequence[str]) -> Callable[[Any], None]:
    """Every text of a value becomes a name of evil, each another one."""

    def change(value: Any) -> None:
        for number, (holder, key) in enumerate(_places(value)):
            holder[key] = names[number % len(names)]

    return change


def _as_its_agent(names: Sequence[str]) -> Callable[[Any], None]:
    return lambda options: options.update(agent=names[0])


def _as_interface(names: Sequence[str]) -> Callable[[Any], None]:
    return lambda manifest: manifest["identity"]["config"].update(action_interface=names[0])


def _as_agent(names: Sequence[str]) -> Callable[[Any], None]:
    code = hashlib.sha256(_AGENT.encode()).hexdigest()

    def change(manifest: Any) -> None:
        agent = {"name": names[0], "version": 1, "options": {}, "code_sha256": code}
        manifest["identity"]["config"].pop("action_interface", None)
        manifest["identity"]["config"]["agent"] = agent

    return change


def _as_whatever_it_takes(names: Sequence[str]) -> Callable[[Any], None]:
    """Every option of a run that a manifest may hold, and every other text of it."""

    def change(manifest: Any) -> None:
        config = manifest["identity"]["config"]
        for option in OPTIONS:
            config.setdefault(option, None)
        config["protocol"] = {"name": "x", "sha256": "x", "texts": "x", "score": "success"}
        for number, (holder, key) in enumerate([*_places(manifest)]):
            before, holder[key] = holder[key], names[number % len(names)]
            # A suite that is none would end every reading before it gets far.
            if key in ("suite", "tasks") or not _accepts(manifest):
                holder[key] = before

    return change


_PLACES: Mapping[str, tuple[str, str, Callable[[Sequence[str]], Callable[[Any], None]]]] = {
    "interface": ("run/manifest.json", "run", _as_interface),
    "agent": ("run/manifest.json", "run", _as_agent),
    "manifest": ("run/manifest.json", "run", _as_whatever_it_takes),
    "study": ("study/study.json", "study", _filled),
    "episodes": ("run/episodes.jsonl", "run", _filled),
    "labels and judgements": ("run/*/*/*.json*", "run", _filled),
    "data": ("data.*", "data.jsonl", _filled),
    "protocol": ("protocol.yaml", "protocol.yaml", _filled),
    "protocol's agent": ("protocol.yaml", "protocol.yaml", _as_its_agent),
    "configuration's agent": ("run/config.yaml", "run/config.yaml", _as_its_agent),
    "configuration": ("run/config.yaml", "run/config.yaml", _filled),
}
"""What is changed -> (its files, what a command that reads it is given, how)."""


@pytest.mark.smoke
@pytest.mark.slow(60)
@pytest.mark.parametrize("place", _PLACES)
def test_no_command_opens_what_a_strangers_file_names(
    place: str, strangers: Path, clean_home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    files, given, change = _PLACES[place]
    monkeypatch.syspath_prepend(tmp_path / "0")
    code = (change is not _filled and change is not _as_whatever_it_takes) or place == "configuration"
    for number in range(len(_CODE)) if code else range(0, len(_NAMES), 2):
        folder = tmp_path / str(number)
        shutil.copytree(strangers, folder)
        monkeypatch.chdir(folder)
        tried = _CODE if code else _NAMES
        names = [name.format(evil=folder / "evil") for name in (*tried[number:], *tried[:number])]
        for path in folder.glob(files):
            _edit(path, change(names))
        _opened.clear()
        for command, lines in COMMANDS.items():
            for line in lines:
                if given not in line or (number and f"{command} {line}".startswith(_SLOW)):
                    continue
                with contextlib.suppress(SystemExit):
                    main([*command.split(), *shlex.split(line)])
                assert not _opened, f"evalharness {command} {line}"
    assert not [*tmp_path.glob("*/evil/ran")]
