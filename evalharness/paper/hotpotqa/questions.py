"""Make two-hop questions about a generated world, with their text and the oracle's actions.

Every question needs two pages. A bridge question mentions a thing, whose page names a second thing (first hop); the
answer is on the second thing's page (second hop). A comparison needs the same relation of two things.
"""

from __future__ import annotations

import random
import re
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from string import Formatter

from evalharness.paper.hotpotqa.actions import SHOWN_SENTENCES
from evalharness.paper.hotpotqa.score import normal
from evalharness.paper.hotpotqa.world import OCCUPATIONS, Encyclopedia, Thing, sentence_form

BRIDGES, COMPARISONS, CLOSED = 210, 50, 40

HOPS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "work": {
        "maker": ("the maker of {x}", "person"),
        "setting": ("the town in which {x} is set", "town"),
    },
    "event": {
        "town": ("the town in which {x} takes place", "town"),
        "founder": ("the person who started {x}", "person"),
    },
    "institution": {
        "town": ("the town in which {x} stands", "town"),
        "founder": ("the person to whose gift {x} goes back", "person"),
    },
    "person": {
        "birthplace": ("the town in which {x} was born", "town"),
        "school": ("the institution at which {x} studied", "institution"),
        "mentor": ("the person whose pupil {x} was", "person"),
    },
}
"""First hop. Sort of the mentioned thing -> relation -> (phrase for the related thing, sort of the related thing)."""

ASKED: Mapping[str, Mapping[str, str]] = {
    "person": {
        "birthplace": "In which town was {x} born?",
        "birth_year": "In which year was {x} born?",
        "school": "At which institution did {x} study?",
        "mentor": "Whose pupil was {x}?",
    },
    "town": {
        "river": "On which river does {x} lie?",
        "founded": "In which year was {x} founded?",
        "province": "In which province is {x}?",
        "inhabitants": "How many inhabitants had {x} at the last census?",
        "product": "For what product is {x} known?",
    },
    "institution": {
        "town": "In which town does {x} have its main building?",
        "founded": "In which year was {x} established?",
        "founder": "To whose gift does {x} go back?",
    },
}
"""Second hop. Sort of the related thing -> relation -> the question, in which {x} is the phrase of the first hop."""

COMPARED: Mapping[str, Mapping[str, tuple[str, bool]]] = {
    "person": {"birth_year": ("Who was born first, {x} or {y}?", False)},
    "town": {
        "founded": ("Which town was founded first, {x} or {y}?", False),
        "inhabitants": ("Which town had more inhabitants at the last census, {x} or {y}?", True),
    },
    "institution": {"founded": ("Which institution is older, {x} or {y}?", False)},
    "event": {"first": ("Which was held first, {x} or {y}?", False)},
    "work": {"year": ("Which was finished first, {x} or {y}?", False)},
}
"""Sort of both things -> relation -> (comparison question, whether the thing with the larger number is the answer)."""

SAME: Mapping[str, Mapping[str, str]] = {
    "person": {
        "birthplace": "Were {x} and {y} born in the same town?",
        "school": "Did {x} and {y} study at the same institution?",
    },
    "town": {
        "river": "Do {x} and {y} lie on the same river?",
        "province": "Are {x} and {y} in the same province?",
    },
    "work": {"setting": "Are {x} and {y} set in the same town?"},
}
"""Sort of both things -> relation -> yes/no question whether the relation has the same value for both things."""

CALLED = {"person": "the {kind} {name}", "work": "the {kind} {name}", "event": "the {name}",
          "institution": "the {name}", "town": "{name}"}  # fmt: skip
"""Sort of a thing -> the words for the thing in a question."""


@dataclass(frozen=True)
class Fact:
    """A fact about a thing that the agent must read to answer the question."""

    thing: Thing
    relation: str
    name: str
    """The thing's name in the question or on the previous page."""

    def plan(self) -> list[str]:
        """Return the oracle's actions that read the fact: a search, a second search if the name is ambiguous, and
        lookups if a search does not show the sentence. The keyword of a lookup is the longest fixed part of the
        sentence's template.
        """
        thing, at = self.thing, self.thing.shown[self.relation]
        actions = [f"search[{self.name}]"]
        if thing.title != thing.name:
            actions.append(f"search[{thing.title}]")
        if at >= SHOWN_SENTENCES:
            form = sentence_form(thing, self.relation)
            keyword = max((literal.strip(" .,") for literal, *_ in Formatter().parse(form)), key=len)
            matches = sum(keyword.lower() in sentence.lower() for sentence in thing.sentences[: at + 1])
            actions += [f"lookup[{keyword}]"] * matches
        return actions


@dataclass(frozen=True)
class Question:
    text: str
    answer: str
    kind: str
    """`bridge`, `comparison` or `yes/no`."""
    facts: tuple[Fact, Fact]
    """The facts that answer the question, in the order in which they are needed."""

    @property
    def supporting(self) -> tuple[str, ...]:
        """Titles of the pages that answer the question."""
        return tuple(fact.thing.title for fact in self.facts)

    @cached_property
    def plan(self) -> list[str]:
        """The oracle's actions. Every name in a search is in the question or in an earlier observation."""
        return [*(action for fact in self.facts for action in fact.plan()), f"finish[{self.answer}]"]


