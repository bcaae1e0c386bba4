"""A folder of answered questions that can be continued. One writer at a time.

| file | what it holds |
|---|---|
| `manifest.json` | what was asked: run, prompt with version and hash, model, sampling; each session |
| ANSWERS | one answer a line, synced as it comes |
| `errors.jsonl` | infrastructure failures, each try |
| `server.log` | what the model's server printed |
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import platform
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evalharness._version import __version__
from evalharness.config import RunConfig
from evalharness.errors import InfrastructureError, UserError
from evalharness.policy.connections import sampling_of
from evalharness.records.shapes import read_object
from evalharness.records.store import MANIFEST, RecordFolder

ERRORS = "errors.jsonl"
SCHEMA = 1


class AnswerFolder(RecordFolder):
    """`append_line` keeps an answer; `error` a failed try."""

    def error(self, key: str, attempt: int, error: InfrastructureError, final: bool) -> None:
        self.append_line(
            ERRORS,
            {
                "time": time.time(),
                "key": key,
                "attempt": attempt,
                "kind": type(error).__name__,
                "error": str(error),
                "final": final,
                **error.details(),
            },
        )


def sampling_identity(config: RunConfig) -> dict[str, Any]:
    sampling = sampling_of(config)
    return {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "max_tokens": sampling.max_tokens,
        "seed": sampling.seed,
        "vllm_args": config.vllm_args,
    }


def digest_of(identity: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


def make_manifest(identity: Mapping[str, Any], name: str, **session: Any) -> dict[str, Any]:
    """`identity` is what must be equal to continue; `sessions` says what happened each time."""
    return {
        "schema": SCHEMA,
        "digest": digest_of(identity),
        "identity": dict(identity),
        "model_name": name,
        "sessions": [
            {
                "started": time.time(),
                "evalharness": __version__,
                "python": platform.python_version(),
                **session,
            }
        ],
    }


def read_kind(folder: Path, kind: str, make: str) -> dict[str, Any]:
    """The manifest of a folder of that kind. Raises UserError, which says how one is made."""
    path = folder / MANIFEST
    try:
        manifest = json.loads(path.read_bytes())
        if manifest["identity"]["kind"] != kind or not isinstance(manifest["digest"], str):
            raise KeyError(kind)
    except OSError:
        raise UserError(f"{folder} holds no {kind} (make some with: {make})") from None
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} is not of {kind}: {error}") from None
    return dict(manifest)


def read_answers(path: Path) -> Iterator[dict[str, Any]]:
    """Every whole line. A torn last one, where writing was cut off, is skipped.

    Raises UserError for any other line that is no object: that is damage, not an interruption.
    """
    with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                value = read_object(line)
            except ValueError as error:
                if not line.endswith(b"\n"):
                    return
                raise UserError(
                    f"{path} is damaged at line {number} ({error}); restore it, or delete that line and run the same "
                    "command again: what it held is asked anew"
                ) from None
            yield value
