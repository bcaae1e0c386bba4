"""`evalharness mtbench`: a model answers two-turn questions, a judge grades each answer from 1 to 10; in one folder."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from evalharness.config import RunConfig
from evalharness.engine.asking import AbortedError, AskedModel, TokenPrices, asked
from evalharness.errors import UserError
from evalharness.judge.asking import Answer, Question, ask, refuse_scripted
from evalharness.judge.folder import (
    ERRORS,
    AnswerFolder,
    digest_of,
    make_manifest,
    read_answers,
    sampling_identity,
)
from evalharness.judge.grading import GRADE_FORMAT, Grade, GradePrompt, load_grade_prompt, read_grade
from evalharness.judge.mtbench_scores import GradeKey, Score, published_scores, scores
from evalharness.judge.progress import AskingProgress, Watch, unwatched
from evalharness.judge.questions import QuestionSet, TwoTurnQuestion
from evalharness.paths import folder_name
from evalharness.policy.base import RequestForm
from evalharness.policy.event_loop import run_to_end
from evalharness.policy.opened import Prepared
from evalharness.policy.resolve import prepare
from evalharness.protocol.prompt import Message
from evalharness.records.store import SUMMARY, write_atomically

ANSWERS = "answers.jsonl"
GRADES = "grades.jsonl"
KIND = "mtbench"


class MtbenchFolder(AnswerFolder):
    """After `resume`: the answers and grades that are there."""

    lines = (ANSWERS, GRADES, ERRORS)

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.answers: dict[GradeKey, str] = {}
        self.grades: dict[GradeKey, Grade] = {}
        self.tokens: Counter[str] = Counter()

    def load(self) -> None:
        for name in (ANSWERS, GRADES):
            for line in read_answers(self.folder / name):
                try:
                    key = (str(line["question_id"]), int(line["turn"]))
                    if name == ANSWERS:
                        self.answers[key] = str(line["answer"])
                    else:
                        self.grades[key] = Grade(line["rating"], str(line["note"]))
                    self._count(name, line)
                except (KeyError, TypeError, ValueError) as error:
                    raise UserError(f"{self.folder / name} holds a line of another kind: {error}") from None

    def _count(self, name: str, line: Mapping[str, Any]) -> None:
        for part in ("prompt_tokens", "completion_tokens"):
            self.tokens[f"{name} {part}"] += line[part] or 0

    def add_answer(self, key: GradeKey, answer: Answer) -> None:
        """One that the server refused is an empty one: it is graded as such."""
        text = "" if answer.refusal else answer.text.rpartition("</think>")[2].strip()
        self._add(ANSWERS, key, {"answer": text}, answer)
        self.answers[key] = text

    def add_grade(self, key: GradeKey, answer: Answer) -> Grade:
        grade = read_grade(answer)
        self._add(GRADES, key, asdict(grade), answer)
        self.grades[key] = grade
        return grade

    def _add(self, name: str, key: GradeKey, own: dict[str, Any], answer: Answer) -> None:
        said = asdict(answer)
        del said["key"]
        line = {"question_id": key[0], "turn": key[1], **own, "reply": said.pop("text"), **said}
        self.append_line(name, line)
        self._count(name, line)


@dataclass(frozen=True)
class Mtbench:
    """The command's options. Of both configurations only the model, its sampling and its serving are used."""

    questions: QuestionSet
    model: RunConfig
    judge: RunConfig
    temperature: float | None = None
    """Of answers; None: by category, as MT-bench has it."""
    output: Path | None = None
    prompts: Path | None = None
    plain: bool = False
    prices: TokenPrices = field(default_factory=TokenPrices)
    """Of the judge."""


@dataclass(frozen=True)
class Graded:
    folder: Path
    scores: Sequence[Score]
    summary: dict[str, Any]
    stopped: str | None

    @property
    def exit_status(self) -> int:
        return 0 if self.stopped is None and not self.summary["left"] else 3


def run_mtbench(what: Mtbench, *, watch: Watch = unwatched) -> Graded:
    """Answer and grade every question, or go on with that. The model's server is ended before the judge's is started.

    Raises UserError for what the user can fix; infrastructure failures are recorded and named in what is returned.
    """
    refuse_scripted(what.model, "--model")
    refuse_scripted(what.judge, "--judge")
    prompt = load_grade_prompt(what.prompts)
    progress = AskingProgress("answers and grades", 4 * len(what.questions.questions))

    def set_status(text: str) -> None:
        progress.status = text

    with watch(progress):
        model, judge = prepare(what.model, {}, set_status), prepare(what.judge, {}, set_status)
        identity = {
            "kind": KIND,
            "questions": dict(what.questions.facts),
            "prompt": prompt.facts,
            "temperature": what.temperature,
            "model": {**model.identity, "sampling": sampling_identity(what.model)},
            "judge": {**judge.identity, "sampling": sampling_identity(what.judge)},
        }
        folder = what.output or _folder(what, identity)
        with MtbenchFolder(folder) as store:
            manifest = make_manifest(identity, what.model.display_name, plain=what.plain)
            manifest["judge_name"] = what.judge.display_name
            store.resume(manifest)
            progress.finished = len(store.answers) + len(store.grades)
            stopped = run_to_end(_everything(what, model, judge, prompt, store, manifest, progress))
            found = scores(
                what.questions.questions, {key: grade.rating for key, grade in store.grades.items()}
            )
            return Graded(folder, found, _write(what, store, found), stopped)


