"""`evalharness judge mtbench`: a model answers two-turn questions, a judge grades each answer from 1 to 10."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from evalharness.base.errors import UserError
from evalharness.base.paths import folder_name
from evalharness.base.reading import read_object
from evalharness.config import PolicyConfig
from evalharness.judge.answers import UnusableReplyError, strip_reasoning
from evalharness.judge.fastchat import FastChatPrompts, load_fastchat_prompts
from evalharness.judge.folder import JudgeProgress
from evalharness.judge.grading import Grade, GradePrompt, load_grade_prompt, read_grade
from evalharness.judge.mtbench_scores import GradeKey, Score, read_published_scores, scores
from evalharness.judge.questions import QuestionSet, TwoTurnQuestion
from evalharness.models.base import RequestForm
from evalharness.models.connections import sampling_identity
from evalharness.models.event_loop import run_to_end
from evalharness.models.many_requests import (
    TRIES,
    Answer,
    AskedModel,
    AskingResult,
    open_asked_model_for,
    refuse_scripted,
)
from evalharness.models.opened import Prepared
from evalharness.models.resolve import prepare
from evalharness.models.work import Watch
from evalharness.protocol.prompt import Message
from evalharness.records.answers import AnswerFolder, make_manifest
from evalharness.records.files import ERRORS, SUMMARY
from evalharness.records.identity import digest
from evalharness.records.lines import read_lines
from evalharness.records.store import write_atomically

ANSWERS = "answers.jsonl"
GRADES = "grades.jsonl"
KIND = "mtbench"
AnyPrompt = GradePrompt | FastChatPrompts


class MtbenchFolder(AnswerFolder):
    """A folder of answers and grades. After `resume`, `answers` and `grades` have those stored earlier."""

    lines = (ANSWERS, GRADES, ERRORS)

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.answers: dict[GradeKey, str] = {}
        self.grades: dict[GradeKey, Grade] = {}
        self.tokens: Counter[str] = Counter()

    def load(self) -> None:
        for _ in read_lines(self.folder / ANSWERS, "its question is asked anew", self._take_answer):
            pass
        for _ in read_lines(self.folder / GRADES, "its answer is graded anew", self._take_grade):
            pass

    def _take_answer(self, raw: bytes) -> None:
        line = read_object(raw)
        self._count(ANSWERS, line)
        self.answers[_key(line)] = str(line["answer"])

    def _take_grade(self, raw: bytes) -> None:
        line = read_object(raw)
        self._count(GRADES, line)
        self.grades[_key(line)] = read_grade(line)

    def _count(self, name: str, line: Mapping[str, Any]) -> None:
        for part in ("prompt_tokens", "completion_tokens"):
            self.tokens[f"{name} {part}"] += line[part] or 0

    def add_answer(self, key: GradeKey, answer: Answer) -> None:
        """Store an answer. If the server refused the question, or the reply ended inside the reasoning, store an empty
        answer; the judge grades it like any other."""
        try:
            text = "" if answer.refusal else strip_reasoning(answer.reply)
        except UnusableReplyError:
            text = ""
        self._add(ANSWERS, key, {"answer": text}, answer)
        self.answers[key] = text

    def add_grade(self, key: GradeKey, answer: Answer, grade: Grade) -> Grade:
        self._add(GRADES, key, asdict(grade), answer)
        self.grades[key] = grade
        return grade

    def _add(self, name: str, key: GradeKey, own: dict[str, Any], answer: Answer) -> None:
        line = {"question_id": key[0], "turn": key[1], **own, **answer.to_json()}
        self.append_line(name, line)
        self._count(name, line)


def _key(line: Mapping[str, Any]) -> GradeKey:
    return str(line["question_id"]), int(line["turn"])


@dataclass(frozen=True)
class Mtbench:
    questions: QuestionSet
    model: PolicyConfig
    judge: PolicyConfig
    temperature: float | None = None
    """Temperature of the answers; None means a temperature for each category, as in MT-bench."""
    output: Path | None = None
    prompts: Path | None = None
    judge_prompts: Path | None = None
    """FastChat's file of judge prompts; None means the prompt in `prompts/judge`."""
    plain: bool = False
    tries: int = TRIES
    """Largest number of tries of one question if a server fails."""


@dataclass(frozen=True)
class Graded(AskingResult):
    scores: Sequence[Score]


def run_mtbench(what: Mtbench, *, watch: Watch = nullcontext) -> Graded:
    """Let the model answer every question and the judge grade every answer; stored ones are kept. The model's server is
    stopped before the judge's is started, so that one GPU is enough.

    Raises UserError for errors that the user can fix. Server failures are recorded, and the result names them.
    """
    refuse_scripted(what.model, "--model")
    refuse_scripted(what.judge, "--judge")
    prompt = _prompt(what)
    progress = JudgeProgress("answers and grades", 4 * len(what.questions.questions))
    with watch(progress):
        model, judge = (prepare(one, {}, progress.set_status) for one in (what.model, what.judge))
        identity = {
            "kind": KIND,
            "questions": dict(what.questions.facts),
            "prompt": prompt.facts,
            "temperature": what.temperature,
            "model": {**model.identity, "sampling": _sampling(what.model)},
            "judge": {**judge.identity, "sampling": _sampling(what.judge)},
        }
        folder = what.output or _folder(what, identity)
        with MtbenchFolder(folder) as store:
            manifest = make_manifest(identity, what.model.display_name, plain=what.plain)
            manifest["judge_name"] = what.judge.display_name
            store.load_or_refuse(manifest)
            progress.finished = len(store.answers) + len(store.grades)
            run_to_end(_everything(what, model, judge, prompt, store, progress))
            rows = scores(
                what.questions.questions, {key: grade.rating for key, grade in store.grades.items()}
            )
            return Graded(folder, _write(what, store, rows), progress.stopped, rows)


