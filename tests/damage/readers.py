"""Commands that read files, and small whole inputs for them."""

from __future__ import annotations

import json
import os
import re
import shutil
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
from foreign_protocols import verl_checkout
from made_runs import made_episode, made_study, make_run, make_task
from refine_conversations import clean_conversation, erring_conversation
from scripted_model import SCRIPT

from evalharness.base.paths import prompts_folder
from evalharness.cli import main, make_parser
from evalharness.cli.parser import CommandParser, children
from evalharness.config import make_config
from evalharness.envs import specs
from evalharness.judge import judging, labels
from evalharness.judge.draw import load_turns
from evalharness.protocols.importer import import_texts
from evalharness.records import answers
from evalharness.records.make_manifest import make_manifest
from evalharness.records.store import RunStore
from evalharness.records.summary import Timing
from evalharness.results.summarize import write_summary
from evalharness.results.tables import write_parquet
from evalharness.runs.evaluation import choose
from evalharness.suites.open import Proof, Proven, freeze
from evalharness.training.datasets.conversation import write_data

SOLVED, HALF = (True, 1.0), (False, 0.5)
OUTCOMES = {"babyai": [[SOLVED, HALF], [HALF, HALF]], "pddl": [[HALF, HALF]]}
NOBODY = "http://127.0.0.1:9/v1"
"""Where no server listens."""


@dataclass(frozen=True)
class Reader:
    arguments: tuple[str, ...]
    files: tuple[str, ...]
    """Those of the inputs that it reads, as patterns."""
    slow: bool = False
    """More than about half a second where the input is whole."""
    stand_in: Callable[[], int] | None = None
    """What the command reads, where it needs a server, a listener or minutes besides."""

    def run(self) -> int:
        return main(self.arguments) if self.stand_in is None else self.stand_in()


def _command(*arguments: str, files: str, slow: bool = False) -> Reader:
    return Reader(arguments, tuple(files.split()), slow)


def _stand_in(run: Callable[[], int], *arguments: str, files: str) -> Reader:
    return Reader(arguments, tuple(files.split()), stand_in=run)


_FILE = re.compile(r"DIR|FILE|FOLDER|RUN|DATA|SOURCE|PATH")
"""In the metavar of an argument that names a file or a folder."""
_NOT_READ = {
    *("--json", "--csv", "--tasks-csv", "--latex", "--proofs", "--export"),  # written
    *("--agent", "--vllm", "--held-in"),  # code, a program, a name
}
"""Options whose file is not read. `-o` is none of them: most commands continue what is there."""


def commands_that_read() -> Mapping[str, set[str]]:
    """Command -> its arguments that name a file which it may read: an option's longest name, else `RUN`."""
    return dict(_below(make_parser(), ""))


def _below(parser: CommandParser, name: str) -> Iterator[tuple[str, set[str]]]:
    names = {(*action.option_strings, str(action.metavar))[-2 if action.option_strings else 0]
             for action in parser._actions if _FILE.search(str(action.metavar))} - _NOT_READ  # fmt: skip
    if names and parser.get_default("run") is not None:
        yield name, names
    for child, below in children(parser).items():
        yield from _below(below, f"{name} {child}".strip())


def command_of(arguments: tuple[str, ...]) -> str:
    """`("refine", "mix", "a.jsonl")` -> `refine mix`."""
    parser, words = make_parser(), []
    for word in arguments:
        if word not in children(parser):
            break
        parser = children(parser)[word]
        words.append(word)
    return " ".join(words)


def _tune() -> int:
    """What `evalharness tune` reads before it starts anything."""
    from evalharness.training.tune.data import DataCounts, _read_trainable, data_sha256
    from evalharness.training.tune.plan import read_manifest

    for mode in ("full", "no_refine_data"):
        list(_read_trainable([Path("data.jsonl")], mode, DataCounts()))  # type: ignore[arg-type]
    data_sha256(Path("data.jsonl"))
    read_manifest(Path("tuned"))
    return 0


def _grounded() -> int:
    """What `refine grounded` reads of what it made before."""
    from evalharness.training.grounded.grounded import DataRequest, is_already_made

    is_already_made(DataRequest(("babyai",), 100, 2), Path("data.jsonl"))
    return 0


