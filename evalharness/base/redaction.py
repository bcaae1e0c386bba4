"""Secrets that this process was given, and their removal from whatever it writes: records, logs, the terminal.

Who reads a secret from a variable, a flag or a URL calls `know`. Every writer of the package goes through `redact`:
`write_whole`, `LineFile.append`, `printable` (which all that is shown goes through), `write_text` of the command line.
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
"""Characters of a secret; a shorter one (`EMPTY`, `x`) would be found within other words."""
_known: dict[str, str] = {}
"""Secret, as it may be spelled -> what stands in its place."""
_URL = re.compile(r"//([^/?#@\s]+)@([^/?#\s]+)")
_NAME = re.compile(r"(?i)(?:^|[-_])(?:api-?key|key|token|secret|password|passwd)$")
_NAMED = re.compile(r"""[?&"']([\w-]+)(?:=|["']\s*:\s*["'])([^&#\s"']+)""")
"""A value in the query of a URL, or in JSON."""
_SCHEME = re.compile(r"(?i)\b(?:bearer|basic)\s+([^\s'\"]+)")


def know(secret: str | None) -> None:
    """From now on nothing that is written shows `secret`."""
    if secret and len(secret) >= _SHORTEST:
        for spelled in {secret, quote(secret), quote(secret, safe=""), unquote(secret)}:
            _add(spelled, HIDDEN)


def know_url(url: str) -> None:
    """The name and password of a URL, however short they are."""
    for match in _URL.finditer(url):
        owner, host = match.groups()
        _add(f"//{owner}@{host}", f"//{HIDDEN}@{host}")
        name, _, password = owner.partition(":")
        know(password or name)
        know(base64.b64encode(unquote(owner).encode()).decode())  # as the header of a request has it


def know_words(command: str) -> None:
    """What a command line names a key, a token or a password: `--api-key K`, `--token=K`, `API_KEY=K`, `Bearer K`,
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


def _add(spelled: str, shown: str) -> None:
    for _ in range(3):  # as JSON has it, and JSON within JSON: a server's error in a record
        _known[spelled] = shown
        spelled = json.dumps(spelled)[1:-1]


def redact(text: str) -> str:
    """`text` without the secrets."""
    for secret in sorted(_known, key=len, reverse=True):
        if secret in text:
            text = text.replace(secret, _known[secret])
    return text


def redacted(value: T) -> T:
    """The same for JSON data, texts and keys of it."""
    if not _known:
        return value
    found: Any = json.loads(redact(json.dumps(value)))
    return found  # type: ignore[no-any-return]
