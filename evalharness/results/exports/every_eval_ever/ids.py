"""Names that the documents of a run and of its samples share, and what a run does not know of itself."""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evalharness.base.errors import UserError
from evalharness.base.paths import folder_name
from evalharness.records.manifest import Manifest

SCHEMA = "0.3.0"
RELATIONSHIPS = ("first_party", "third_party", "collaborative", "other")
MEASURES = ("success_rate", "progress_rate")
_MODEL_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class About:
    """What a run does not know of itself."""

    model_id: str
    """`DEVELOPER/NAME`."""
    organization: str
    """Who ran the evaluation."""
    relationship: str
    """To the model's developer: one of `RELATIONSHIPS`."""

    @classmethod
    def of(cls, model_id: str | None, organization: str | None, relationship: str, name: str) -> About:
        """`name`: the model's in the run, which may be such an id. Raises UserError."""
        found = model_id or name
        if not _MODEL_ID.fullmatch(found):
            raise UserError(
                f"every-eval-ever files results by developer and model, and {found!r} does not say both; "
                "give --model-id DEVELOPER/NAME"
            )
        if relationship not in RELATIONSHIPS:
            raise UserError(f"--relationship {relationship}: it is one of {', '.join(RELATIONSHIPS)}")
        return cls(found, organization or "unknown", relationship)


def strings(values: Mapping[str, Any]) -> dict[str, str]:
    """The format's free details are strings."""
    return {
        key: value if isinstance(value, str) else json.dumps(value)
        for key, value in values.items()
        if value is not None
    }


@dataclass(frozen=True)
class Ids:
    """Names that both files use. The same run has the same."""

    suite: str
    about: About
    evaluation: str
    uuid: str

    @classmethod
    def of(cls, manifest: Manifest, about: About, ended: float) -> Ids:
        suite = f"evalharness-{folder_name(manifest.suite, 'suite')}"
        whole = f"{manifest.digest}\n{about}\n{ended!r}".encode()
        name = uuid.UUID(bytes=hashlib.sha256(whole).digest()[:16], version=4)
        return cls(suite, about, f"{suite}/{about.model_id}/{ended:.3f}", str(name))

    @property
    def folder(self) -> str:
        return f"data/{self.suite}/{self.about.model_id}"

    @property
    def samples(self) -> str:
        return f"{self.folder}/{self.uuid}_samples.jsonl"