def _frozen() -> int:
    """What every command reads of an open suite that this machine made."""
    from evalharness.envs import specs
    from evalharness.suites.open import read_frozen

    read_frozen(specs()["babyai"], 3, Path("suite"))
    return 0


def _serve() -> int:
    """`evalharness env serve` up to the making of its tasks."""
    from evalharness.envs import specs
    from evalharness.protocol.prompt import load_prompt

    load_prompt(specs()["babyai"], Path("prompts"))
    return 0


def _continued() -> int:
    """What `judge` and `label` do with a folder that they go on with."""
    from evalharness.judge.labels import LabelFolder

    run = load_turns(Path("run"))
    with LabelFolder(run, "person") as store:
        store.open({"turns": 100, "seed": 0})
    judging.judges_of(Path("run"))
    with judging.JudgementFolder(Path("run/judgements/toy")) as judged:
        judged.load_or_refuse(json.loads(Path("judged.json").read_text()))
    return 0


_RUN = "run/manifest.json run/episodes.jsonl run/episodes.jsonl run/summary.json run/errors.jsonl"
_JUDGED = "run/judgements/toy/* run/labels/person/*"
_DATA = "data.jsonl data.manifest.json"
_PLAYED = ["--suite", "open", "--tasks", "babyai:0", "--dry-run"]

