"""Reading what others wrote, within limits: plain files alone, and JSON that can be computed with and written again.

Who hands us a folder also chooses what is in it: a pipe is waited for and a device read without end, `Infinity` and
numbers of 400 digits end a computation, and brackets nested a thousand deep end whatever follows them.
The environments use this module too, so it imports nothing of ours. YAML is read by `evalharness.base.yaml_lines`.
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
"""Bytes of a file that is read piece by piece."""
LARGEST_WHOLE = 1 << 30
"""Bytes of a file that is read whole."""
LONGEST_LINE = 256 << 20
DEEPEST = 100
"""Levels of lists and objects within each other. Python follows some hundred, and not everywhere as many."""

_LONG_NUMBER = re.compile(r"[0-9]{309}")
_ESCAPED_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_HALF = re.compile("[\ud800-\udfff]")


def open_file(path: Path, most: int = LARGEST) -> io.BufferedReader:
    """`path` opened for reading. Raises OSError also for what is no plain file, and for more than `most` bytes."""
    # Not blocking: the name could be a pipe's, and opening that waits for a writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = os.fstat(descriptor)
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is not a plain file", str(path))
        if found.st_size > most:
            raise OSError(errno.EFBIG, f"it is larger than {_size(most)}", str(path))
    except OSError:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "rb")


def _size(count: int) -> str:
    return f"{count >> 30} GiB" if count >= 1 << 30 else f"{count >> 20} MiB"


def read_bytes(path: Path, most: int = LARGEST_WHOLE) -> bytes:
    """Raises OSError as `open_file` does."""
    with open_file(path, most) as file:
        return file.read()


def sha256_of(path: Path) -> str:
    """Of what the file holds, in hexadecimal. Raises OSError as `open_file` does."""
    with open_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_text(path: Path, encoding: str = "utf-8", most: int = LARGEST_WHOLE) -> str:
    """Raises OSError as `open_file` does, and UnicodeDecodeError."""
    with io.TextIOWrapper(open_file(path, most), encoding=encoding) as file:
        return file.read()


def lines_of(file: IO[bytes]) -> Iterator[bytes]:
    """The lines of a file with their ends. Raises OSError for one that no memory should hold."""
    while line := file.readline(LONGEST_LINE + 1):
        if len(line) > LONGEST_LINE:
            raise OSError(errno.EFBIG, f"a line is longer than {_size(LONGEST_LINE)}")
        yield line


def no_constant(name: str) -> Any:
    """For decoders of JSON: NaN and Infinity are Python's own. Raises ValueError."""
    raise ValueError(f"{name[:20]} is {'too large a number' if name[-1:].isdigit() else 'not JSON'}")


def parse_json(raw: bytes | str, deepest: int = DEEPEST, odd: Callable[[str], Any] = no_constant) -> Any:
    """The value of a JSON text. Half a surrogate pair, which no file and no terminal can hold, becomes its code point
    in letters. `odd` gives the value of `NaN`, `Infinity` and numbers that no float can hold. Raises ValueError for all
    that is no JSON, by default these numbers among it, and for what is nested deeper than `deepest`."""

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
        return _checked(value, deepest)
    return value


def read_json(path: Path, most: int = LARGEST_WHOLE) -> Any:
    """Raises OSError as `open_file` does, and ValueError as `parse_json`."""
    return parse_json(read_bytes(path, most))


def read_known(path: Path) -> dict[str, Any]:
    """The JSON object that a file holds; empty where there is none that can be read."""
    try:
        value = read_json(path)
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def read_object(raw: bytes) -> dict[str, Any]:
    """Raises ValueError as `parse_json`, and where `raw` is no JSON object."""
    value = parse_json(raw)
    if not isinstance(value, dict):
        raise ValueError("not an object")
    return value


def whole_characters(text: str) -> str:
    """Each half of a surrogate pair as its code point in letters, `\\ud800`."""
    return _HALF.sub(lambda half: f"\\u{ord(half.group()):04x}", text)


def _checked(value: Any, room: int) -> Any:
    if isinstance(value, str):
        return whole_characters(value)
    if not isinstance(value, dict | list):
        return value
    if not room:
        raise ValueError("nested too deep")
    if isinstance(value, list):
        return [_checked(each, room - 1) for each in value]
    return {whole_characters(key): _checked(each, room - 1) for key, each in value.items()}
