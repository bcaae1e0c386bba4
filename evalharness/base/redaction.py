"""Remove secrets from everything that this process writes: records, logs, the terminal.

Code that reads a secret from a variable, a flag or a URL calls `know`. Every function that writes calls `redact`:
`write_whole`, `LineFile.append`, `printable` (for all output on a terminal), `write_text` of the command line.
"""

from __future__ import annotations

import base64
import json
import re
import shlex
from typing import Any, TypeVar
from urllib.parse import quote, unquote

T = TypeVar("T")

HIDDEN = "(secret)"
_SHORTEST = 6
"""Minimum length of a secret. Shorter keys (`EMPTY`, `x`) are not removed, since they also occur in ordinary text."""
_known: dict[str, str] = {}
"""Each spelling of a secret -> its replacement."""
_URL = re.compile(r"//([^/?#@\s]+)@([^/?#\s]+)")
_NAME = re.compile(r"(?i)(?:^|[-_])(?:api-?key|key|token|secret|password|passwd)$")
_NAMED = re.compile(r"""[?&"']([\w-]+)(?:=|["']\s*:\s*["'])([^&#\s"']+)""")
"""Matches a name and value in the query of a URL, or in JSON."""
_SCHEME = re.compile(r"(?i)\b(?:bearer|basic)\s+([^\s'\"]+)")


def know(secret: str | None) -> None:
    """Remember `secret`, so that `redact` removes it from all later output."""
    if secret and len(secret) >= _SHORTEST:
        for spelling in {secret, quote(secret), quote(secret, safe=""), unquote(secret)}:
            _add(spelling, HIDDEN)


def know_url(url: str) -> None:
    """Remember the name and password of a URL as secrets, however short they are."""
    for match in _URL.finditer(url):
        owner, host = match.groups()
        _add(f"//{owner}@{host}", f"//{HIDDEN}@{host}")
        name, _, password = owner.partition(":")
        know(password or name)
        know(base64.b64encode(unquote(owner).encode()).decode())  # the spelling in a request's header


def know_words(command: str) -> None:
    """Remember the keys, tokens and passwords in a command line: `--api-key K`, `--token=K`, `API_KEY=K`, `Bearer K`,
    `http://host/v1?key=K`, `{"api_key": "K"}`."""
    know_url(command)
    for name, value in _NAMED.findall(command):
        if _NAME.search(name):
            know(value)
    for match in _SCHEME.finditer(command):
        know(match[1])
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    for word, following in zip(words, [*words[1:], ""], strict=False):
        name, equals, value = word.partition("=")
        if _NAME.search(name) and (equals or name.startswith("-")):
            know(value if equals else following)


def _add(spelling: str, replacement: str) -> None:
    for _ in range(3):  # also escaped as JSON, and as JSON inside JSON (a server's error in a record)
        _known[spelling] = replacement
        spelling = json.dumps(spelling)[1:-1]


def redact(text: str) -> str:
    """Return `text` without the secrets."""
    for secret in sorted(_known, key=len, reverse=True):
        if secret in text:
            text = text.replace(secret, _known[secret])
    return text


def redact_data(value: T) -> T:
    """Remove the secrets from JSON data, both texts and keys."""
    if not _known:
        return value
    cleaned: Any = json.loads(redact(json.dumps(value)))
    return cleaned  # type: ignore[no-any-return]
