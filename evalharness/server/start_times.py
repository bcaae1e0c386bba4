"""How long a model's server took to start on this machine, so that the next start can say about how long it takes."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from evalharness.paths import cache_folder, write_whole

_KEPT = 200
"""Models; the oldest go first."""
_ROUGHLY = {"cpu": "a minute or two", "gpu": "one to ten minutes by the model's size"}


def _path() -> Path:
    return cache_folder() / "server-starts.json"


def _all() -> dict[str, float]:
    """What is not readable is as good as nothing."""
    try:
        return {
            str(key): float(value) for key, value in json.loads(_path().read_text(encoding="utf-8")).items()
        }
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def usual_start(model: str, kind: str) -> float | None:
    """Seconds of the last start; None where there was none."""
    return _all().get(f"{kind} {model}")


def note_start(model: str, kind: str, seconds: float) -> None:
    """A cache that cannot be written is no reason to trouble anybody."""
    key, known = f"{kind} {model}", _all()
    known.pop(key, None)
    known[key] = round(seconds, 1)
    with contextlib.suppress(OSError):
        _path().parent.mkdir(parents=True, exist_ok=True)
        write_whole(_path(), json.dumps(dict(list(known.items())[-_KEPT:])), durable=False)


def of_about(model: str, kind: str) -> str:
    """`of about 50 s`, or what a first start takes."""
    usual = usual_start(model, kind)
    return f"of about {usual:.0f} s" if usual else f"so far; a first start takes {_ROUGHLY[kind]}"
