"""Parse a game's text grammar: the command of each action, and the observation after the action.

The format is TextWorld's `.twl2`: blocks `grammar :: JSON;` and `action NAME { template :: "..."; feedback :: "...";
grammar :: JSON; }`. The right-hand side of a rule has literal text, `#symbol#`, `{expression | query}`, and
`[{expression | query}]` for a list such as "a, b, and c". A query is a conjunction of typed predicates.

We evaluate expressions with a small interpreter (names, attributes of an entity, strings, `+`, `or`). TextWorld uses
Python's `eval`, with which a downloaded game could run code on the user's machine.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeAlias

from evalharness.envs.base import InvalidTaskError


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
"""(name, type) of a variable in a query; the grammar writes `r:receptacle`."""


@dataclass(frozen=True, slots=True)
class Term:
    """A predicate in a query. The predicate `not_p` matches atoms of `p` that an action has made false."""

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
    """`{inner | query}`: write the inner text for every assignment of entities that makes the query true."""

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
    """Name of an action in lower case -> its command template and its feedback."""


_TOKEN = re.compile(
    r'"""(?P<block>.*?)"""|"(?P<string>[^"]*)"|(?P<mark>::|[;{}])|(?P<name>[\w/-]+)|#[^\n]*|\s+', re.DOTALL
)


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
                fields[key[1]] = _field(tokens, "block" if key[1] == "grammar" else "string")
            if not {"template", "feedback"} <= set(fields):
                raise InvalidTaskError(f"grammar: action {name} needs a template and a feedback")
            # Remove leading white space as TextWorld's parser does; `help` of ALFWorld's later release has some.
            template, feedback = (_parts(fields[key].lstrip()) for key in ("template", "feedback"))
            actions[name.lower()] = ActionText(template, feedback)
            lines = fields.get("grammar", "{}").split("\n")
            rules.update(_json("\n".join(line for line in lines if not line.lstrip().startswith("#"))))
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
        token = _TOKEN.match(text, position)
        if token is None:
            raise InvalidTaskError(f"grammar: cannot read {text[position : position + 30]!r}")
        position = token.end()
        if token.lastgroup:
            yield token.lastgroup, token[token.lastgroup]


def _expect(tokens: Iterator[tuple[str, str]], kind: str, word: str | None = None) -> str:
    kind_read, text = next(tokens, ("end", ""))
    if kind_read != kind or (word is not None and text != word):
        raise InvalidTaskError(f"grammar: expected {word or kind}, found {text!r}")
    return text


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
        token = _PART.match(text, position)
        if token is None:
            # Stop at an invalid character as TextWorld's parser does: one rule of the published grammar has a wrong
            # brace.
            break
        position = token.end()
        if token["text"] is not None:
            parts.append(Literal(token["text"].replace("\\n", "\n")))
        elif token["symbol"] is not None:
            parts.append(Symbol(token["symbol"]))
        else:
            inner = Symbol(token["inner"]) if token["inner"] else _expression(token["expression"].strip())
            parts.append(Evaluated(inner, _query(token["query"] or ""), as_list=bool(token["open"])))
    return tuple(parts)


_TERM = re.compile(r"\s*([\w/-]+)\s*\(([^()]*)\)\s*")


@lru_cache(maxsize=1024)
def _query(text: str) -> tuple[Term, ...]:
    terms = []
    for piece in text.split("&") if text.strip() else ():
        token = _TERM.fullmatch(piece)
        if token is None:
            raise InvalidTaskError(f"grammar: cannot read the condition {text!r}")
        pairs = [argument.strip().partition(":") for argument in token[2].split(",") if argument.strip()]
        placeholders = tuple((name.strip(), (type_name or name).strip()) for name, _, type_name in pairs)
        terms.append(Term(token[1], placeholders))
    return tuple(terms)


@lru_cache(maxsize=1024)
def _expression(source: str) -> Expression:
    try:
        return Expression(source, _value(ast.parse(source, mode="eval").body))
    except SyntaxError:
        raise InvalidTaskError(f"grammar: cannot read the expression {source!r}") from None


_ATTRIBUTES = {"id", "type", "name", "definite", "indefinite"}


def _value(node: ast.expr) -> Callable[[Mapping[str, Entity]], Any]:
    match node:
        case ast.Constant(value=str(text)):
            return lambda variables: text
        case ast.Name(id=name):
            return lambda variables: variables[name]
        case ast.Attribute(value=ast.Name(id=name), attr=key) if key in _ATTRIBUTES:
            return lambda variables: getattr(variables[name], key)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            first, second = _value(left), _value(right)
            return lambda variables: str(first(variables)) + str(second(variables))
        case ast.BoolOp(op=ast.Or(), values=[left, right]):
            first, second = _value(left), _value(right)
            return lambda variables: first(variables) or second(variables)
    raise InvalidTaskError(f"grammar: the expression {ast.unparse(node)!r} is not supported")
