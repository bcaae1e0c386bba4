"""The open suite's tasks, generated from a seed: questions about a generated world."""

from __future__ import annotations

from collections.abc import Iterator

from evalharness.envs.base import Task
from evalharness.envs.frozen import FROZEN_SEED
from evalharness.envs.hotpotqa.questions import make_questions
from evalharness.envs.hotpotqa.world import make_encyclopedia

FAMILY = "hotpotqa"
HARD_TURNS = 5
"""Turns of the oracle from which an open task counts as hard: a name that is shared, or a fact further down."""


def generate(suite_seed: int) -> Iterator[Task]:
    """All tasks in order. Another suite seed than 0 has no question of seed 0."""
    world = make_encyclopedia(suite_seed)
    asked = set[str]()
    if suite_seed != FROZEN_SEED:
        asked = {question.text for question in make_questions(make_encyclopedia(FROZEN_SEED))}
    for index, question in enumerate(make_questions(world, asked)):
        yield Task(
            id=f"{FAMILY}/open/{index:03d}",
            family=FAMILY,
            suite="open",
            index=index,
            goal=question.text,
            difficulty="hard" if question.turns >= HARD_TURNS else "easy",
            kind=question.kind,
            labels="simulator",
            subgoals=pages_to_open(question.supporting),
            payload={
                "answer": question.answer,
                "supporting": list(question.supporting),
                "world": suite_seed,
                "pages_sha256": world.sha256,
            },
        )


def pages_to_open(supporting: tuple[str, ...]) -> tuple[str, ...]:
    """The subgoals of a question."""
    return tuple(f"open the page {title}" for title in supporting)
