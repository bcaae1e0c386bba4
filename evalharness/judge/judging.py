"""`evalharness judge`: ask a model for verdicts on sampled turns of a run, and store them in the run's folder."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from evalharness.base.errors import InfrastructureError
from evalharness.base.paths import folder_name, replacing
from evalharness.base.reading import read_object
from evalharness.config import PolicyConfig
from evalharness.judge.answers import VERDICT_FORMAT, read_verdict
from evalharness.judge.draw import DrawnTurn, JudgedRun, load_turns
from evalharness.judge.folder import JudgeProgress, choose_own_folder, draws_of, read_kind
from evalharness.judge.turn_prompt import EARLIER_TURNS, TurnPrompt, load_turn_prompt
from evalharness.judge.verdict import Rater, TurnKey, Verdict, add_folder_names, verdict_of
from evalharness.models.base import RequestForm
from evalharness.models.connections import sampling_identity
from evalharness.models.event_loop import run_to_end
from evalharness.models.many_requests import (
    TRIES,
    Answer,
    AskingResult,
    open_asked_model_for,
    refuse_scripted,
)
from evalharness.models.opened import Prepared
from evalharness.models.resolve import prepare
from evalharness.models.work import Watch
from evalharness.records.answers import AnswerFolder, make_manifest
from evalharness.records.files import ERRORS, MANIFEST, SUMMARY
from evalharness.records.identity import digest
from evalharness.records.lines import read_lines
from evalharness.records.store import EpisodeKey, write_atomically
from evalharness.results.report.records import TurnJudgement

FOLDER = "judgements"
"""Name of the folder, inside the run's folder, that has a folder for each judge."""
JUDGEMENTS = "judgements.jsonl"
KIND = "judgements"
MAKE = "evalharness judge RUN --judge MODEL"


class JudgementFolder(AnswerFolder):
    """A folder of judgements. After `resume`, `done` has the turns that were judged earlier."""

    lines = (JUDGEMENTS, ERRORS)

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.done: dict[TurnKey, Verdict] = {}

    def load(self) -> None:
        self.done = {key: verdict for key, verdict, _, _ in judgement_lines(self.folder)}

    def add(self, drawn: DrawnTurn, answer: Answer) -> Verdict:
        verdict = replace(read_verdict(answer), turn_sha256=drawn.sha256)
        task_id, sample, turn = drawn.key
        self.append_line(
            JUDGEMENTS,
            {"task_id": task_id, "sample": sample, "turn": turn, "family": drawn.family}
            | asdict(verdict)
            | answer.to_json(),
        )
        self.done[drawn.key] = verdict
        return verdict


Judgement = tuple[TurnKey, Verdict, str, dict[str, Any]]
"""(turn, verdict, environment family, whole JSON line)"""


def judgement_lines(folder: Path) -> Iterator[Judgement]:
    """Yield the lines in file order. Raises UserError if a file is damaged."""
    return read_lines(folder / JUDGEMENTS, "its turn is judged anew", _judgement)


def _judgement(raw: bytes) -> Judgement:
    line = read_object(raw)
    key, verdict = verdict_of(line)
    return key, verdict, str(line["family"]), line


def read_judge(folder: Path) -> Rater:
    """Read a folder of judgements as a rater. Raises UserError."""
    manifest = read_kind(folder, KIND, MAKE)
    verdicts = {key: (verdict, family) for key, verdict, family, _ in judgement_lines(folder)}
    return Rater(
        str(manifest.get("model_name", folder.name)),
        {key: verdict for key, (verdict, _) in verdicts.items()},
        {key: family for key, (_, family) in verdicts.items()},
        manifest["identity"]["run_digest"],
        draws_of(manifest),
    )


def judges_of(run: Path) -> list[Rater]:
    """Return every judge of a run, in the order of folder names. Folders with judgements of another run are ignored."""
    folders = [path.parent for path in sorted((run / FOLDER).glob(f"*/{MANIFEST}"))]
    judged = load_turns(run) if folders else None
    raters = [
        (judge, folder.name)
        for folder in folders
        if judged is not None
        and (judge := read_judge(folder)).run_digest == judged.digest
        and not judged.find_unknown(judge.verdicts)
    ]
    return add_folder_names([judge for judge, _ in raters], [name for _, name in raters])


def judgements_of(run: Path) -> dict[EpisodeKey, dict[int, list[TurnJudgement]]]:
    """Return the verdicts of all judges of a run, by episode and turn, for the HTML report."""
    judgements: dict[EpisodeKey, dict[int, list[TurnJudgement]]] = {}
    for judge in judges_of(run):
        for (task_id, sample, turn), verdict in judge.verdicts.items():
            judgement = (judge.name, verdict.word, verdict.kind or "", verdict.note)
            judgements.setdefault((task_id, sample), {}).setdefault(turn, []).append(judgement)
    return judgements


@dataclass(frozen=True)
class Judging:
    """The options of `evalharness judge`."""

    run: Path
    judge: PolicyConfig
    turns: int | None = None
    draw_seed: int = 0
    output: Path | None = None
    prompts: Path | None = None
    plain: bool = False
    """Whether to request a reply without a JSON schema, for servers without structured output."""
    tries: int = TRIES
    """Largest number of tries of one question if the server fails."""


