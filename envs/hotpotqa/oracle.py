"""The oracle of the open suite: it reads the question as a person would, searches, looks up, and answers.

It knows how questions and pages are worded and nothing of the world: every name it searches for stood in the question
or in an answer of the page store.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from string import Formatter

from evalharness.envs.hotpotqa.questions import ASKED, CALLED, COMPARED, HOPS, SAME
from evalharness.envs.hotpotqa.world import MAKERS, OCCUPATIONS, SENTENCES

Act = Callable[[str], str]
"""Carries out an action, returns the observation."""

_MENTOR = "|".join(map(re.escape, OCCUPATIONS))
_KINDS = {"person": _MENTOR, "work": "|".join(MAKERS)}


@dataclass(frozen=True)
class Mention:
    """A thing as a text speaks of it."""

    sort: str
    name: str
    kind: str = ""


@dataclass(frozen=True)
class Bridge:
    start: Mention
    first: str
    target: str
    """The sort of what `first` leads to."""
    second: str


@dataclass(frozen=True)
class Pair:
    one: Mention
    other: Mention
    relation: str
    wins: Callable[[int, int], bool] | None
    """Whether the first one wins; None: asked is whether both are the same."""


@cache
def _pattern(form: str, kinds: str = r".+?") -> re.Pattern[str]:
    """The expression that reads what `form` words; each slot is a group, a slot that comes again the same text."""
    parts, seen = [], set[str]()
    for literal, slot, _, _ in Formatter().parse(form):
        parts.append(re.escape(literal))
        if slot is not None:
            inner = kinds if slot == "kind" else r".+?"
            parts.append(f"(?P={slot})" if slot in seen else f"(?P<{slot}>{inner})")
            seen.add(slot)
    return re.compile("".join(parts))


def mention(text: str, sort: str) -> Mention | None:
    match = _pattern(CALLED[sort], _KINDS.get(sort, ".+?")).fullmatch(text)
    return Mention(sort, match["name"], match.groupdict().get("kind") or "") if match else None


def understand(question: str) -> Bridge | Pair | None:
    """What is asked, or None for a question of another make."""
    return next(_readings(question), None)


def _readings(question: str) -> Iterator[Bridge | Pair]:
    for target, asked in ASKED.items():
        for second, form in asked.items():
            if match := _pattern(form).fullmatch(question):
                yield from _bridges(match["x"], target, second)
    for sort, compared in COMPARED.items():
        for relation, (form, larger) in compared.items():
            yield from _pairs(
                question, form, sort, relation, (lambda a, b: a > b) if larger else (lambda a, b: a < b)
            )
    for sort, same in SAME.items():
        for relation, form in same.items():
            yield from _pairs(question, form, sort, relation, None)


def _bridges(phrase: str, target: str, second: str) -> Iterator[Bridge]:
    for sort, hops in HOPS.items():
        for first, (form, leads_to) in hops.items():
            match = _pattern(form).fullmatch(phrase) if leads_to == target else None
            if match and (start := mention(match["x"], sort)):
                yield Bridge(start, first, target, second)


def _pairs(
    question: str, form: str, sort: str, relation: str, wins: Callable[[int, int], bool] | None
) -> Iterator[Pair]:
    if match := _pattern(form).fullmatch(question):
        one, other = mention(match["x"], sort), mention(match["y"], sort)
        if one and other:
            yield Pair(one, other, relation, wins)


def solve(question: str, act: Act) -> str | None:
    """The answer, found with searches and lookups through `act`; None where the oracle is at a loss."""
    asked = understand(question)
    if isinstance(asked, Bridge):
        value = _read(asked.start, asked.first, act)
        if value is None:
            return None
        value = _read(_as_mention(value, asked.target), asked.second, act)
        return None if value is None else _as_mention(value, "person").name
    if asked is None:
        return None
    one, other = (_read(each, asked.relation, act) for each in (asked.one, asked.other))
    if one is None or other is None:
        return None
    if asked.wins is None:
        return "yes" if one == other else "no"
    a, b = (int(value.replace(",", "")) for value in (one, other))
    return asked.one.name if asked.wins(a, b) else asked.other.name


def _as_mention(value: str, sort: str) -> Mention:
    """What a page's fact speaks of: people come with their occupation."""
    match = re.fullmatch(rf"({_MENTOR}) (.+)", value) if sort == "person" else None
    return Mention(sort, match[2], match[1]) if match else Mention(sort, value)


def _read(thing: Mention, relation: str, act: Act) -> str | None:
    """A fact of a thing, from its page."""
    seen = act(f"search[{thing.name}]")
    if seen.startswith("Could not find "):
        title = f"{thing.name} ({thing.kind})"
        if title not in _similar(seen):
            return None
        seen = act(f"search[{title}]")
    form = SENTENCES[thing.sort][relation]
    if thing.kind:
        form = form.replace("{kind}", thing.kind).replace("{made}", MAKERS.get(thing.kind, ("", "{made}"))[1])
    if match := _pattern(form).search(seen):
        return match["value"]
    keyword = max((literal.strip(" .,") for literal, _, _, _ in Formatter().parse(form)), key=len)
    while True:
        seen = act(f"lookup[{keyword}]")
        if not seen.startswith("(Result "):
            return None
        if match := _pattern(form).search(seen):
            return match["value"]


def _similar(observation: str) -> list[str]:
    try:
        listed = ast.literal_eval(observation.partition(". Similar: ")[2].rstrip("."))
    except (SyntaxError, ValueError):
        return []
    return [title for title in listed if isinstance(title, str)]