READERS: Mapping[str, Reader] = {
    "show": _command("show", "run", files=_RUN),
    "show task": _command("show", "run", "babyai/open/000", files=_RUN),
    "show seeds": _command("show", "seeds", files="seeds/study.json seeds/seed-1/manifest.json"),
    "show training": _command(
        "show", "trained", files="trained/study.json trained/step-5/*.json*"
    ),
    "plot study": _command(
        "report", "study", "--figure", "plots", files="study/study.json study/one/*.json*", slow=True
    ),
    "runs": _command("show", ".", files=f"{_RUN} study/study.json tuned/manifest.json"),
    "report": _command("report", "run", "other", "-o", "page.html", files=f"{_RUN} {_JUDGED}"),
    "report prompts": _command("report", "run", "-o", "p.html", "--prompts", "prompts", files="prompts/babyai.yaml"),
    "analyze": _command("show", "--behaviour", "run", "other", files=_RUN),
    "compare study": _command("compare", "study", files="study/study.json study/one/*.json*"),
    "export tracker": _command("export", "run", "--format", "wandb", files=_RUN),
    "compare": _command("compare", "run", "other", files=_RUN),
    "verify": _command("verify", "run", files=f"{_RUN} run/*.parquet", slow=True),
    "verify study": _command("verify", "study", files="study/study.json study/one/*.json*", slow=True),
    "verify archive": _command("verify", "run.zip", files="run.zip", slow=True),
    "leaderboard": _command("leaderboard", "--no-published", "run", files=_RUN),
    "paper": _command("paper", "table1", "run", "study", files=f"{_RUN} study/study.json study/one/*.json*"),
    "paper list": _command("paper", ".", files=f"{_RUN} {_JUDGED} study/study.json"),
    "csv": _command("export", "run", "--format", "csv", "-o", "csv", files=_RUN),
    "parquet": _command("export", "run", "--format", "parquet", "-o", "parquet", files=_RUN),
    "atif": _command("export", "run", "--format", "atif", "-o", "atif", files=_RUN),
    "openai-chat": _command("export", "run", "--format", "openai-chat", "-o", "chat-of-run.jsonl", files=_RUN),
    "plot": _command("report", "run", "other", "--figure", "plots", files=_RUN, slow=True),
    "paper x": _command("paper", "figure5", "run", "other", "--x", "size=x.json", files="x.json"),
    "paper x csv": _command("paper", "figure5", "run", "other", "--x", "size=x.csv", files="x.csv"),
    "thoughts": _command(
        "paper", "figure6", "run", "chat.jsonl", "-o", "thoughts.svg",
        files=f"{_RUN} chat.jsonl", slow=True,
    ),
    "environments": _command(
        "paper", "figure7", "chat.json", "-o", "similarity.svg", files="chat.json", slow=True
    ),
    "replay": _command("run", *_PLAYED, "--model", "replay:run", files=_RUN),
    "agreement": _command("judge", "agreement", "simulator", "run/judgements/toy", files=f"{_RUN} {_JUDGED} {_JUDGED}"),
    "agreement csv": _command("judge", "agreement", "run/labels/person", "labels.csv", files=f"{_JUDGED} labels.csv"),
    "label": _command("judge", "label", "run", "--import", "labels.csv", files=f"labels.csv {_JUDGED}"),
    "label export": _command("judge", "label", "run", "--export", "out.csv", files=f"{_RUN} {_JUDGED}"),
    "judge": _command("judge", "run", "--judge", NOBODY, "--judge-name", "x", files=_RUN),
    "judge prompts": _command(
        "judge", "run", "--judge", NOBODY, "--judge-name", "x", "--prompts", "judge-prompts",
        files="judge-prompts/turn.yaml",
    ),
    "judged": _stand_in(_continued, "judge", "run", "-o", files=f"{_RUN} {_JUDGED}"),
    "label data": _command("judge", "label", "data.jsonl", "--export", "out.csv", files=_DATA),
    "judge data": _command("judge", "data.jsonl", "--judge", NOBODY, "--judge-name", "x", files=_DATA),
    "report data": _command("report", "data.jsonl", "-o", "data.html", files=_DATA),
    "agreement data": _command(
        "judge", "agreement", "marks", "labels.csv", "--run", "data.jsonl", files=f"{_DATA} labels.csv"
    ),
    "mtbench published": _command(
        "judge", "mtbench", "--model", NOBODY, "--model-name", "x", "--judge", NOBODY, "--judge-name", "y",
        "--judge-prompts", "judge_prompts.jsonl", files="judge_prompts.jsonl",
    ),
    "mtbench prompts": _command(
        "judge", "mtbench", "--model", NOBODY, "--model-name", "x", "--judge", NOBODY, "--judge-name", "y",
        "--prompts", "judge-prompts", files="judge-prompts/*",
    ),
    "mtbench": _command(
        "judge", "mtbench", "--model", NOBODY, "--model-name", "x", "--judge", NOBODY, "--judge-name", "y",
        "--questions", "questions.jsonl", "--references", "references.jsonl", files="questions.jsonl references.jsonl",
    ),
    "refine read": _command("refine", "read", "chat.jsonl", "-o", "out.jsonl", files="chat.jsonl"),
    "refine read list": _command("refine", "read", "chat.json", "-o", "out.jsonl", files="chat.json"),
    "refine read parquet": _command("refine", "read", "chat.parquet", "-o", "out.jsonl", files="chat.parquet"),
    "refine mix": _command(
        "refine", "mix", "data.jsonl:0.5", "more.jsonl", "-o", "out.jsonl",
        files="data.jsonl data.manifest.json more.jsonl",
    ),
    "refine export": _command(
        "refine", "export", "data.jsonl", "--format", "sharegpt", "-o", "exported",
        files="data.jsonl data.manifest.json",
    ),
    "refine export llamafactory": _command(
        "refine", "export", "data.jsonl", "more.jsonl", "--format", "llamafactory", "--mode", "no_refine_data",
        "-o", "exported", files="data.jsonl data.manifest.json more.jsonl",
    ),
    "refine from-runs": _command("refine", "from-runs", "run", "-o", "out.jsonl", "--keep", "progress>=0", files=_RUN),
    "refine prompts": _command(
        "refine", "scripts", "--model", NOBODY, "--model-name", "x", "-n", "1", "-o", "new", "--prompts",
        "refine-prompts", "--personas", "personas.jsonl", files="refine-prompts/*.yaml personas.jsonl",
    ),
    "refine correct": _command("refine", "correct", "run", "-o", "out.jsonl", files=_RUN),
    "refine trajectories": _command(
        "refine", "trajectories", "--scripts", "scripts", "--model", NOBODY, "--model-name", "x", "-o", "new",
        files="scripts/*.json*",
    ),
    "refine continued": _command(
        "refine", "scripts", "--model", NOBODY, "--model-name", "x", "-n", "1", "-o", "scripts", files="scripts/*.json*"
    ),
    "refine grounded": _stand_in(_grounded, "refine", "grounded", "--output", "--data", files=_DATA),
    "tune": _stand_in(
        _tune, "tune", "--data", "--output",
        files="data.jsonl tuned/manifest.json",
    ),
    "tune dry": _command("tune", "--model", "checkpoint", "--dry-run", files="checkpoint/*"),
    "config": _command("run", *_PLAYED, "--config", "config.yaml", files="config.yaml"),
    "sweep": _command(
        "sweep", "--tasks", "babyai:0", "--suite", "open", "--dry-run", "--config", "config.yaml", "-o", "study",
        files="config.yaml study/study.json study/one/*.json*",
    ),
    "bon": _command(
        "bon", "--model", "random", "--suite", "open", "--tasks", "babyai:0", "--greedy", "resumed", "--dry-run",
        files="resumed/*",
    ),
    "checkpoints": _command(
        "checkpoints", "models", *_PLAYED, files="models/*/*"
    ),
    "adapter": _command("run", *_PLAYED, "--model", "checkpoint", "--lora", "adapter", files="adapter/*"),
    "continued": _command(
        "run", "--suite", "open", "--tasks", "babyai:0", "--model", "random", "-o", "resumed", files="resumed/*"
    ),
    "suite": _stand_in(_frozen, "data", "suite", "build", "--output", files="suite/babyai.jsonl"),
    "tasks": _command(
        "show", "--tasks", "babyai", "--suite", "agentboard", "--data", "data", files="data/agentboard/babyai/*"
    ),
    "env serve": _stand_in(_serve, "env", "serve", "--prompts", "--data", files="prompts/babyai.yaml"),
    "data path": _command("data", "path", "--data", "data", files="data/agentboard/*/*"),
    "prompts export": _command("data", "prompts", "export", "prompts", files="prompts/babyai.yaml"),
    "run protocol": _command(
        "run", *_PLAYED, "--model", "random", "--protocol", "protocol.yaml", files="protocol.yaml"
    ),
    "run perturbation": _command(
        "run", *_PLAYED, "--model", "random", "--perturb", "polite.yaml", files="polite.yaml"
    ),
    "perturbation": _command("data", "perturbations", "show", "babyai", "polite.yaml", files="polite.yaml"),
    "run prompts": _command("run", *_PLAYED, "--model", "random", "--prompts", "prompts", files="prompts/babyai.yaml"),
    "protocol": _command("data", "protocols", "show", "protocol.yaml", files="protocol.yaml"),
    "protocol import": _command("data", "protocols", "import", "verl-agent", "theirs", files="theirs/*/*/*/*"),
    "prompts show": _command(
        "data", "prompts", "show", "babyai", "--prompts", "prompts", "--system", "system.txt",
        files="prompts/babyai.yaml system.txt",
    ),
    "sampling": _command(
        "run", *_PLAYED, "--model", NOBODY, "--model-name", "x", "--sampling", "generation_config.json",
        files="generation_config.json",
    ),
    "task list": _command(
        "run", "--suite", "open", "--dry-run", "--model", "random", "--tasks", "@tasks.txt", files="tasks.txt"
    ),
    "template": _command(
        "run", *_PLAYED, "--model", "checkpoint", "--chat-template", "template.jinja",
        files="template.jinja",
    ),
    "checkpoint": _command("run", *_PLAYED, "--model", "checkpoint", files="checkpoint/*"),
    "import folder": _command("data", "import", "published", "--data", "brought", files="published/*/*"),
    "import games": _command(
        "data", "import", "--alfworld", "games", "--data", "brought", files="games/json_2.1.1/valid_seen/*/*/*"
    ),
    "import tar": _command("data", "import", "published.tar", "--data", "brought", files="published.tar"),
    "import zip": _command("data", "import", "published.zip", "--data", "brought", files="published.zip"),
    "data verify": _command("data", "verify", "--data", "data", files="data/agentboard/*/*"),
    "data status": _command("data", "status", "--data", "data", files="data/agentboard/*/*"),
    "published tasks": _command(
        "run", "--suite", "agentboard", "--data", "data", "--tasks", "babyai", "--dry-run", "--model", "random",
        files="data/agentboard/babyai/*",
    ),
}  # fmt: skip

