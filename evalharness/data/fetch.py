"""Download the published archives, continue interrupted downloads, and import the files.

Every unpacked file is checked by hash. If `published.json` also has the hash of an archive (not every publisher gives
one), a wrong archive is refused before any file is read from it.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path

from evalharness.base.errors import UserError
from evalharness.base.reading import read_json, sha256_of
from evalharness.base.version import __version__
from evalharness.data.importer import FamilyImport, import_published
from evalharness.data.source import is_archive
from evalharness.data.table import Download, PublishedFamily, check

Progress = Callable[[Download, int, int | None], None]
"""Function that is called with (download, bytes so far, total bytes or None if the server does not report them)."""

STALLED_TRIES = 5
"""The download fails after this number of successive tries in which no byte arrived."""
TIMEOUT = 60.0
"""Seconds after which a connection counts as lost if no byte arrives."""


class _NetworkError(Exception):
    """A failure of the network, after which another try may succeed."""


def fetch_published(
    families: Mapping[str, PublishedFamily], data: Path, *, progress: Progress, retry_wait: float = 1.0
) -> dict[str, FamilyImport]:
    """Download the archives of the families into `<data>/downloads` and import their files. Raise UserError on failure.

    Families whose files are complete are skipped. An archive is removed when all families that use it are complete.
    """
    results = {name: FamilyImport(0, check(family, data)) for name, family in families.items()}
    families = {name: family for name, family in families.items() if not results[name].check.ok}
    wanted = {download.save_as: download for family in families.values() for download in family.downloads}
    for save_as, download in wanted.items():
        target = data / "downloads" / save_as
        if not target.exists():
            fetch(download, target, progress=progress, retry_wait=retry_wait)
        users = {name: family for name, family in families.items() if download in family.downloads}
        source = target if is_archive(target) else target.parent
        for name, result in import_published(source, data, users).items():
            results[name] = FamilyImport(results[name].imported + result.imported, result.check)
    for save_as, download in wanted.items():
        if all(results[name].check.ok for name, family in families.items() if download in family.downloads):
            (data / "downloads" / save_as).unlink()
    return results


def fetch(download: Download, target: Path, *, progress: Progress, retry_wait: float = 1.0) -> None:
    """Download one file to `target.part`, continuing an interrupted download, and then rename it to `target`."""
    part = target.with_name(target.name + ".part")
    try:
        part.parent.mkdir(parents=True, exist_ok=True)
        stalled = 0
        while True:
            before = _size(part)
            try:
                _transfer(download, part, progress)
                break
            except _NetworkError as error:
                stalled = stalled + 1 if _size(part) <= before else 0
                if stalled == STALLED_TRIES:
                    kept = (
                        f"; {before:,} bytes are kept, and the same command continues the download"
                        if before
                        else ""
                    )
                    raise UserError(
                        f"cannot download {download.url}: {error}{kept}. To import a file that you downloaded "
                        "elsewhere, run: evalharness data import FILE"
                    ) from error
                time.sleep(retry_wait * 2**stalled)
        if download.sha256 is not None and (sha256 := sha256_of(part)) != download.sha256:
            raise UserError(
                f"{download.url} is not the published file: its SHA-256 is {sha256}, expected {download.sha256}. "
                f"Nothing was imported; to download it again, remove {part}"
            )
        part.replace(target)
        _validator_file(part).unlink(missing_ok=True)
    except OSError as error:
        raise UserError(f"cannot write {part}: {error}; fix this and run the same command again") from error


def _transfer(download: Download, part: Path, progress: Progress) -> None:
    """Append the bytes that one connection delivers to `part`. OSError means an error of the local disk."""
    request = urllib.request.Request(
        _use_mirror(download.url), headers={"User-Agent": f"evalharness/{__version__}"}
    )
    offset = _size(part)
    if offset:
        request.add_header("Range", f"bytes={offset}-")
        # If-Range: the server sends the whole file if it has changed since the first part was downloaded (RFC 9110,
        # 13.1.5). The validator file may be empty if the disk was full.
        with contextlib.suppress(FileNotFoundError, ValueError):
            request.add_header("If-Range", read_json(_validator_file(part)))
    try:
        response = urllib.request.urlopen(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code == 416 and error.headers.get("Content-Range") == f"bytes */{offset}":
            return  # `part` already has the whole file
        if error.code == 416:
            part.unlink()
            raise _NetworkError("the server's file has changed; starting over") from error
        if error.code in (408, 425, 429) or error.code >= 500:
            raise _NetworkError(f"HTTP {error.code} {error.reason}") from error
        raise UserError(
            f"cannot download {download.url}: HTTP {error.code} {error.reason}. If the publisher moved the file, "
            "download it with a browser and run: evalharness data import FILE"
        ) from error
    except (OSError, http.client.HTTPException) as error:
        raise _NetworkError(str(getattr(error, "reason", error))) from error
    with response, part.open("ab" if response.status == 206 else "wb") as out:
        done = offset if response.status == 206 else 0
        total = None if response.length is None else done + int(response.length)
        if validator := response.headers.get("ETag") or response.headers.get("Last-Modified"):
            _validator_file(part).write_text(json.dumps(validator))
        while True:
            try:
                block = response.read(2**16)
            except (OSError, http.client.HTTPException) as error:
                raise _NetworkError(f"the connection broke ({error})") from error
            if not block:
                break
            out.write(block)
            done += len(block)
            progress(download, done, total)
    if total is not None and done < total:
        raise _NetworkError(f"the connection ended after {done:,} of {total:,} bytes")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _validator_file(part: Path) -> Path:
    return part.with_name(part.name + ".validator")


def _use_mirror(url: str) -> str:
    """Replace Hugging Face's address by the mirror address in `HF_ENDPOINT`, as the library `huggingface_hub` does."""
    mirror = os.environ.get("HF_ENDPOINT")
    return url.replace("https://huggingface.co", mirror.rstrip("/"), 1) if mirror else url
