"""Read other people's files within limits: only plain files, and only JSON values that are safe to use.

Another person's folder can contain any file. Reading a pipe or a device may never end; `Infinity` and numbers of 400
digits break computations; a thousand nested brackets crash later steps. The environments also use this module, so it
imports nothing from this package. `evalharness.base.yaml_lines` reads YAML.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import math
import os
import re
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

LARGEST = 256 << 30
"""Maximum bytes of a file that is read in pieces."""
LARGEST_WHOLE = 1 << 30
"""Maximum bytes of a file that is read as a whole."""
LONGEST_LINE = 256 << 20
DEEPEST = 100
"""Maximum levels of nested lists and objects. Python's own limit is a few hundred, and varies."""

_LONG_NUMBER = re.compile(r"[0-9]{309}")
_ESCAPED_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_HALF = re.compile("[\ud800-\udfff]")


def open_file(path: Path, most: int = LARGEST) -> io.BufferedReader:
    """Open `path` for reading. Raises OSError, also if `path` is no plain file or has more than `most` bytes."""
    # O_NONBLOCK: if `path` is a pipe, opening it would otherwise wait for a writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is not a plain file", str(path))
        if status.st_size > most:
            raise OSError(errno.EFBIG, f"it is larger than {_size(most)}", str(path))
    except OSError:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "rb")


def _size(count: int) -> str:
    return f"{count >> 30} GiB" if count >= 1 << 30 else f"{count >> 20} MiB"


def read_bytes(path: Path, most: int = LARGEST_WHOLE) -> bytes:
    """Read a file's bytes. Raises OSError as `open_file` does."""
    with open_file(path, most) as file:
        return file.read()


def sha256_of(path: Path) -> str:
    """Return the hash of the file's content in hexadecimal. Raises OSError as `open_file` does."""
    with open_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_text(path: Path, encoding: str = "utf-8", most: int = LARGEST_WHOLE) -> str:
    """Read a file's text. Raises OSError as `open_file` does, and UnicodeDecodeError."""
    with io.TextIOWrapper(open_file(path, most), encoding=encoding) as file:
        return file.read()


def lines_of(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines of a file with their ends. Raises OSError for a line too long for memory."""
    while line := file.readline(LONGEST_LINE + 1):
        if len(line) > LONGEST_LINE:
            raise OSError(errno.EFBIG, f"a line is longer than {_size(LONGEST_LINE)}")
        yield line


def no_constant(name: str) -> Any:
    """Raise ValueError for NaN and Infinity, which Python's decoder accepts but JSON does not have."""
    raise ValueError(f"{name[:20]} is {'too large a number' if name[-1:].isdigit() else 'not JSON'}")


def parse_json(raw: bytes | str, deepest: int = DEEPEST, odd: Callable[[str], Any] = no_constant) -> Any:
    """Return the value of a JSON text. Replace unpaired surrogates, which cannot be encoded (`whole_characters`). Call
    `odd` to convert `NaN`, `Infinity` and numbers too large for a float; by default these raise ValueError, like
    invalid JSON and values nested deeper than `deepest`."""

    def finite(text: str) -> Any:
        number = float(text)
        return odd(text) if math.isinf(number) else number

    def whole(text: str) -> Any:
        return odd(text) if math.isinf(float(text)) else int(text)

    text = raw if isinstance(raw, str) else raw.decode("utf-8-sig")
    try:
        value = json.loads(
            text,
            parse_constant=odd,
            parse_float=finite,
            parse_int=whole if _LONG_NUMBER.search(text) else None,
        )
    except RecursionError:
        raise ValueError("nested too deep") from None
    if text.count("[") + text.count("{") > deepest or _ESCAPED_HALF.search(text):
        return _check(value, deepest)
    return value


def read_json(path: Path, most: int = LARGEST_WHOLE) -> Any:
    """Read a JSON file. Raises OSError as `open_file` does, and ValueError as `parse_json` does."""
    return parse_json(read_bytes(path, most))


def read_known(path: Path) -> dict[str, Any]:
    """Read the JSON object in a file; return {} if the file is missing, unreadable, or contains no JSON object."""
    try:
        value = read_json(path)
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def read_object(raw: bytes) -> dict[str, Any]:
    """Parse a JSON object. Raises ValueError as `parse_json` does, and if `raw` is not an object."""
    value = parse_json(raw)
    if not isinstance(value, dict):
        raise ValueError("not an object")
    return value


def whole_characters(text: str) -> str:
    """Replace each unpaired surrogate by its code point in letters, `\\ud800`."""
    return _HALF.sub(lambda half: f"\\u{ord(half.group()):04x}", text)


def _check(value: Any, room: int) -> Any:
    if isinstance(value, str):
        return whole_characters(value)
    if not isinstance(value, dict | list):
        return value
    if not room:
        raise ValueError("nested too deep")
    if isinstance(value, list):
        return [_check(each, room - 1) for each in value]
    return {whole_characters(key): _check(each, room - 1) for key, each in value.items()}
