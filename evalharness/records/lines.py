"""Read and append JSON lines. One process appends whole lines.

If the process is killed, the last line may be incomplete: without newline, and invalid. Readers skip such a torn line,
and the next writer removes it. Any other invalid line is reported as damage.
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
from evalharness.base.redaction import redact

T = TypeVar("T")


class StoreError(InfrastructureError):
    """A folder of records cannot be written, so the work stops."""


def locate_lines(path: Path, again: str, read: Callable[[bytes], T]) -> Iterator[tuple[int, int, T]]:
    """Yield (number from 1, offset, result of `read`) for every complete line; nothing if the file does not exist.

    Raise UserError if the file cannot be read, or if `read` raises ValueError, KeyError or TypeError for a line that is
    not torn. `again`: end of the message, which says how to replace that line: `the episode is played anew`.
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
    """Yield the result of `read` for every complete line. Arguments and errors are those of `locate_lines`."""
    return (value for _, _, value in locate_lines(path, again, read))


class LineFile:
    """Writer of a file of JSON lines; there must be only one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: IO[bytes] | None = None

    def drop_torn_line(self) -> None:
        """Remove a torn last line. A valid last line without newline stays.

        Raise UserError if the file cannot be read.
        """
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
        """Write one line and sync it to disk. A failed write leaves no partial line.

        Raise StoreError if writing fails, or if the file in the folder is no longer the open file.
        """
        line = redact(json.dumps(value, ensure_ascii=True, separators=(",", ":"))).encode() + b"\n"
        size: int | None = None
        try:
            if self._file is None:
                self._file = self.path.open("ab", buffering=0)
            descriptor = self._file.fileno()
            self._require_in_place(descriptor)
            size = os.fstat(descriptor).st_size
            written = 0
            while written < len(line):
                written += os.write(descriptor, line[written:])
            os.fsync(descriptor)
        except OSError as error:
            if size is not None:
                with contextlib.suppress(OSError):
                    os.ftruncate(descriptor, size)
            before = (
                "all earlier lines are stored: free some disk space and run the same command again"
                if self.path.parent.is_dir()
                else "its folder no longer exists"
            )
            raise StoreError(f"cannot write {self.path}: {error.strerror}; {before}") from error

    def _require_in_place(self, descriptor: int) -> None:
        """Raise StoreError if another program, such as an editor or a sync tool, has removed or replaced the file."""
        there = self.path.stat() if self.path.exists() else None
        if there is None or not os.path.samestat(os.fstat(descriptor), there):
            raise StoreError(
                f"{self.path} was {'removed' if there is None else 'replaced'} while this command wrote to it: later "
                "lines are lost; run the same command again to repeat the missing work"
            )

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
