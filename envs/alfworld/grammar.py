"""A game's text grammar: which command an action answers to and what the world says afterwards.

The format is TextWorld's `.twl2`: blocks `action NAME { template :: "..."; feedback :: "..."; grammar :: JSON; }`
and `grammar :: JSON;`. A right-hand side mixes literal text with `#symbol#`, `{expression | query}` and
`[{expression | query}]` (a list in words). A query is a conjunction of typed predicates.

Expressions in game files are read by a small interpreter (names, the attributes of an entity, strings, `+`, `or`,
`and`). TextWorld hands them to Python's `eval`; a downloaded game must not run code here.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeAlias

from envs.alfworld.facts import FactBase
from envs.base import InvalidTaskError


@dataclass(frozen=True, slots=True)
class Entity:
    id: str
    type: str
    name: str
    definite: str = "the"
    indefinite: str = "a"

    def __str__(self) -> str:
        return self.name


Placeholder: TypeAlias = "tuple[str, str]"
"""(name, type), as in `r:receptacle`."""


@dataclass(frozen=True, slots=True)
class Term:
    """One predicate of a query; `not_p` asks for atoms of `p` that an action has made false."""

    predicate: str
    placeholders: tuple[Placeholder, ...]


@dataclass(frozen=True, slots=True)
class Literal:
    text: str


@dataclass(frozen=True, slots=True)
class Symbol:
    name: str


@dataclass(frozen=True, slots=True)
class Evaluated:
    """`{inner | query}`: the inner text once for every answer of the query."""

    inner: Symbol | Expression
    query: tuple[Term, ...]
    as_list: bool


@dataclass(frozen=True, slots=True)
class Expression:
    source: str
    value: Callable[[Mapping[str, Entity]], Any] = field(compare=False)


Part: TypeAlias = Literal | Symbol | Evaluated


@dataclass(frozen=True, slots=True)
class Rule:
    condition: tuple[Term, ...]
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class ActionText:
    template: tuple[Part, ...]
    feedback: tuple[Part, ...]


@dataclass(frozen=True)
class Grammar:
    rules: Mapping[str, tuple[Rule, ...]]
    actions: Mapping[str, ActionText]
    """By action name in lower case."""


@dataclass(frozen=True, slots=True)
class Scene:
    """The world as the grammar sees it."""

    facts: FactBase
    denied: FactBase
    """Atoms that an action has made false (and none has made true since)."""
    entities: Mapping[str, Entity]
    is_a: Callable[[str, str], bool]
    """(type, wanted type)"""


@dataclass(frozen=True, slots=True)
class Context:
    mapping: Mapping[Placeholder, str]
    variables: Mapping[str, Entity]


# ---- reading -------------------------------------------------------------------------------------------------

_TOKEN = re.compile(r'"""(?P<block>.*?)"""|"(?P<string>[^"]*)"|(?P<mark>::|[;{}])|(?P<name>[\w/-]+)|#[^\n]*|\s+', re.S)


@lru_cache(maxsize=8)
def parse_grammar(text: str) -> Grammar:
    tokens = _tokens(text)
    rules: dict[str, Any] = {}
    actions: dict[str, ActionText] = {}
    for kind, word in tokens:
        if (kind, word) == ("name", "grammar"):
            rules.update(_json(_field(tokens, "block")))
        elif (kind, word) == ("name", "action"):
            name = _expect(tokens, "name")
            _expect(tokens, "mark", "{")
            fields: dict[str, str] = {}
            while (key := next(tokens, ("end", ""))) != ("mark", "}"):
                wanted = "block" if key[1] in ("grammar", "pddl") else "string"
                fields[key[1]] = _field(tokens, wanted)
            if not {"template", "feedback"} <= set(fields):
                raise InvalidTaskError(f"grammar: action {name} needs a template and a feedback")
            actions[name.lower()] = ActionText(_parts(fields["template"]), _parts(fields["feedback"]))
            block = "\n".join(li for li in fields.get("grammar", "{}").split("\n") if not li.lstrip().startswith("#"))
            rules.update(_json(block))
        else:
            raise InvalidTaskError(f"grammar: unexpected {word!r}")
    compiled = {
        name: tuple(Rule(_query(option.get("condition", "")), _parts(option["rhs"])) for option in options)
        for name, options in rules.items()
    }
    return Grammar(compiled, actions)


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    position = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            raise InvalidTaskError(f"grammar: cannot read {text[position : position + 30]!r}")
        position = found.end()
        if found.lastgroup:
            yield found.lastgroup, found[found.lastgroup]


def _expect(tokens: Iterator[tuple[str, str]], kind: str, word: str | None = None) -> str:
    found_kind, found = next(tokens, ("end", ""))
    if found_kind != kind or (word is not None and found != word):
        raise InvalidTaskError(f"grammar: expected {word or kind}, found {found!r}")
    return found


def _field(tokens: Iterator[tuple[str, str]], kind: str) -> str:
    _expect(tokens, "mark", "::")
    value = _expect(tokens, kind)
    _expect(tokens, "mark", ";")
    return value


def _json(text: str) -> dict[str, Any]:
    try:
        rules = json.loads(text)
    except ValueError as error:
        raise InvalidTaskError(f"grammar: {error}") from None
    if not isinstance(rules, dict):
        raise InvalidTaskError("grammar: expected a JSON object of rules")
    return rules


_PART = re.compile(
    r"(?P<open>\[)?\{(?:#(?P<inner>[^#{}]+)#|(?P<expression>[^|\[\]{}\n<>]+?))\s*"
    r"(?:\|(?P<query>[^;|{}\n\[\]#]+))?\}(?(open)\])"
    r"|#(?P<symbol>[^#]+)#"
    r"|(?P<text>[^;|\"<>\[\]#{}]+)"
)


@lru_cache(maxsize=1024)
def _parts(text: str) -> tuple[Part, ...]:
    parts: list[Part] = []
    position = 0
    while position < len(text):
        found = _PART.match(text, position)
        if found is None:
            # TextWorld's parser ends a text where it cannot read on, and a rule of the published grammar has a stray
            # brace at its end.
            break
        position = found.end()
        if found["text"] is not None:
            parts.append(Literal(found["text"].replace("\\n", "\n")))
        elif found["symbol"] is not None:
            parts.append(Symbol(found["symbol"]))
        else:
            inner = Symbol(found["inner"]) if found["inner"] else _expression(found["expression"].strip())
            parts.append(Evaluated(inner, _query(found["query"] or ""), as_list=bool(found["open"])))
    return tuple(parts)


_TERM = re.compile(r"\s*([\w/-]+)\s*\(([^()]*)\)\s*")


@lru_cache(maxsize=1024)
def _query(text: str) -> tuple[Term, ...]:
    terms = []
    for piece in text.split("&") if text.strip() else ():
        found = _TERM.fullmatch(piece)
        if found is None:
            raise InvalidTaskError(f"grammar: cannot read the condition {text!r}")
        pairs = [argument.strip().partition(":") for argument in found[2].split(",") if argument.strip()]
        terms.append(Term(found[1], tuple((name.strip(), (type_ or name).strip()) for name, _, type_ in pairs)))
    return tuple(terms)


@lru_cache(maxsize=1024)
def _expression(source: str) -> Expression:
    try:
        return Expression(source, _value(ast.parse(source, mode="eval").body))
    except SyntaxError:
        raise InvalidTaskError(f"grammar: cannot read the expression {source!r}") from None


def _value(node: ast.expr) -> Callable[[Mapping[str, Entity]], Any]:
    match node:
        case ast.Constant(value=str(text)):
            return lambda variables: text
        case ast.Name(id=name):
            return lambda variables: variables[name]
        case ast.Attribute(value=ast.Name(id=name), attr=("id" | "type" | "name" | "definite" | "indefinite") as key):
            return lambda variables: getattr(variables[name], key)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            first, second = _value(left), _value(right)
            return lambda variables: str(first(variables)) + str(second(variables))
        case ast.BoolOp(op=operator, values=[left, right]):
            first, second = _value(left), _value(right)
            if isinstance(operator, ast.Or):
                return lambda variables: first(variables) or second(variables)
            return lambda variables: first(variables) and second(variables)
    raise InvalidTaskError(f"grammar: the expression {ast.unparse(node)!r} is not supported")


# ---- writing -------------------------------------------------------------------------------------------------


def derive(grammar: Grammar, parts: Sequence[Part], context: Context, scene: Scene) -> str:
    """The text of `parts`. Of a symbol's rules the first whose condition has an answer is used."""
    pieces = []
    for part in parts:
        if isinstance(part, Literal):
            pieces.append(part.text)
        elif isinstance(part, Symbol):
            pieces.append(_symbol(grammar, part, context, scene))
        else:
            contexts = _answers(part.query, context, scene) if part.query else [context]
            items = [_inner(grammar, part.inner, found, scene) for found in contexts]
            pieces.append(_listing(grammar, items, context, scene) if part.as_list else "".join(items))
    return "".join(pieces)