_CHAT: dict[str, Any] = {
    "messages": [
        {"role": "user", "content": "Goal: x"},
        {"role": "assistant", "content": "Thought: I look around.\nAction: look", "loss": True, "error": ["place"]},
        {"role": "user", "content": [{"type": "text", "text": "a room"}]},
        {"role": "assistant", "content": "Thought: A door.\nAction: go", "weight": 1, "refine": True},
    ],
    "system": "You act.", "reward": 0.5, "world": "w",
}  # fmt: skip
_CONVERSATION = {
    "conversations": [
        {"from": "human", "value": "Which way?"},
        {"from": "gpt", "value": "Thought: That one.\nAction: go", "loss": None},
    ],
    "id": 7,
}


def _lines(path: Path, *values: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(value) + "\n" for value in values))


def make_inputs(folder: Path) -> None:
    """One of everything, whole, in `folder`, which is the current one."""
    _make_runs(folder)
    make_finished(folder)
    make_data(folder)
    _make_settings(folder)
    _make_checkpoints(folder)
    _make_published(folder)


def _make_runs(folder: Path) -> None:
    for name in ("run", "other", "study/one", "study/two"):
        perturb = "verbs" if name == "study/two" else None
        make_run(folder / name, OUTCOMES, suite="open", samples=2, temperature=1.0, perturb=perturb)
        write_summary(folder / name, Timing(wall_s=3.0, sessions=1, efficiency=0.5))
        write_parquet(folder / name)
    _lines(
        folder / "study" / "study.json",
        {"schema": 1, "kind": "sweep", "runs": {"unperturbed": "one", "verbs": "two"}},
    )
    for seed in (1, 2):
        make_run(
            folder / "seeds" / f"seed-{seed}", OUTCOMES, suite="open", samples=2, temperature=1.0, seed=seed
        )
    made_study(folder / "seeds", "seeds", ["seed-1", "seed-2"])
    make_run(folder / "trained" / "step-5", OUTCOMES, suite="open", samples=2, temperature=1.0)
    _lines(
        folder / "trained" / "study.json", {"schema": 1, "kind": "checkpoints", "runs": {"step-5": "step-5"}}
    )
    shutil.make_archive("run", "zip", folder / "other")
    failure = {"time": 1.0, "task_id": "pddl/open/000", "sample": 1, "attempt": 1, "kind": "K", "error": "e"}
    _lines(folder / "run" / "errors.jsonl", {**failure, "final": True})
    run = load_turns(folder / "run")
    keys = list(run.turns)[:12]
    rows = [f"{task},{sample},{turn},{'wrong' if turn == 2 else 'right'},,n" for task, sample, turn in keys]
    (folder / "labels.csv").write_text("\n".join(["task_id,sample,turn,label,kind,note", *rows, ""]))
    assert main(["judge", "label", "run", "--rater", "person", "--import", "labels.csv"]) == 0
    identity = {"kind": judging.KIND, "run_digest": run.digest, "model": {"name": "toy"}}
    manifest = answers.make_manifest(identity, "toy", drawn={"turns": 12, "seed": 0}, plain=False)
    _lines(folder / "judged.json", manifest)
    _lines(folder / "run" / "judgements" / "toy" / "manifest.json", manifest)
    said = {
        "kind": None,
        "note": "n",
        "reply": "{}",
        "prompt_tokens": 3,
        "completion_tokens": 4,
        "latency_s": 0.1,
    }
    judged = [
        {"task_id": task, "sample": sample, "turn": turn, "family": "babyai", "wrong": turn == 1, **said}
        for task, sample, turn in keys
    ]
    _lines(folder / "run" / "judgements" / "toy" / judging.JUDGEMENTS, *judged)
    assert (folder / "run" / labels.FOLDER / "person" / labels.LABELS).exists()


