"""`evalharness judge`: a model's verdict on drawn turns of a run, in a folder of its own inside the run's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from evalharness.config import RunConfig
from evalharness.engine.asking import AbortedError, TokenPrices, asked
from evalharness.errors import UserError
from evalharness.judge.answers import VERDICT_FORMAT, read_verdict
from evalharness.judge.asking import Answer, Question, ask, refuse_scripted
from evalharness.judge.draw import DrawnTurn, JudgedRun, load_turns, played_digest
from evalharness.judge.folder import (
    ERRORS,
    AnswerFolder,
    digest_of,
    make_manifest,
    read_answers,
    read_kind,
    sampling_identity,
)
from evalharness.judge.judgement_table import write_judgements
from evalharness.judge.progress import AskingProgress, Watch, unwatched
from evalharness.judge.turn_prompt import EARLIER_TURNS, load_turn_prompt
from evalharness.judge.verdict import Rater, TurnKey, Verdict, told_apart
from evalharness.paths import folder_name
from evalharness.policy.base import RequestForm
from evalharness.policy.event_loop import run_to_end
from evalharness.policy.opened import Prepared
from evalharness.policy.resolve import prepare
from evalharness.records.store import MANIFEST, SUMMARY, EpisodeKey, read_manifest
from evalharness.report.viewer.records import TurnJudgement

FOLDER = "judgements"
"""Inside the run's folder."""
JUDGEMENTS = "judgements.jsonl"
KIND = "judgements"
MAKE = "evalharness judge RUN --judge MODEL"


class JudgementFolder(AnswerFolder):
    """After `resume`, `done` holds the turns that were judged."""

    lines = (JUDGEMENTS, ERRORS)

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.done: set[TurnKey] = set()

    def load(self) -> None:
        self.done = {key for key, _, _ in judgement_lines(self.folder)}

    def add(self, drawn: DrawnTurn, answer: Answer) -> Verdict:
        verdict = verdict_of(answer)
        task_id, sample, turn = drawn.key
        said = asdict(answer)
        del said["key"]
        self.append_line(
            JUDGEMENTS,
            {"task_id": task_id, "sample": sample, "turn": turn, "family": drawn.family}
            | {"wrong": verdict.wrong, "kind": verdict.kind, "note": verdict.note}
            | {"reply": said.pop("text"), **said},
        )
        self.done.add(drawn.key)
        return verdict


def verdict_of(answer: Answer) -> Verdict:
    if answer.refusal == "context":
        return Verdict(None, None, "too long for the judge's context")
    if answer.refusal == "refused":
        return Verdict(None, None, "the judge's server refused the question")
    return read_verdict(answer.text, answer.finish_reason)


def judgement_lines(folder: Path) -> Iterator[tuple[TurnKey, Verdict, dict[str, Any]]]:
    """(turn, verdict, whole line) in the order they came. Raises UserError on damage."""
    for line in read_answers(folder / JUDGEMENTS):
        try:
            key = (str(line["task_id"]), int(line["sample"]), int(line["turn"]))
            yield key, Verdict(line["wrong"], line["kind"], line["note"]), line
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(f"{folder / JUDGEMENTS} holds a line that is no judgement: {error}") from None


def read_judge(folder: Path) -> Rater:
    """A folder of judgements as a rater. Raises UserError."""
    manifest = read_kind(folder, KIND, MAKE)
    found = {key: (verdict, str(line["family"])) for key, verdict, line in judgement_lines(folder)}
    return Rater(
        str(manifest["model_name"]),
        {key: verdict for key, (verdict, _) in found.items()},
        {key: family for key, (_, family) in found.items()},
        manifest["identity"]["run_digest"],
    )


def judges_of(run: Path) -> list[Rater]:
    """Every judge's folder inside a run's, by name. Judgements of what another run played are left out."""
    digest = played_digest(read_manifest(run))
    folders = [path.parent for path in sorted((run / FOLDER).glob(f"*/{MANIFEST}"))]
    found = [(judge, folder.name) for folder in folders if (judge := read_judge(folder)).run_digest == digest]
    return told_apart([judge for judge, _ in found], [name for _, name in found])


def judgements_of(run: Path) -> dict[EpisodeKey, dict[int, list[TurnJudgement]]]:
    """What all judges of a run said, for the report's page."""
    found: dict[EpisodeKey, dict[int, list[TurnJudgement]]] = {}
    for judge in judges_of(run):
        for (task_id, sample, turn), verdict in judge.verdicts.items():
            said = (judge.name, verdict.word, verdict.kind or "", verdict.note)
            found.setdefault((task_id, sample), {}).setdefault(turn, []).append(said)
    return found