def _symbol(grammar: Grammar, symbol: Symbol, context: Context, scene: Scene) -> str:
    for rule in grammar.rules.get(symbol.name, ()):
        if not rule.condition or next(assignments(rule.condition, context.mapping, scene), None) is not None:
            return derive(grammar, rule.parts, context, scene)
    raise InvalidTaskError(f"grammar: no rule for #{symbol.name}#")


def _inner(grammar: Grammar, inner: Symbol | Expression, context: Context, scene: Scene) -> str:
    if isinstance(inner, Symbol):
        return _symbol(grammar, inner, context, scene)
    try:
        return str(inner.value(context.variables))
    except KeyError as error:
        raise InvalidTaskError(f"grammar: {inner.source!r} mentions {error}, which is not known here") from None


def _listing(grammar: Grammar, items: Sequence[str], context: Context, scene: Scene) -> str:
    if not items:
        return _symbol(grammar, Symbol("list_empty"), context, scene)
    if len(items) == 1:
        return items[0]
    separator = _symbol(grammar, Symbol("list_separator"), context, scene)
    last = _symbol(grammar, Symbol("list_last_separator"), context, scene)
    return separator.join(items[:-1]) + last + items[-1]


def _answers(query: tuple[Term, ...], context: Context, scene: Scene) -> list[Context]:
    return [
        Context(found, {**context.variables, **{name: scene.entities[value] for (name, _), value in found.items()}})
        for found in assignments(query, context.mapping, scene)
    ]


def assignments(
    query: Sequence[Term], mapping: Mapping[Placeholder, str], scene: Scene
) -> Iterator[dict[Placeholder, str]]:
    """Every way to fill a query's placeholders, facts in alphabetical order, no entity under two placeholders.

    A placeholder is its name and its type: one of another type than in `mapping` is a new one. (TextWorld's rule.)
    """
    if not query:
        yield dict(mapping)
        return
    first, rest = query[0], query[1:]
    negated = first.predicate.startswith("not_")
    source = scene.denied if negated else scene.facts
    pattern = [mapping.get(placeholder) for placeholder in first.placeholders]
    taken = set(mapping.values())
    for arguments in sorted(source.match(first.predicate.removeprefix("not_"), pattern)):
        found = dict(mapping)
        for placeholder, value in zip(first.placeholders, arguments, strict=True):
            if not scene.is_a(scene.entities[value].type, placeholder[1]):
                break
            if placeholder in mapping:
                continue
            if found.get(placeholder, value) != value or (placeholder not in found and value in found.values()):
                break
            if value in taken:
                break
            found[placeholder] = value
        else:
            yield from assignments(rest, found, scene)