def _prompt(what: Mtbench) -> AnyPrompt:
    """Load the prompt that the options select: FastChat's file, or the one in `prompts/judge`. Raises UserError."""
    if what.judge_prompts is None:
        return load_grade_prompt(what.prompts)
    if what.prompts is not None:
        raise UserError("give --prompts or --judge-prompts, not both")
    prompts = load_fastchat_prompts(what.judge_prompts)
    prompts.require_references(what.questions.questions)
    return prompts


def _folder(what: Mtbench, identity: Mapping[str, Any]) -> Path:
    name = folder_name(what.model.display_name, "model")
    return Path("results") / f"mtbench-{name}-{digest(identity)[:8]}"


def _sampling(config: PolicyConfig) -> dict[str, Any]:
    return sampling_identity(config) | {"vllm_args": config.vllm_args}


async def _everything(
    what: Mtbench,
    model: Prepared,
    judge: Prepared,
    prompt: AnyPrompt,
    store: MtbenchFolder,
    progress: JudgeProgress,
) -> None:
    def at_work(
        prepared: Prepared, config: PolicyConfig, form: RequestForm
    ) -> AbstractAsyncContextManager[AskedModel]:
        return open_asked_model_for(store, prepared, form, progress, what.tries, config.concurrency)

    questions = what.questions.questions
    if any((question.id, turn) not in store.answers for question in questions for turn in (1, 2)):
        async with at_work(model, what.model, RequestForm()) as asking:
            asking.answered_before = bool(store.answers)
            store.note_start(model=dict(asking.facts))
            jobs = {
                question.id: partial(_answer, what, asking, store, progress, question)
                for question in questions
                if (question.id, 2) not in store.answers
            }
            await asking.run(jobs)
    left = [key for key in sorted(store.answers) if key not in store.grades]
    if left and not progress.stopped:
        form = RequestForm(response_format=None if what.plain else prompt.response_format)
        async with at_work(judge, what.judge, form) as asking:
            asking.answered_before = bool(store.grades)
            store.note_start(judge={**asking.facts, **await asking.settle_form()})
            by_id = {question.id: question for question in questions}
            grade = partial(_grade, asking, prompt, store, progress)
            await asking.run({f"{name}/{turn}": partial(grade, by_id[name], turn) for name, turn in left})


async def _answer(
    what: Mtbench,
    asking: AskedModel,
    store: MtbenchFolder,
    progress: JudgeProgress,
    question: TwoTurnQuestion,
) -> None:
    """Ask the model for the answers to a question's two turns that are not stored yet."""
    form = RequestForm(temperature=question.temperature if what.temperature is None else what.temperature)
    for turn in (1, 2):
        if (question.id, turn) not in store.answers:
            messages = conversation(question, turn, store.answers)
            store.add_answer(
                (question.id, turn), await asking.answer(f"{question.id}/{turn}", messages, form=form)
            )
            progress.finish()


def conversation(question: TwoTurnQuestion, turn: int, answers: Mapping[GradeKey, str]) -> list[Message]:
    """Return the messages to the model. For turn 2 they contain the model's own answer to turn 1."""
    first: Message = {"role": "user", "content": question.turns[0]}
    if turn == 1:
        return [first]
    reply: Message = {"role": "assistant", "content": answers[question.id, 1]}
    return [first, reply, {"role": "user", "content": question.turns[1]}]


async def _grade(
    asking: AskedModel,
    prompt: AnyPrompt,
    store: MtbenchFolder,
    progress: JudgeProgress,
    question: TwoTurnQuestion,
    turn: int,
) -> None:
    answers = tuple(store.answers[question.id, number] for number in range(1, turn + 1))
    answer = await asking.answer(f"{question.id}/{turn}", prompt.messages(question, turn, answers))
    progress.unread += store.add_grade((question.id, turn), answer, prompt.read(answer)).rating is None
    progress.finish()


def _write(what: Mtbench, store: MtbenchFolder, rows: Sequence[Score]) -> dict[str, Any]:
    """Write `summary.json` from all stored answers and grades."""
    unread = Counter(grade.note for grade in store.grades.values() if grade.rating is None)
    tokens = {
        who: {part: store.tokens[f"{name} {part}_tokens"] for part in ("prompt", "completion")}
        for who, name in (("model", ANSWERS), ("judge", GRADES))
    }
    summary = {
        "model": what.model.display_name,
        "judge": what.judge.display_name,
        "questions": dict(what.questions.facts),
        "scores": [asdict(score) for score in rows],
        "left": 2 * len(what.questions.questions) - len(store.grades),
        "unread": unread.total(),
        "unread_because": dict(sorted(unread.items())),
        "tokens": tokens,
        "graded_by": "FastChat's prompts" if what.judge_prompts else "the harness's own prompt",
        "published": [{"method": method, "mt_bench": value} for method, value in read_published_scores()],
    }
    write_atomically(store.folder / SUMMARY, json.dumps(summary, indent=2) + "\n")
    return summary