@dataclass(frozen=True)
class Judging:
    """The options of `evalharness judge`."""

    run: Path
    judge: RunConfig
    """Which model, how its replies are drawn, and how it is served; all else in it is ignored."""
    turns: int | None = None
    draw_seed: int = 0
    output: Path | None = None
    prompts: Path | None = None
    plain: bool = False
    """Do not ask the server for structured output."""
    prices: TokenPrices = field(default_factory=TokenPrices)


@dataclass(frozen=True)
class Judged:
    """What came of it."""

    folder: Path
    summary: dict[str, Any]
    stopped: str | None
    """Why it ended before every turn was tried; None when it did not."""

    @property
    def exit_status(self) -> int:
        """0, or 3 when infrastructure failures left turns out."""
        return 0 if self.stopped is None and not self.summary["left"] else 3


def judge_run(what: Judging, *, watch: Watch = unwatched) -> Judged:
    """Judge the drawn turns, or go on with that. More turns may join the same folder.

    Raises UserError for what the user can fix; infrastructure failures are recorded and named in what is returned.
    """
    refuse_scripted(what.judge, "--judge")
    run = load_turns(what.run)
    drawn = run.drawn(what.turns, what.draw_seed)
    prompt = load_turn_prompt(what.prompts)
    progress = AskingProgress("judgements", len(drawn))

    def set_status(text: str) -> None:
        progress.status = text

    with watch(progress):
        prepared = prepare(what.judge, {}, set_status)
        identity = {
            "kind": KIND,
            "run_digest": run.digest,
            "prompt": prompt.facts,
            "earlier_turns": EARLIER_TURNS,
            "sampling": sampling_identity(what.judge),
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
            store.resume(manifest)
            left = [turn for turn in drawn if turn.key not in store.done]
            progress.total = len(left) + len(store.done)
            progress.finished = len(store.done)
            stopped = None
            if left or not (folder / MANIFEST).exists():
                questions = {
                    "/".join(map(str, turn.key)): (turn, partial(prompt.messages, turn)) for turn in left
                }
                stopped = run_to_end(_ask(what, prepared, store, manifest, questions, progress))
            progress.status = "writing the table"
            return Judged(folder, _write(folder, run, drawn, what.prices), stopped)


def _folder(what: Judging, identity: Mapping[str, Any]) -> Path:
    """The same options find it again."""
    name = folder_name(what.judge.display_name, "judge")
    return what.run / FOLDER / f"{name}-{digest_of(identity)[:8]}"


async def _ask(
    what: Judging,
    prepared: Prepared,
    store: JudgementFolder,
    manifest: dict[str, Any],
    turns: Mapping[str, tuple[DrawnTurn, Any]],
    progress: AskingProgress,
) -> str | None:
    """Returns why it stopped early, or None."""

    def keep(answer: Answer) -> None:
        verdict = store.add(turns[answer.key][0], answer)
        progress.unread += verdict.wrong is None
        progress.count(answer.completion_tokens)

    form = RequestForm(response_format=None if what.plain else VERDICT_FORMAT)
    async with asked(what.judge, prepared, store.folder, form, progress, store.error) as model:
        model.answered = bool(store.done)
        manifest["sessions"][-1] |= {"policy": model.facts, **await model.settle_form()}
        store.begin(manifest)
        try:
            await ask(model, [Question(key, messages) for key, (_, messages) in turns.items()], keep)
        except AbortedError as error:
            return str(error)
    return None


def _write(folder: Path, run: JudgedRun, drawn: Sequence[DrawnTurn], prices: TokenPrices) -> dict[str, Any]:
    """`judgements.parquet` and `summary.json` anew, from the lines."""
    lines = list(judgement_lines(folder))
    judged = {key for key, _, _ in lines}
    verdicts = [verdict for _, verdict, _ in lines]
    unread = Counter(verdict.note for verdict in verdicts if verdict.wrong is None)
    prompt_tokens = sum(line["prompt_tokens"] or 0 for _, _, line in lines)
    completion_tokens = sum(line["completion_tokens"] or 0 for _, _, line in lines)
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
        "cost": prices.cost(prompt_tokens, completion_tokens),
    }
    write_judgements(folder, [line for _, _, line in lines], summary, SUMMARY)
    return summary
