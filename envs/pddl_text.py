"""Parse PDDL text to nested lists of words, for ALFWorld and the PDDL worlds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from evalharness.envs.task import InvalidTaskError

Tree: TypeAlias = "str | list[Tree]"

ROOT_TYPE = "object"

# White space and parentheses separate tokens, as in Fast Downward. This matters: ALFWorld's domain has `(?l - location,
# ?r - receptacle)`, so the first type is `location,`. No object has that type, so an object that is not carried can
# never be examined. A variable starts a new token: the published barman domain has "?l - level?l1 - level".
_TOKEN = re.compile(r"[()]|\?[^\s()?]+|[^\s()?]+")
_DEEPEST = 50


class PddlError(InvalidTaskError):
    """The text is not PDDL, or it uses features that the family's engine does not support."""


def sections(text: str, kind: str) -> tuple[str, list[tuple[str, list[Tree]]]]:
    """Parse `(define (kind name) (:types ...) ...)`. Return (name, [(":types", [...]), ...]) in lower case."""
    tree = as_list(_read(text), "file")
    if len(tree) < 2 or tree[0] != "define":
        raise PddlError("PDDL: the file does not start with (define ...)")
    title = as_list(tree[1], "title")
    if len(title) != 2 or title[0] != kind:
        raise PddlError(f"PDDL: the file does not define a {kind}")
    parts = []
    for section in tree[2:]:
        head, *body = as_list(section, "section")
        parts.append((as_word(head, "section"), body))
    return as_word(title[1], "name"), parts


def _read(text: str) -> Tree:
    tokens = iter(_TOKEN.findall(re.sub(r";[^\n]*", "", text).lower()))
    if next(tokens, None) != "(":
        raise PddlError("PDDL: the file does not start with (")
    tree = _read_list(tokens, 1)
    if next(tokens, None) is not None:
        raise PddlError("PDDL: text after the closing )")
    return tree


def _read_list(tokens: Iterator[str], depth: int) -> list[Tree]:
    if depth > _DEEPEST:
        raise PddlError(f"PDDL: nested more than {_DEEPEST} deep")
    items: list[Tree] = []
    for token in tokens:
        if token == ")":
            return items
        items.append(_read_list(tokens, depth + 1) if token == "(" else token)
    raise PddlError("PDDL: a ( is never closed")


def as_list(tree: Tree, what: str) -> list[Tree]:
    if isinstance(tree, str) or not tree:
        raise PddlError(f"PDDL: {what}: expected a non-empty list, got {tree!r}")
    return tree


def as_word(tree: Tree, what: str) -> str:
    if not isinstance(tree, str):
        raise PddlError(f"PDDL: {what}: expected a word, got a list")
    return tree


def as_atom(tree: Tree) -> tuple[str, ...]:
    """Return a predicate name and its arguments, for example `("on", "b1", "b2")`."""
    return tuple(as_word(word, "atom") for word in as_list(tree, "atom"))


def parse_typed(items: Sequence[Tree], what: str) -> dict[str, str]:
    """Map `a b - kind c` to {"a": "kind", "b": "kind", "c": "object"}. A dash may have no names before it."""
    kinds: dict[str, str] = {}
    pending: list[str] = []
    words = iter([as_word(item, what) for item in items])
    for word in words:
        if word != "-":
            pending.append(word)
            continue
        kind = next(words, None)
        if kind is None:
            raise PddlError(f"PDDL: {what}: a dash without a type")
        kinds.update(dict.fromkeys(pending, kind))
        pending = []
    kinds.update(dict.fromkeys(pending, ROOT_TYPE))
    return kinds