def mention_thing(thing: Thing, name: str | None = None) -> str:
    """Return the words for a thing in a question; `name` is an alternative name, such as a town's former one."""
    return CALLED[thing.sort].format(kind=thing.kind, name=name or thing.name)


def strip_occupation(value: str, relation: str) -> str:
    """Remove the occupation that pages write before a person's name: the answer is the name alone."""
    if relation in ("mentor", "founder", "maker"):
        for occupation in OCCUPATIONS:
            value = value.removeprefix(f"{occupation} ")
    return value


def make_questions(world: Encyclopedia, unlike: Container[str] = ()) -> list[Question]:
    """Return a world's bridge, comparison and yes/no questions, shuffled, without those whose text is in `unlike`."""
    stream = random.Random(f"hotpotqa/open/{world.seed}/questions")
    made = [
        *_take(BRIDGES, _make_bridges(world, stream), unlike),
        *_take(COMPARISONS, _make_comparisons(world, stream), unlike),
        *_take(CLOSED, _make_closed(world, stream), unlike),
    ]
    stream.shuffle(made)
    return made


def _take(count: int, candidates: Iterator[Question | None], unlike: Container[str]) -> list[Question]:
    questions: dict[str, Question] = {}
    for question in candidates:
        if question is not None and question.text not in unlike:
            questions.setdefault(question.text, question)
        if len(questions) == count:
            break
    return list(questions.values())


def _make_bridges(world: Encyclopedia, stream: random.Random) -> Iterator[Question | None]:
    """Yield bridge questions for each pair of hops in turn, so that all pairs are equally frequent."""
    chains = [
        (sort, first, second)
        for sort, hops in HOPS.items()
        for first, (_, target) in hops.items()
        for second in ASKED[target]
    ]
    while True:
        stream.shuffle(chains)
        for sort, first, second in chains:
            yield _make_bridge(world, stream.choice(world.things[sort]), first, second, stream)


def _make_bridge(
    world: Encyclopedia, start: Thing, first: str, second: str, stream: random.Random
) -> Question | None:
    if first not in start.links:
        return None
    middle = world.by_title[start.links[first]]
    if second not in middle.facts:
        return None
    phrase, _ = HOPS[start.sort][first]
    text = ASKED[middle.sort][second].format(x=phrase.format(x=mention_thing(start)))
    answer = strip_occupation(middle.facts[second], second)
    if _contains(answer, text) or _contains(middle.name, text) or start is middle:
        return None
    facts = Fact(start, first, start.name), Fact(middle, second, middle.name)
    return Question(text, answer, "bridge", facts)


def _contains(words: str, text: str) -> bool:
    return re.search(rf"\b{re.escape(normal(words))}\b", normal(text)) is not None


def _draw_pairs(
    world: Encyclopedia, stream: random.Random, table: Mapping[str, Mapping[str, object]]
) -> Iterator[tuple[Thing, Thing, str]]:
    """Yield two things of one sort, and a relation that both have. The relations of `table` take turns."""
    relations = [(sort, relation) for sort, listed in table.items() for relation in listed]
    while True:
        stream.shuffle(relations)
        for sort, relation in relations:
            one, other = stream.sample(world.things[sort], 2)
            if one.name != other.name and relation in one.facts and relation in other.facts:
                yield one, other, relation


def _make_fact(thing: Thing, relation: str, stream: random.Random) -> Fact:
    """Return the fact. A town with a former name is sometimes mentioned by that name."""
    former = thing.facts.get("former") if thing.sort == "town" and stream.random() < 0.3 else None
    return Fact(thing, relation, former or thing.name)


def _make_comparisons(world: Encyclopedia, stream: random.Random) -> Iterator[Question | None]:
    """Yield comparison questions. The right answer is alternately the first and the second thing in the question."""
    first_wins = True
    for one, other, relation in _draw_pairs(world, stream, COMPARED):
        form, larger = COMPARED[one.sort][relation]
        a, b = (_read_number(thing.facts[relation]) for thing in (one, other))
        if a == b:
            continue
        if ((a > b) == larger) != first_wins:
            one, other = other, one
        facts = Fact(one, relation, one.name), Fact(other, relation, other.name)
        text = form.format(x=mention_thing(one), y=mention_thing(other))
        yield Question(text, (one if first_wins else other).name, "comparison", facts)
        first_wins = not first_wins


def _make_closed(world: Encyclopedia, stream: random.Random) -> Iterator[Question | None]:
    """Yield questions whose answers are alternately `yes` and `no`. For a `yes`, the second thing is sampled from the
    things with the same value."""
    yes = True
    for one, other, relation in _draw_pairs(world, stream, SAME):
        if yes:
            same = [
                thing
                for thing in world.things[one.sort]
                if thing.facts.get(relation) == one.facts[relation] and thing.name != one.name
            ]
            if not same:
                continue
            other = stream.choice(same)
        elif one.facts[relation] == other.facts[relation]:
            continue
        facts = _make_fact(one, relation, stream), _make_fact(other, relation, stream)
        x, y = (mention_thing(fact.thing, fact.name) for fact in facts)
        text = SAME[one.sort][relation].format(x=x, y=y)
        yield Question(text, "yes" if yes else "no", "yes/no", facts)
        yes = not yes


def _read_number(value: str) -> int:
    return int(value.replace(",", ""))