def judge_run(what: Judging, *, watch: Watch = nullcontext) -> AskingResult:
    """Judge the sampled turns that are not judged yet.

    Raises UserError for errors that the user can fix. Server failures are recorded, and the result names them.
    """
    refuse_scripted(what.judge, "--judge")
    run = load_turns(what.run)
    drawn = run.draw_turns(what.turns, what.draw_seed)
    prompt = load_turn_prompt(what.prompts)
    progress = JudgeProgress("judgements", len(drawn))
    with watch(progress):
        prepared = prepare(what.judge, {}, progress.set_status)
        identity = {
            "kind": KIND,
            "run_digest": run.digest,
            "prompt": prompt.facts,
            "earlier_turns": EARLIER_TURNS,
            "sampling": sampling_identity(what.judge) | {"vllm_args": what.judge.vllm_args},
            "model": dict(prepared.identity),
        }
        folder = what.output or _folder(what, identity)
        manifest = make_manifest(
            identity,
            what.judge.display_name,
            drawn={"turns": what.turns, "seed": what.draw_seed},
            plain=what.plain,
        )
        with JudgementFolder(folder) as store:
            store.load_or_refuse(manifest)
            run.require_known(store.done, str(folder))
            left = [turn for turn in drawn if turn.key not in store.done]
            progress.total = len(left) + len(store.done)
            progress.finished = len(store.done)
            if left or not (folder / MANIFEST).exists():
                run_to_end(_ask(what, prepared, store, prompt, left, progress))
            progress.status = "writing the table"
            return AskingResult(folder, _write(folder, run, drawn), progress.stopped)


def _folder(what: Judging, identity: Mapping[str, Any]) -> Path:
    """Return the default folder; the same options give the same folder, so that the command can continue."""
    name = folder_name(what.judge.display_name, "judge")
    return choose_own_folder(what.run, FOLDER, f"{name}-{digest(identity)[:8]}")


async def _ask(
    what: Judging,
    prepared: Prepared,
    store: JudgementFolder,
    prompt: TurnPrompt,
    turns: Sequence[DrawnTurn],
    progress: JudgeProgress,
) -> None:
    form = RequestForm(response_format=None if what.plain else VERDICT_FORMAT)
    async with open_asked_model_for(
        store, prepared, form, progress, what.tries, what.judge.concurrency
    ) as model:

        async def one(key: str, turn: DrawnTurn) -> None:
            verdict = store.add(turn, await model.answer(key, prompt.messages(turn)))
            progress.unread += verdict.wrong is None
            progress.finish()

        model.answered_before = bool(store.done)
        store.note_start(policy=dict(model.facts), **await model.settle_form())
        keys = {"/".join(map(str, turn.key)): turn for turn in turns}
        await model.run({key: partial(one, key, turn) for key, turn in keys.items()})


def _write(folder: Path, run: JudgedRun, drawn: Sequence[DrawnTurn]) -> dict[str, Any]:
    """Write `judgements.parquet` and `summary.json` from all lines of `judgements.jsonl`."""
    lines = list(judgement_lines(folder))
    judged = {key for key, _, _, _ in lines}
    verdicts = [verdict for _, verdict, _, _ in lines]
    unread = Counter(verdict.note for verdict in verdicts if verdict.wrong is None)
    prompt_tokens = sum(line.get("prompt_tokens") or 0 for _, _, _, line in lines)
    completion_tokens = sum(line.get("completion_tokens") or 0 for _, _, _, line in lines)
    summary = {
        "run": str(run.folder),
        "judged": len(lines),
        "left": sum(turn.key not in judged for turn in drawn),
        "right": sum(verdict.wrong is False for verdict in verdicts),
        "wrong": sum(verdict.wrong is True for verdict in verdicts),
        "unread": unread.total(),
        "unread_because": dict(sorted(unread.items())),
        "kinds": dict(sorted(Counter(v.kind or "not said" for v in verdicts if v.wrong).items())),
        "tokens": {"prompt": prompt_tokens, "completion": completion_tokens},
    }
    _write_table(folder / "judgements.parquet", [line for _, _, _, line in lines])
    write_atomically(folder / SUMMARY, json.dumps(summary, indent=2) + "\n")
    return summary


def _write_table(target: Path, lines: Sequence[Mapping[str, Any]]) -> None:
    """Write the table atomically, sorted by task, sample and turn."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    text, flag, whole, real = pa.string(), pa.bool_(), pa.int64(), pa.float64()
    schema = pa.schema(
        [
            *((name, text) for name in ("task_id", "family")),
            *((name, whole) for name in ("sample", "turn")),
            ("wrong", flag),
            *((name, text) for name in ("kind", "note", "reply", "refusal", "finish_reason")),
            *((name, whole) for name in ("prompt_tokens", "completion_tokens", "tries")),
            ("latency_s", real),
        ]
    )
    ordered = sorted(lines, key=lambda line: (line["task_id"], line["sample"], line["turn"]))
    rows = [{name: line.get(name) for name in schema.names} for line in ordered]
    try:
        with replacing(target) as temporary:
            pq.write_table(pa.Table.from_pylist(rows, schema=schema), temporary)
    except (OSError, pa.ArrowException) as error:
        raise InfrastructureError(
            f"cannot write {target}: {error}; the judgements are safe in judgements.jsonl"
        ) from error
