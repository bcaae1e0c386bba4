"""AgentGym's other two ways of saying an action: a call as JSON, or as a line of Python.

Facts from agentenv/ at commit 3ef9235: envs/alfworld.py and envs/sciworld.py (`parse_function_calling`,
`parse_code_as_action`), controller/utils.py. The original evaluates the Python with all builtins. Here nothing is
evaluated: what is no single call of a listed function with constants as arguments is refused.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Mapping
from typing import Any

_WITHOUT_BLANK, _ARGUMENT_ALONE = "wait", "choose"
"""Functions whose words and argument are joined otherwise."""
_COMMENT = re.compile(r"#.*")
_LONGEST = 10_000
"""Characters of Python that are looked at: Python's own parser may fail on deeper nesting."""


class NoCallError(ValueError):
    """The original makes no action of this reply."""


def said_in_json(reply: str, functions: Mapping[str, Any], *, strict: bool) -> tuple[str, str]:
    """(thought, action). `strict`: more arguments than the function has are refused. Raises NoCallError."""
    try:
        call = json.loads("{" + reply.split("{", 1)[-1].rsplit("}", 1)[0] + "}", strict=False)
        thought, name, given = call["thought"], call["function_name"].strip(), call["arguments"]
        function = functions[name]
        names = function["arguments"]
        if len(given) > 1 and (not function["joint"] or (strict and len(given) > len(names))):
            raise NoCallError
        arguments = [given[names[place]] for place in range(min(len(given), 2))]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise NoCallError from None
    return f"{thought}", _words(name, function, arguments)


def said_in_code(reply: str, functions: Mapping[str, Any]) -> tuple[str, str]:
    """(thought, action). Raises NoCallError."""
    code = reply.strip()
    if code.startswith("```"):
        code = code.split("\n", 1)[-1]
    if code.endswith("```"):
        code = code.rsplit("\n", 1)[0]
    try:
        call = _parsed(code)
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            raise NoCallError
        name, function = call.func.id, functions[call.func.id]
        given = [ast.literal_eval(each) for each in call.args]
        named = {str(each.arg): ast.literal_eval(each.value) for each in call.keywords if each.arg}
        if len(named) < len(call.keywords):
            raise NoCallError
        arguments = _bound(function["parameters"], given, named)
    except (ValueError, SyntaxError, LookupError, TypeError, RecursionError, MemoryError):
        raise NoCallError from None
    return " ".join(each.strip() for each in _COMMENT.findall(code)), _words(name, function, arguments)


def _parsed(code: str) -> ast.expr:
    if len(code) > _LONGEST:
        raise NoCallError
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of odd escapes in a model's strings
        return ast.parse(code.lstrip(" \t"), mode="eval").body


def _bound(parameters: Mapping[str, bool], given: list[Any], named: Mapping[str, Any]) -> list[Any]:
    """Arguments in the order of the parameters (name -> whether it is needed), as a call of Python binds them; an
    optional one that is empty is left out."""
    names = list(parameters)
    if len(given) > len(names) or not named.keys() <= set(names[len(given) :]):
        raise NoCallError
    found = {**dict(zip(names, given, strict=False)), **named}
    if any(needed and name not in found for name, needed in parameters.items()):
        raise NoCallError
    return [found[name] for name in names if parameters[name] or found.get(name)]


def _words(name: str, function: Mapping[str, Any], arguments: list[Any]) -> str:
    words = function["words"]
    match arguments:
        case [only] if name == _ARGUMENT_ALONE:
            return f"{only}"
        case [only] if name == _WITHOUT_BLANK:
            return f"{words}{only}"
        case [only]:
            return f"{words} {only}"
        case [first, second]:
            return f"{words} {first} {function['joint']} {second}"
    return f"{words}"
