"""Read from a server which model it serves, to distinguish two checkpoints with the same address and name."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from evalharness.base.errors import UserError
from evalharness.base.settings import key_hint
from evalharness.config import PolicyConfig
from evalharness.models.api_key import read_key
from evalharness.models.completion import TryFailedError, retry_after
from evalharness.models.event_loop import run_to_end
from evalharness.models.server_error import ServerError
from evalharness.records.identity import differences

if TYPE_CHECKING:
    from evalharness.models.transport import Transport


_LIST_S = 30.0
"""Maximum seconds until the last byte of a list of models."""
_ASK_AGAIN = 1.1
"""Seconds between two requests for the list: if `created` (in whole seconds) differs, it is the time of the request."""
_A_DAY = 86_400
_PAUSE = 1.0
_SHOWN = 20
"""Maximum number of names in an error message: a router lists thousands."""


class NoAnswerError(UserError):
    """No server at the address reports which model it serves."""


class UnreachableError(NoAnswerError):
    """Nothing answers at the address."""


class UnreadableListError(NoAnswerError):
    """The server's list of models is invalid, or this key may not read it."""


class NotListedError(UserError):
    """The server's list of models lacks the requested name. Requests with this name may still work: routers accept
    suffixes and wildcards, and list only a page of their models."""


@dataclass(frozen=True)
class ServedModel:
    """An entry of `GET /models`, without the fields that change while the model stays the same.

    `id` is only the name that the user gave; the next checkpoint may have the same name. vLLM and SGLang add `root`,
    the folder or hub id that they loaded, and `parent`, the base model of an adapter. Their `created` is the time of
    the start or of the request, so it is ignored if there is a `root`. Hosted models and Ollama have no `root`; their
    `created` is the model's date. `max_model_len` decides when old turns are dropped, so results depend on it.
    """

    id: str
    root: str | None = None
    parent: str | None = None
    revision: str | None = None
    created: int | None = None
    max_model_len: int | None = None

    @property
    def has_facts(self) -> bool:
        """Whether the server reports a fact about the model besides the name and the context length."""
        return (self.root, self.revision, self.created) != (None, None, None)

    def to_json(self) -> dict[str, str | int]:
        return {key: value for key, value in asdict(self).items() if value is not None}


def read_served_model(entry: Mapping[str, Any]) -> ServedModel:
    """Read an entry of the list. It comes from outside, so values of a wrong type are ignored."""

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
    transport: Transport,
    name: str,
    *,
    wait_s: float = 0.0,
    on_status: Callable[[str], None] = lambda text: None,
) -> ServedModel | None:
    """Return the server's entry for the model `name`; None if the server has no list of models.

    A busy server is asked again for `wait_s` seconds. Raises UserError if the server is down; UnreadableListError if
    its list cannot be read; NotListedError if the list lacks the model.
    """
    began = time.monotonic()
    while True:
        try:
            served = await _ask(transport, name)
            if served is not None and served.created is not None and served.created > time.time() - _A_DAY:
                await asyncio.sleep(_ASK_AGAIN)
                again = await _ask(transport, name)
                if again is None or again.created != served.created:
                    return replace(served, created=None)
            return served
        except TryFailedError as failure:
            if failure.status is None:
                raise _unreachable_error(transport.base_url, failure) from None
            # The server is busy or still loads its model; later it may list its models.
            if time.monotonic() - began + _PAUSE > wait_s:
                raise NoAnswerError(
                    f"{transport.base_url}/models does not say which model is served: {failure}; try again later"
                ) from None
            on_status(f"{transport.base_url}/models: {failure}; asked again for {wait_s:.0f} s")
            await asyncio.sleep(_PAUSE)


def _unreachable_error(base_url: str, failure: TryFailedError) -> UnreachableError:
    return UnreachableError(
        f"no answer from {base_url} ({failure}); is the server up, and does the URL end in /v1?"
    )


async def require_still(transport: Transport, expected: ServedModel) -> None:
    """Ask the server once. Raises UserError if it serves another model; TryFailedError if it does not say which."""
    try:
        served = await _ask(transport, expected.id)
    except UnreadableListError as error:
        raise TryFailedError("invalid", str(error)) from None
    except NotListedError as error:
        raise _other_model_error(
            transport.base_url, f"{json.dumps(expected.to_json())} there; {error}"
        ) from None
    if served is None:  # a router lists no model while the servers behind it restart
        raise TryFailedError("server_error", f"{transport.base_url}/models lists no model now")
    if expected.created is None:
        served = replace(served, created=None)
    require_same(transport.base_url, expected, served)


def require_same(base_url: str, expected: ServedModel, served: ServedModel | None) -> None:
    """Raise UserError if `served` differs from `expected`, the model at the start of the run."""
    now = served.to_json() if served else {}
    if changed := differences(expected.to_json(), now):
        raise _other_model_error(base_url, "\n  ".join(changed))


