"""HotpotQA's open suite: a generated world whose questions are answerable by reading, and not by guessing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from evalharness.envs import specs
from evalharness.envs.base import InvalidTaskError, Task
from evalharness.paper.hotpotqa.actions import SHOWN_SENTENCES, parse
from evalharness.paper.hotpotqa.generator import generate, make_suite_questions
from evalharness.paper.hotpotqa.questions import BRIDGES, CLOSED, COMPARISONS, Question, make_questions
from evalharness.paper.hotpotqa.score import exact_match, normal
from evalharness.paper.hotpotqa.world import make_encyclopedia
from evalharness.suites.open import check_frozen, plan_hash, prove, read_frozen_proofs

SPEC = specs()["hotpotqa"]
SEEDS = (0, 1, 7)


def guesses(question: Question) -> tuple[str, ...]:
    """What somebody who may not look anything up can choose from: both alternatives, yes and no, or nothing."""
    match question.kind:
        case "comparison":
            return tuple(fact.name for fact in question.facts)
        case "yes/no":
            return ("yes", "no")
    return ()


@cache
def suite(seed: int) -> list[Task]:
    return list(generate(seed))


def test_the_tasks_are_the_frozen_ones_with_their_proofs(clean_home: Path) -> None:
    tasks = SPEC.suites.load_tasks("open", None, 0)
    assert [task.id for task in tasks] == [f"hotpotqa/open/{i:03d}" for i in range(300)]
    check_frozen(SPEC, tasks)
    known = read_frozen_proofs()
    environment = SPEC.make(None)
    for task in tasks:
        proof = prove(environment, task, SPEC.own.max_turns)
        assert proof == known[task.id].proof
        assert 3 <= proof.plan_turns <= 7


@pytest.mark.parametrize("seed", SEEDS)
def test_the_oracle_answers_every_question_by_reading_alone(seed: int, clean_home: Path) -> None:
    """Each name that it searches stood in the question or in what it was shown, in title or text; so did the answer,
    where that is not one of two alternatives. It opens both supporting pages, within 7 turns."""
    environment = SPEC.make(None)
    for task in suite(seed):
        environment.reset(options={"task": task})
        plan = environment.oracle()
        assert plan_hash(plan) == plan_hash(environment.oracle())
        seen = task.goal
        for action in plan:
            what, argument = parse(action) or ("", "")
            if what == "search" or (what == "finish" and task.kind == "bridge"):
                assert argument in seen, (task.goal, action)
            observation, _, _, _, info = environment.step(action)
            seen += "\n" + observation
        assert info["success"]
        assert info["figures"] == {"supporting_facts": 1.0, "joint": 1.0}
        assert 3 <= len(plan) <= SPEC.own.max_turns


@pytest.mark.parametrize("seed", SEEDS)
def test_the_answer_does_not_stand_in_the_question(seed: int) -> None:
    """Of a comparison it has to be one of the two that are named, each as often; yes is as often right as no."""
    tasks, questions = suite(seed), make_suite_questions(seed)
    kinds = Counter(task.kind for task in tasks)
    assert kinds == {"bridge": BRIDGES, "comparison": COMPARISONS, "yes/no": CLOSED}
    assert len({task.goal for task in tasks}) == len(tasks)
    first = 0
    for task, question in zip(tasks, questions, strict=True):
        answer = task.payload["answer"]
        if task.kind == "bridge":
            assert f" {normal(answer)} " not in f" {normal(task.goal)} "
            assert task.subgoals[1].removeprefix("open the page ").split(" (")[0] not in task.goal
        elif task.kind == "comparison":
            first += guesses(question)[0] == answer
            assert answer in guesses(question)
            assert all(name in task.goal for name in guesses(question))
    assert first == COMPARISONS // 2
    assert Counter(t.payload["answer"] for t in tasks if t.kind == "yes/no") == {"yes": 20, "no": 20}


def test_a_guesser_who_knows_the_commonest_answers_is_right_on_less_than_one_in_four() -> None:
    """Guessing one of two alternatives, and for a bridge the answer that is most common among questions so worded."""
    wordings: dict[str, Counter[str]] = {}
    for question in make_suite_questions(0):
        if question.kind == "bridge":
            asked = question.facts[1]
            wordings.setdefault(asked.relation + asked.thing.sort, Counter())[question.answer] += 1
    bridges = sum(found.most_common(1)[0][1] for found in wordings.values())
    pairs = sum(exact_match(guesses(q)[0], q.answer) for q in make_suite_questions(0) if q.kind != "bridge")
    assert (pairs, bridges) == (45, 22)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_world_has_namesakes_and_facts_further_down(seed: int) -> None:
    world = make_encyclopedia(seed)
    assert 3_000 <= len(world.by_title) <= 4_000
    names = Counter(thing.name for sort in ("person", "work") for thing in world.things[sort])
    assert sum(count for count in names.values() if count > 1) > 300
    assert max(names.values()) <= 3
    below = [q for q in make_questions(world)
             if any(i >= SHOWN_SENTENCES for t in q.supporting for i in world.by_title[t].shown.values())]  # fmt: skip
    assert len(below) > 100
    assert {task.difficulty for task in suite(seed)} == {"easy", "hard"}


def test_worlds_of_other_seeds_have_other_facts() -> None:
    """Some names come again, being put together from the same syllables; what is said of them is another thing."""
    titles = [set(make_encyclopedia(seed).by_title) for seed in SEEDS]
    assert len(titles[0] & titles[1]) < len(titles[0]) / 8
    answers = [{(task.goal, task.payload["answer"]) for task in suite(seed)} for seed in SEEDS]
    assert not answers[0] & answers[1]
    assert not answers[0] & answers[2]


def test_a_world_is_the_same_in_another_process() -> None:
    code = (
        "from evalharness.paper.hotpotqa.generator import generate; "
        "print([task.content_hash for task in generate(3)][-1])"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True,
            check=True, cwd=Path(__file__).parent.parent,
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(found) == 1


def test_the_page_store_is_kept_in_the_cache_and_made_again_when_damaged(clean_home: Path) -> None:
    task = suite(0)[0]
    environment = SPEC.make(None)
    environment.reset(options={"task": task})
    [kept] = (clean_home / "evalharness" / "cache" / "hotpotqa").iterdir()
    assert kept.name == f"{task.payload['pages_sha256']}.sqlite"
    kept.write_bytes(b"not a database")
    environment.reset(options={"task": task})
    assert environment.oracle()
    assert [path.name for path in kept.parent.iterdir()] == [kept.name]


def test_without_a_cache_folder_the_store_goes_with_the_process(
    clean_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (clean_home / "file").write_text("")
    monkeypatch.setenv("EVALHARNESS_HOME", str(clean_home / "file"))
    environment = SPEC.make(None)
    environment.reset(options={"task": suite(0)[0]})
    assert environment.oracle()


def test_a_task_of_another_world_is_refused(clean_home: Path) -> None:
    task = suite(0)[0].to_json()
    for sha256 in ("0" * 64, "../../x", None):
        bad = Task.from_json({**task, "payload": {**task["payload"], "pages_sha256": sha256}})
        with pytest.raises(InvalidTaskError):
            SPEC.make(None).reset(options={"task": bad})