def make_finished(folder: Path) -> None:
    """Runs that a command continues, with nothing left to play."""
    for name, model in (("resumed", "random"),):
        config = make_config({"model": model, "suite": "open", "tasks": "babyai:0", "concurrency": 1})
        chosen = choose(config, None)
        prompts = {family: prompt.sha256 for family, prompt in chosen.prompts.items()}
        identity = {"kind": "scripted", "name": model}
        with RunStore(folder / name) as store:
            store.begin(make_manifest(config, chosen.tasks, chosen.specs, prompts, identity).to_json())
            store.append(made_episode(chosen.tasks["babyai"][0]))
        write_summary(folder / name, Timing(wall_s=3.0, sessions=1))
    task = make_task("babyai", 0, suite="open")
    freeze(specs()["babyai"], 3, [Proven(task, Proof(3, "x"))], folder / "suite")


def make_data(folder: Path) -> None:
    write_data(
        folder / "data.jsonl",
        [erring_conversation(), clean_conversation(), erring_conversation("d")],
        {"by": "hand"},
    )
    write_data(folder / "more.jsonl", [clean_conversation("m")], {})
    said = [
        {**_CHAT, "messages": [{**_CHAT["messages"][1], "content": f"Thought: to {n}.\nAction: go"}]}
        for n in range(6)
    ]
    _lines(folder / "chat.jsonl", _CHAT, _CONVERSATION, _CHAT, *said)
    (folder / "chat.json").write_text(json.dumps([_CHAT, _CONVERSATION]))
    pyarrow.parquet.write_table(pa.Table.from_pylist([_CONVERSATION] * 3), folder / "chat.parquet")
    _lines(folder / "personas.jsonl", {"persona": "a baker"}, {"persona": "a diver"})
    names = ("single-v1", "single-math-v1", "single-v1-multi-turn", "single-math-v1-multi-turn")
    prompt = {
        "type": "single",
        "system_prompt": "s",
        "prompt_template": "{question} {answer}",
        "output_format": "[[rating]]",
    }
    _lines(folder / "judge_prompts.jsonl", *({"name": name, **prompt} for name in names))
    question = {"question_id": 81, "category": "writing", "turns": ["a?", "b?"], "reference": ["x", "y"]}
    _lines(folder / "questions.jsonl", question, {**question, "question_id": 82})
    _lines(folder / "references.jsonl", {"question_id": 81, "choices": [{"turns": ["c", "d"]}]})
    manifest = {
        "schema": 1, "digest": "d", "identity": {"kind": "scripts", "model": {}}, "model_name": "toy",
        "sessions": [{"wanted": 1}],
    }  # fmt: skip
    _lines(folder / "scripts" / "manifest.json", manifest)
    record = {
        "index": 0, "key": "persona-1", "persona": "p", "calls": 1, "signals": ["JSON"], "mistakes": [["cut off"]],
        "script": None, "prompt_tokens": 5, "completion_tokens": 6,
    }  # fmt: skip
    _lines(folder / "scripts" / "rejected.jsonl", record)
    _lines(
        folder / "scripts" / "passed.jsonl", {**record, "signals": ["OK"], "mistakes": [[]], "script": SCRIPT}
    )
    call = {
        "key": "persona-2", "call": 1, "reply": "{}", "refusal": None, "finish_reason": "stop", "prompt_tokens": 5,
        "completion_tokens": 6, "latency_s": 0.1, "tries": 1,
    }  # fmt: skip
    _lines(folder / "scripts" / "calls.jsonl", call)


