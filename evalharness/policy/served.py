"""Which model a server says that it serves: what tells two checkpoints behind one address and name apart."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from evalharness.errors import UserError
from evalharness.policy.completion import error_message
from evalharness.records.identity import differences
from evalharness.settings import key_hint

if TYPE_CHECKING:
    import aiohttp

_LIST_LIMIT = 8 * 1024 * 1024
"""Bytes of a list of models."""
_ASK_AGAIN = 1.1
"""Seconds after which a time stamp in whole seconds has changed, if it is that of the request."""
_A_DAY = 86_400
_PAUSE = 1.0


class NoAnswerError(UserError):
    """Nobody at the address says which model is served there."""


@dataclass(frozen=True)
class ServedModel:
    """An entry of `GET /models`, without what changes though the model stays the same.

    `id` is only the name that the user gave, which the next checkpoint may have as well. vLLM and SGLang add `root`,
    the folder or hub id they loaded, and `parent`, the base model of an adapter. Their `created` is the time of
    the start or of the request, so it does not count beside a `root`. Hosted models and Ollama tell no root, and there
    `created` is the model's own date. `max_model_len` decides when old turns are dropped, so results depend on it.
    What no server tells: that other weights were put into the same folder.
    """

    id: str
    root: str | None = None
    parent: str | None = None
    revision: str | None = None
    created: int | None = None
    max_model_len: int | None = None

    @property
    def is_told(self) -> bool:
        """Whether more than the name is known."""
        return (self.root, self.revision, self.created) != (None, None, None)

    def to_json(self) -> dict[str, str | int]:
        return {key: value for key, value in asdict(self).items() if value is not None}


def served_model(entry: Mapping[str, Any]) -> ServedModel:
    """What a list's entry says, noise left out: this is text from outside."""

    def text(key: str) -> str | None:
        value = entry.get(key)
        return value[:1000] if isinstance(value, str) and value else None

    def number(key: str) -> int | None:
        value = entry.get(key)
        if not isinstance(value, int) or isinstance(value, bool):
            return None
        return value if 0 < value < 2**53 else None

    root, revision = text("root"), text("revision")
    return ServedModel(
        id=text("id") or "",
        root=root,
        parent=text("parent"),
        revision=revision,
        created=None if root or revision else number("created"),
        max_model_len=number("max_model_len"),
    )


async def describe(
    http: aiohttp.ClientSession,
    base_url: str,
    name: str,
    *,
    patience_s: float = 0.0,
    on_status: Callable[[str], None] = lambda text: None,
) -> ServedModel | None:
    """What the server says of the model `name`; None where it has no list of models.

    A server that is busy is asked again for `patience_s`. Raises UserError when the server is down, refuses the key,
    or serves no such model.
    """
    models = await _list(http, base_url, patience_s, on_status)
    if models and name not in models:
        raise UserError(
            f"{base_url} serves no model {name!r}; it serves: {', '.join(sorted(models))} "
            "(choose with --model-name)"
        )
    if name not in models:
        return None
    served = served_model(models[name])
    if served.created is not None and served.created > time.time() - _A_DAY:
        await asyncio.sleep(_ASK_AGAIN)
        again = served_model((await _list(http, base_url, patience_s, on_status)).get(name, {}))
        if again.created != served.created:
            return ServedModel(**{**asdict(served), "created": None})
    return served


def require_same(base_url: str, expected: ServedModel, served: ServedModel | None) -> None:
    """Raises UserError where another model is served than the one that the run began with."""
    now = served.to_json() if served else {}
    if changed := differences(expected.to_json(), now):
        raise UserError(
            f"{base_url} serves another model than when the run began:\n  "
            + "\n  ".join(changed)
            + "\nfinished episodes are kept; serve the first model again, or choose another folder with -o DIR"
        )


def one_model(served: Mapping[str, ServedModel | None]) -> ServedModel | None:
    """What all of several servers (by URL) say. Raises UserError where they do not serve the same model.

    Dates are not compared: copies of one model may have been made on different days.
    """
    (first, model), *others = served.items()
    expected = _undated(model)
    for url, other in others:
        if changed := differences(expected, _undated(other)):
            lines = [line.replace(" there, ", f" at {first}, ").removesuffix(" now") for line in changed]
            raise UserError(
                "the endpoints serve different models:\n  "
                + "\n  ".join(f"{line} at {url}" for line in lines)
                + "\ngive only servers of the same model, or evaluate each in a run of its own"
            )
    return model


def _undated(model: ServedModel | None) -> dict[str, str | int]:
    return {key: value for key, value in (model.to_json() if model else {}).items() if key != "created"}


async def _list(
    http: aiohttp.ClientSession, base_url: str, patience_s: float, on_status: Callable[[str], None]
) -> dict[str, dict[str, Any]]:
    """What `GET /models` lists; empty where an endpoint has no such route."""
    import aiohttp

    url = f"{base_url}/models"
    began = time.monotonic()
    while True:
        try:
            async with http.get(url, timeout=aiohttp.ClientTimeout(total=30)) as response:
                status, raw = response.status, await response.content.read(_LIST_LIMIT)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise NoAnswerError(
                f"no answer from {base_url} ({error or type(error).__name__}); "
                "is the server up, and does the URL end in /v1?"
            ) from None
        if status in (401, 402, 403):
            said = f"(HTTP {status}: {error_message(raw)})"
            if "Authorization" in http.headers:
                raise UserError(f"{url} refuses the API key {said}; see --api-key-env")
            raise UserError(f"{url} wants an API key {said}; see --api-key-env{key_hint()}")
        if status != 429 and (status < 500 or status == 501):
            return _entries(raw) if status == 200 else {}
        # Busy or being loaded. It may have a list, so it must not pass for a server that has none.
        said = f"HTTP {status}: {error_message(raw)}"
        if time.monotonic() - began + _PAUSE > patience_s:
            raise NoAnswerError(f"{url} does not say which model is served: {said}; try again later")
        on_status(f"{url}: {said}; asked again for {patience_s:.0f} s")
        await asyncio.sleep(_PAUSE)


def _entries(raw: bytes) -> dict[str, dict[str, Any]]:
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    listed = body.get("data") if isinstance(body, dict) else None
    return {
        entry["id"]: entry
        for entry in (listed if isinstance(listed, list) else [])
        if isinstance(entry, dict) and isinstance(entry.get("id"), str)
    }
