"""JSON lines that only grow: one writer appends whole lines, and a line that a kill has torn counts as never written.

A last line without its end that is no record is torn: readers skip it, and a writer that continues cuts it off. Any
other line that is no record is damage, not an interruption: it is named.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, TypeVar

from evalharness.base.errors import InfrastructureError, UserError
from evalharness.base.reading import lines_of, open_file, read_bytes, read_object

T = TypeVar("T")


class StoreError(InfrastructureError):
    """A folder of records cannot be written. Nothing more can be kept, so the work stops."""


def located_lines(path: Path, again: str, read: Callable[[bytes], T]) -> Iterator[tuple[int, int, T]]:
    """(number from 1, offset, what `read` makes of it) of every whole line; none where there is no such file.

    Raises UserError where the file cannot be read, and where `read` raises ValueError, KeyError or TypeError for a
    line that is not torn. `again` tells the person what happens to what that line held: `the episode is played anew`.
    """
    offset = 0
    try:
        with open_file(path) as file:
            for number, line in enumerate(lines_of(file), 1):
                try:
                    value = read(line)
                except (ValueError, KeyError, TypeError) as error:
                    if not line.endswith(b"\n"):
                        return
                    why = f"it has no {error}" if isinstance(error, KeyError) else error
                    raise UserError(
                        f"{path} is damaged at line {number} ({why}); restore it, or delete that line and run the "
                        f"same command again: {again}"
                    ) from None
                yield number, offset, value
                offset += len(line)
    except FileNotFoundError:
        return
    except OSError as error:
        raise UserError(f"{path} is not readable: {error.strerror}") from None


def read_lines(path: Path, again: str, read: Callable[[bytes], T]) -> Iterator[T]:
    """What `read` makes of every whole line, as `located_lines`."""
    return (value for _, _, value in located_lines(path, again, read))


class LineFile:
    """The one writer of such a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: IO[bytes] | None = None

    def drop_torn_line(self) -> None:
        """Cut off a last line that was never finished. A whole one that lacks only its newline is kept.

        Raises UserError where the file cannot be read."""
        try:
            data = read_bytes(self.path)
        except FileNotFoundError:
            return
        except OSError as error:
            raise UserError(f"{self.path} is not readable: {error.strerror}") from None
        if not data or data.endswith(b"\n"):
            return
        start = data.rfind(b"\n") + 1
        try:
            whole = bool(read_object(data[start:]))
        except ValueError:
            whole = False
        with self.path.open("r+b") as file:
            if whole:
                file.seek(0, os.SEEK_END)
                file.write(b"\n")
            else:
                file.truncate(start)
            os.fsync(file.fileno())

    def append(self, value: Mapping[str, Any]) -> None:
        """Write one line so that it survives whatever comes after. A failed write leaves no half line behind.

        Raises StoreError when the disk refuses.
        """
        line = json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
        size: int | None = None
        try:
            if self._file is None:
                self._file = self.path.open("ab", buffering=0)
            descriptor = self._file.fileno()
            size = os.fstat(descriptor).st_size
            written = 0
            while written < len(line):
                written += os.write(descriptor, line[written:])
            os.fsync(descriptor)
        except OSError as error:
            if size is not None:
                with contextlib.suppress(OSError):
                    os.ftruncate(descriptor, size)
            raise StoreError(
                f"cannot write {self.path}: {error.strerror}; what was finished before is safe: "
                "free some space and run the same command again"
            ) from error

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
