"""Generate the texts of a game from its grammar and the current state: commands, feedback and lists."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from evalharness.envs.alfworld.grammar import (
    Entity,
    Expression,
    Grammar,
    Literal,
    Part,
    Placeholder,
    Symbol,
    Term,
)
from evalharness.envs.alfworld.query import FactBase
from evalharness.envs.base import InvalidTaskError


@dataclass(frozen=True, slots=True)
class Scene:
    """The state of a game, as the grammar's queries read it."""

    facts: FactBase
    denied: FactBase
    """Atoms that an action has made false and that no later action has made true."""
    entities: Mapping[str, Entity]
    is_a: Callable[[str, str], bool]


Filled = Mapping[Placeholder, str]
"""Placeholder -> id of its entity."""


def derive(grammar: Grammar, parts: Sequence[Part], filled: Filled, scene: Scene) -> str:
    """Return the text of `parts`. Expand a symbol with its first rule whose condition is true in the scene."""
    pieces = []
    for part in parts:
        if isinstance(part, Literal):
            pieces.append(part.text)
        elif isinstance(part, Symbol):
            pieces.append(_symbol(grammar, part, filled, scene))
        else:
            answers = assignments(part.query, filled, scene)
            items = [_inner(grammar, part.inner, bindings, scene) for bindings in answers]
            pieces.append(_listing(grammar, items, filled, scene) if part.as_list else "".join(items))
    return "".join(pieces)


def _symbol(grammar: Grammar, symbol: Symbol, filled: Filled, scene: Scene) -> str:
    for rule in grammar.rules.get(symbol.name, ()):
        if next(assignments(rule.condition, filled, scene), None) is not None:
            return derive(grammar, rule.parts, filled, scene)
    raise InvalidTaskError(f"grammar: no rule for #{symbol.name}#")


def _inner(grammar: Grammar, inner: Symbol | Expression, filled: Filled, scene: Scene) -> str:
    if isinstance(inner, Symbol):
        return _symbol(grammar, inner, filled, scene)
    try:
        return str(inner.value({name: scene.entities[value] for (name, _), value in filled.items()}))
    except KeyError as error:
        raise InvalidTaskError(f"grammar: {inner.source!r} mentions the unknown {error}") from None


def _listing(grammar: Grammar, items: Sequence[str], filled: Filled, scene: Scene) -> str:
    if not items:
        return _symbol(grammar, Symbol("list_empty"), filled, scene)
    if len(items) == 1:
        return items[0]
    separator = _symbol(grammar, Symbol("list_separator"), filled, scene)
    last = _symbol(grammar, Symbol("list_last_separator"), filled, scene)
    return separator.join(items[:-1]) + last + items[-1]


def assignments(query: Sequence[Term], filled: Filled, scene: Scene) -> Iterator[dict[Placeholder, str]]:
    """Yield every assignment of entities to the placeholders that makes the query true, in alphabetical order of facts.

    Two placeholders never get the same entity. As in TextWorld, placeholders with one name but two types are different.
    """
    if not query:
        yield dict(filled)
        return
    first, rest = query[0], query[1:]
    negated = first.predicate.startswith("not_")
    source = scene.denied if negated else scene.facts
    pattern = [filled.get(placeholder) for placeholder in first.placeholders]
    for arguments in sorted(source.match(first.predicate.removeprefix("not_"), pattern)):
        bindings = dict(filled)
        for placeholder, value in zip(first.placeholders, arguments, strict=True):
            if not scene.is_a(scene.entities[value].type, placeholder[1]):
                break
            if placeholder in bindings:
                if bindings[placeholder] != value:
                    break
            elif value in bindings.values():
                break
            bindings[placeholder] = value
        else:
            yield from assignments(rest, bindings, scene)