def _make_settings(folder: Path) -> None:
    (folder / "polite.yaml").write_text(
        "description: d\nfamilies:\n  babyai:\n    prose: {a: b}\n    reverse_actions: true\n"
    )
    trial = (
        folder
        / "games"
        / "json_2.1.1"
        / "valid_seen"
        / "look_at_obj_in_light-Mug-None-DeskLamp-1"
        / "trial_1"
    )
    trial.mkdir(parents=True)
    (trial / "game.tw-pddl").write_text(
        json.dumps(
            {
                "pddl_domain": "d",
                "grammar": "g",
                "pddl_problem": "p",
                "solvable": True,
                "walkthrough": ["look"],
            }
        )
    )
    (trial / "traj_data.json").write_text(json.dumps({"task_type": "look_at_obj_in_light"}))
    (folder / "config.yaml").write_text(
        "model: random\nsuite: open\nmax-turns: 5\ntasks: babyai:0\nlabel: {size: '3', by: '${USER_NAME}'}\nseed: 1\n"
    )
    shutil.copy(prompts_folder() / "protocols" / "verl-agent.yaml", folder / "protocol.yaml")
    import_texts("verl-agent", verl_checkout(folder / "theirs"))
    _lines(
        folder / "generation_config.json", {"temperature": 0.6, "top_p": 0.9, "transformers_version": "4.0"}
    )
    (folder / "x.json").write_text(json.dumps({"run": 3.0, "other": 4}))
    (folder / "x.csv").write_text("name,size\nrun,3\nother,4\n")
    (folder / "tasks.txt").write_text("babyai:0-1  # two\nbabyai/open/005\n")
    (folder / "system.txt").write_text("You are a player.\n")
    (folder / "template.jinja").write_text("{% for m in messages %}{{ m['content'] }}{% endfor %}\n")
    shutil.copytree(
        prompts_folder(),
        folder / "prompts",
        ignore=shutil.ignore_patterns("refine", "judge", "protocols", "*.md"),
    )
    shutil.copytree(prompts_folder() / "training", folder / "refine-prompts")
    shutil.copytree(prompts_folder() / "judge", folder / "judge-prompts")