def _folder(what: Mtbench, identity: Mapping[str, Any]) -> Path:
    name = folder_name(what.model.display_name, "model")
    return Path("results") / f"mtbench-{name}-{digest_of(identity)[:8]}"


async def _everything(
    what: Mtbench,
    model: Prepared,
    judge: Prepared,
    prompt: GradePrompt,
    store: MtbenchFolder,
    manifest: dict[str, Any],
    progress: AskingProgress,
) -> str | None:
    """Returns why it stopped early, or None."""
    questions = what.questions.questions
    begun = False

    def begin(facts: Mapping[str, Any], who: str) -> None:
        nonlocal begun
        manifest["sessions"][-1][who] = dict(facts)
        if not begun:  # before the first answer; what the judge's server is, is known later
            store.begin(manifest)
            begun = True

    try:
        if any((question.id, turn) not in store.answers for question in questions for turn in (1, 2)):
            async with asked(what.model, model, store.folder, RequestForm(), progress, store.error) as asking:
                asking.answered = bool(store.answers)
                begin(asking.facts, "model")
                for turn in (1, 2):
                    await _answer(what, asking, store, progress, turn)
        left = [key for key in sorted(store.answers) if key not in store.grades]
        if left:
            form = RequestForm(response_format=None if what.plain else GRADE_FORMAT)
            async with asked(what.judge, judge, store.folder, form, progress, store.error) as asking:
                asking.answered = bool(store.grades)
                begin({**asking.facts, **await asking.settle_form()}, "judge")
                await _grade(what, asking, prompt, store, progress, left)
    except AbortedError as error:
        return str(error)
    return None


async def _answer(
    what: Mtbench, asking: AskedModel, store: MtbenchFolder, progress: AskingProgress, turn: int
) -> None:
    """Every question's answer of that turn; the second where the first is there."""
    mine: dict[str, TwoTurnQuestion] = {}
    for question in what.questions.questions:
        ready = turn == 1 or (question.id, 1) in store.answers
        if ready and (question.id, turn) not in store.answers:
            mine[f"{question.id}/{turn}"] = question

    def keep(answer: Answer) -> None:
        store.add_answer((mine[answer.key].id, turn), answer)
        progress.count(answer.completion_tokens)

    def messages(question: TwoTurnQuestion) -> Callable[[], list[Message]]:
        return partial(conversation, question, turn, store.answers)

    def form(question: TwoTurnQuestion) -> RequestForm:
        return RequestForm(temperature=question.temperature if what.temperature is None else what.temperature)

    asked_now = [Question(key, messages(question), form(question)) for key, question in mine.items()]
    await ask(asking, asked_now, keep)


def conversation(question: TwoTurnQuestion, turn: int, answers: Mapping[GradeKey, str]) -> list[Message]:
    """What the model is asked: the first question, or both with its own answer between."""
    first: Message = {"role": "user", "content": question.turns[0]}
    if turn == 1:
        return [first]
    said: Message = {"role": "assistant", "content": answers[question.id, 1]}
    return [first, said, {"role": "user", "content": question.turns[1]}]


async def _grade(
    what: Mtbench,
    asking: AskedModel,
    prompt: GradePrompt,
    store: MtbenchFolder,
    progress: AskingProgress,
    left: Sequence[GradeKey],
) -> None:
    by_id = {question.id: question for question in what.questions.questions}
    keys = {f"{name}/{turn}": (name, turn) for name, turn in left}

    def keep(answer: Answer) -> None:
        grade = store.add_grade(keys[answer.key], answer)
        progress.unread += grade.rating is None
        progress.count(answer.completion_tokens)

    def messages(key: GradeKey) -> list[Message]:
        name, turn = key
        answers = tuple(store.answers[name, number] for number in range(1, turn + 1))
        return prompt.messages(by_id[name], turn, answers)

    await ask(asking, [Question(text, partial(messages, key)) for text, key in keys.items()], keep)


def _write(what: Mtbench, store: MtbenchFolder, found: Sequence[Score]) -> dict[str, Any]:
    """`summary.json` anew."""
    unread = Counter(grade.note for grade in store.grades.values() if grade.rating is None)
    tokens = {
        who: {part: store.tokens[f"{name} {part}_tokens"] for part in ("prompt", "completion")}
        for who, name in (("model", ANSWERS), ("judge", GRADES))
    }
    summary = {
        "model": what.model.display_name,
        "judge": what.judge.display_name,
        "questions": dict(what.questions.facts),
        "scores": [asdict(score) for score in found],
        "left": 2 * len(what.questions.questions) - len(store.grades),
        "unread": unread.total(),
        "unread_because": dict(sorted(unread.items())),
        "tokens": tokens,
        "judge_cost": what.prices.cost(tokens["judge"]["prompt"], tokens["judge"]["completion"]),
        "published": [{"method": method, "mt_bench": value} for method, value in published_scores()],
    }
    write_atomically(store.folder / SUMMARY, json.dumps(summary, indent=2) + "\n")
    return summary