def _other_model_error(base_url: str, what: str) -> UserError:
    return UserError(
        f"{base_url} serves another model than when the run began:\n  {what}\nfinished episodes are kept, the others "
        "are played again; serve the first model again, or choose another folder with -o DIR"
    )


def require_one(served: Mapping[str, ServedModel | None]) -> ServedModel | None:
    """Return the model that all servers (by URL) serve. Raises UserError if they serve different models.

    `created` is not compared: servers of the same model can report different times.
    """
    (first, model), *others = served.items()
    expected = _drop_date(model)
    for url, other in others:
        theirs = _drop_date(other)
        if expected != theirs:
            lines = [
                f"{key}: {expected.get(key)!r:.200} at {first}, {theirs.get(key)!r:.200} at {url}"
                for key in sorted(expected.keys() | theirs.keys())
                if expected.get(key) != theirs.get(key)
            ]
            raise UserError(
                "the endpoints serve different models:\n  "
                + "\n  ".join(lines)
                + "\ngive only servers of the same model, or evaluate each in a run of its own"
            )
    return model


def _drop_date(model: ServedModel | None) -> dict[str, str | int]:
    return {key: value for key, value in (model.to_json() if model else {}).items() if key != "created"}


async def _list_models(transport: Transport) -> dict[str, dict[str, Any]] | None:
    """Return the entries of `GET /models` by name; None if the endpoint has no such route."""
    url = transport.url("/models")
    try:
        status, headers, raw = await transport.send("GET", "/models", timeout=_LIST_S)
    except TryFailedError as failure:
        if failure.kind == "too_long":
            raise UnreadableListError(f"{url}: {failure}") from None
        raise
    if status in (401, 402, 403):
        reason = f"(HTTP {status}: {ServerError.of(status, raw).message})"
        if transport.has_key:
            raise UnreadableListError(f"{url} refuses the API key {reason}; see --api-key-env")
        raise UnreadableListError(f"{url} wants an API key {reason}; see --api-key-env{key_hint()}")
    if status in (408, 409, 425, 429) or (status >= 500 and status != 501):
        raise TryFailedError(
            "busy",
            f"HTTP {status}: {ServerError.of(status, raw).message}",
            retry_after(headers),
            status=status,
        )
    return None if status != 200 else _entries(url, raw)


async def _ask(transport: Transport, name: str) -> ServedModel | None:
    """Return the entry of the model in `GET /models`; None if the endpoint has no such route, or its list is empty."""
    models = await _list_models(transport)
    if models is None:
        return None
    if models and name not in models:
        some = sorted(models)
        more = f" and {len(some) - _SHOWN} more" if len(some) > _SHOWN else ""
        raise NotListedError(
            f"{transport.base_url}/models lists no model {name!r}; it lists: {', '.join(some[:_SHOWN])}{more} "
            "(choose with --model-name)"
        )
    if not models:
        return None
    return read_served_model(models[name])


def _entries(url: str, raw: bytearray) -> dict[str, dict[str, Any]]:
    """Read the entries of a list of models, by name. Raises UnreadableListError."""
    try:
        models = json.loads(raw)["data"]
        if not isinstance(models, list):
            raise TypeError("its data is no list")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UnreadableListError(
            f"{url} returns no list of models ({type(error).__name__}: {error})"
        ) from None
    return {
        entry["id"]: entry for entry in models if isinstance(entry, dict) and isinstance(entry.get("id"), str)
    }


def add_served_name(policy: PolicyConfig) -> PolicyConfig:
    """Return the configuration with the endpoint's only model as `model_name`. Raises UserError if the endpoint serves
    several models, or does not say which."""
    if not policy.is_endpoint or policy.model_name is not None:
        return policy
    key = read_key("--api-key-env", policy.api_key_env)
    names = run_to_end(_names(policy.endpoints[0].rstrip("/"), key, policy))
    if len(names) != 1:
        serves = (
            f"{policy.model} serves {len(names)} models: {', '.join(names[:8])}{', ...' * (len(names) > 8)}"
        )
        raise UserError(
            f"{serves if names else f'{policy.model} does not say which models it serves'}; an endpoint needs "
            "--model-name NAME, the name by which it serves the model"
        )
    return policy.model_copy(update={"model_name": names[0]})


async def _names(url: str, key: str | None, policy: PolicyConfig) -> list[str]:
    """Return the sorted names in `GET /models`; none if the endpoint has no such route. Raises UserError."""
    from evalharness.models.transport import Transport

    transport = Transport(url, key, connections=1, timeout=policy.timeout, headers=policy.headers)
    try:
        return sorted(await _list_models(transport) or ())
    except TryFailedError as failure:
        raise _unreachable_error(url, failure) from None
    finally:
        await transport.close()