def _make_checkpoints(folder: Path) -> None:
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "max_position_embeddings": 4096,
        "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "vocab_size": 16, "torch_dtype": "float32",
    }  # fmt: skip
    header = json.dumps({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
    weights = len(header).to_bytes(8, "little") + header + b"\x00" * 8
    for name in ("checkpoint", "models/checkpoint-1"):
        place = folder / name
        _lines(place / "config.json", config)
        _lines(place / "tokenizer_config.json", {"chat_template": "{{ messages }}", "model_max_length": 4096})
        _lines(place / "generation_config.json", {"temperature": 0.6})
        _lines(
            place / "tokenizer.json", {"version": "1.0", "model": {"type": "BPE", "vocab": {}, "merges": []}}
        )
        (place / "model.safetensors").write_bytes(weights)
    for name in ("adapter", "models/checkpoint-2"):
        adapter = {
            "base_model_name_or_path": str(folder / "checkpoint"),
            "r": 8,
            "peft_type": "LORA",
            "lora_alpha": 16,
        }
        _lines(folder / name / "adapter_config.json", adapter)
        (folder / name / "adapter_model.safetensors").write_bytes(weights)
    manifest = {"kind": "evalharness tuning", "status": "done", "identity": {"settings": {}}, "base": "x"}
    _lines(folder / "tuned" / "manifest.json", manifest)


def _make_published(folder: Path) -> None:
    row = {"goal": "g", "subgoals": ["a"], "id": 0, "difficulty": "easy", "additional_info": {"answer": "x"}}
    names = (
        "pddl/test.jsonl",
        "babyai/test.jsonl",
        "jericho/test.jsonl",
        "alfworld/test.jsonl",
        "scienceworld/test.jsonl",
    )
    for top in ("published", "data/agentboard"):
        for name in names:
            _lines(folder / top / name, row, {**row, "id": 1})
    with (
        tarfile.open(folder / "published.tar", "w") as tar,
        zipfile.ZipFile(folder / "published.zip", "w") as archive,
    ):
        for name in names:
            tar.add(folder / "published" / name, name)
            archive.write(folder / "published" / name, name)


def prepare_environment(home: Path) -> None:
    """Variables of a command that finds nothing of the user's."""
    for name in [name for name in os.environ if name.startswith(("EVALHARNESS_", "XDG_", "HF_"))]:
        del os.environ[name]
    os.environ |= {
        "HOME": str(home),
        "EVALHARNESS_HOME": str(home / "evalharness"),
        "USER_NAME": "a person",
        "COLUMNS": "100",
    }
