"""Read files from a folder, a .tar.gz or a .zip, without unpacking an archive to the paths that it states.

The importer copies only the files that it knows, to the paths in `published.json`. So a malicious archive can neither
choose a path nor create a link or a device. An archive is refused if the name of a member points outside of the
archive, because no honest archive has such names.
"""

from __future__ import annotations

import gzip
import lzma
import os
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from evalharness.base.errors import UserError
from evalharness.base.paths import real_path
from evalharness.base.reading import open_file

ARCHIVES = (".tar.gz", ".tgz", ".tar", ".zip")

MAX_FILE_BYTES = 32 * 2**20
"""Maximum size of a file. The largest published file has 0.6 MB."""
MAX_HEADER_BYTES = 2**20
"""Maximum size of a header in a tar file, because a header is read into memory as a whole."""
MAX_RATIO = 250
"""Maximum ratio of unpacked to packed size. It is 3 to 20 for benchmark archives, and up to 1,030 for a gzip bomb."""
MAX_FREE_BYTES = 2**30
"""`MAX_RATIO` does not apply to an archive that unpacks to at most this number of bytes."""
MAX_ENTRIES = 500_000
"""Maximum number of files in a folder. A folder with more files is not a benchmark's folder."""


@dataclass(frozen=True)
class Entry:
    """A regular file in a folder or an archive. Copy it at most once, before `walk` yields the next entry."""

    name: str
    source: Path
    """The folder or archive that contains the file."""
    opener: Callable[[], IO[bytes]]
    path: Path | None = None
    """Path on disk; None for a file in an archive."""

    def copy_to(self, target: Path, most: int = MAX_FILE_BYTES) -> None:
        """Copy the file to `target`. Raise UserError after `most` bytes, because a header may state a false size."""
        left = most
        with target.open("wb") as out, _damage(self.source), self.opener() as file:
            while block := file.read(2**20):
                left -= len(block)
                if left < 0:
                    raise UserError(
                        f"{self.source} is refused: {display(self.name)} is over {most // 2**20} MiB"
                    )
                out.write(block)


def is_archive(path: Path) -> bool:
    return path.name.lower().endswith(ARCHIVES)


def display(name: str) -> str:
    """Return a file name that is safe to print: at most 120 characters, with escaped control characters."""
    return ascii(name[:120])[1:-1]


def walk(source: Path, *, skip: Path | None = None) -> Iterator[Entry]:
    """Yield every regular file of a folder or an archive. Raise UserError for a damaged or malicious archive."""
    if source.is_dir():
        yield from _walk_folder(real_path(source), skip)
    elif not is_archive(source):
        raise UserError(f"{source} is neither a folder nor an archive ({', '.join(ARCHIVES)})")
    else:
        with _damage(source):
            yield from _walk_zip(source) if source.name.lower().endswith(".zip") else _walk_tar(source)


@contextmanager
def _damage(archive: Path) -> Iterator[None]:
    """Convert the exceptions of the archive modules for damaged files to a UserError."""
    try:
        yield
    except (
        tarfile.TarError,
        zipfile.BadZipFile,
        gzip.BadGzipFile,
        zlib.error,
        lzma.LZMAError,
        EOFError,
        ValueError,
    ) as error:
        raise _damage_error(archive, error) from error
    except OSError as error:
        if error.errno is not None:
            raise
        raise _damage_error(archive, error) from error  # bz2 raises OSError for a damaged file
    except (NotImplementedError, RuntimeError) as error:  # zipfile cannot decompress or decrypt a member
        raise UserError(f"{archive} cannot be read ({error}); unpack it and import the folder") from error


def _damage_error(archive: Path, error: Exception) -> UserError:
    return UserError(f"{archive} is damaged or not an archive ({error}); download or copy it again")


def _walk_folder(folder: Path, skip: Path | None) -> Iterator[Entry]:
    # The name of each entry begins with the folder's name, so that `import .../babyai` finds babyai/test.jsonl. Links
    # to folders are followed, because in a checkout `data` is often a link to a larger disk.
    seen: set[tuple[int, int]] = set()
    count = 0
    for parent, folders, files in os.walk(folder, followlinks=True):
        status = Path(parent).stat()
        if (status.st_dev, status.st_ino) in seen or (skip is not None and real_path(parent) == skip):
            folders.clear()
            continue
        seen.add((status.st_dev, status.st_ino))
        folders[:] = sorted(name for name in folders if name not in (".git", "node_modules", "__pycache__"))
        count += len(files)
        if count > MAX_ENTRIES:
            raise UserError(
                f"{folder} has over {MAX_ENTRIES:,} files; name the folder that has the benchmark's files"
            )
        for name in sorted(files):
            path = Path(parent) / name
            if path.is_file():
                relative = (folder.name / path.relative_to(folder)).as_posix()
                yield Entry(relative, folder, lambda p=path: open_file(p), path)  # type: ignore[misc]


def _check_name(name: str, archive: Path) -> None:
    parts = PurePosixPath(name.replace("\\", "/")).parts
    if "\0" in name or name.startswith(("/", "\\")) or ".." in parts or name[1:2] == ":":
        raise UserError(f"{archive} is refused: its member '{display(name)}' points outside of the archive")


class _Metered:
    """A decompressed stream that raises UserError after `budget` bytes without a new header, or after `total` bytes."""

    def __init__(self, raw: IO[bytes], archive: Path) -> None:
        self.raw = raw
        self.archive = archive
        self.total = max(MAX_FREE_BYTES, MAX_RATIO * archive.stat().st_size)
        self.budget = MAX_HEADER_BYTES

    def read(self, size: int) -> bytes:
        data = self.raw.read(size)
        self.budget -= len(data)
        self.total -= len(data)
        if self.budget < 0 or self.total < 0:
            raise UserError(f"{self.archive} is refused: a header or the unpacked size is far too large")
        return data


def _walk_tar(path: Path) -> Iterator[Entry]:
    # Read the tar file as a stream, because the official archive has 1.4 GB: one pass, only one header in memory.
    packed = path.name.lower().endswith("gz")
    with open_file(path) as file, gzip.open(file) if packed else file as raw:
        stream = _Metered(raw, path)  # type: ignore[arg-type]
        with tarfile.open(fileobj=stream, mode="r|") as tar:  # type: ignore[call-overload]
            while (member := tar.next()) is not None:
                _check_name(member.name, path)
                stream.budget = member.size + MAX_HEADER_BYTES
                if member.isreg() and not member.issparse():
                    yield Entry(member.name, path, lambda m=member: tar.extractfile(m))  # type: ignore[misc]
                tar.members = []


def _walk_zip(path: Path) -> Iterator[Entry]:
    with open_file(path) as file, zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        for member in members:
            _check_name(member.filename, path)
        if sum(member.file_size for member in members) > max(MAX_FREE_BYTES, MAX_RATIO * path.stat().st_size):
            raise UserError(f"{path} is refused: it would unpack to over {MAX_RATIO} times its size")
        for member in members:
            if not member.is_dir() and stat.S_IFMT(member.external_attr >> 16) in (0, stat.S_IFREG):
                yield Entry(member.filename, path, lambda m=member: archive.open(m))  # type: ignore[misc]
