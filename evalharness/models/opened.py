"""A policy that is checked but not started, and a started one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalharness.base.errors import UserError
from evalharness.models.base import Policy

Status = Callable[[str], None]


@dataclass(frozen=True)
class Reports:
    """Callbacks for events while a policy works."""

    status: Status = lambda text: None
    """Called with one line of status."""
    event: Status = lambda text: None
    """Called with one line to store: a server died, came back or was given up."""
    overload: Callable[[], None] = lambda: None
    """Called if a request was refused with 429 or 503."""
    retry: Callable[[], None] = lambda: None
    """Called if a failed request is sent again."""


SILENT = Reports()
"""Callbacks that do nothing."""


@dataclass(frozen=True)
class Opened:
    """A started policy."""

    policy: Policy
    failure: Callable[[], str | None] = lambda: None
    """Why the policy can never answer again; None while it can."""
    facts: Mapping[str, Any] | None = None
    """Facts known only after the start: the server's version and arguments."""
    metrics: Callable[[], Sequence[str]] = lambda: ()
    """Return the URLs of the metrics pages of the servers that are up."""


@dataclass(frozen=True)
class Prepared:
    """A policy that passed all checks that are possible before anything is started or written."""

    identity: Mapping[str, Any]
    """Identifies the model in the manifest; never contains a key."""
    open: Callable[[Path, Reports], AbstractAsyncContextManager[Opened]]
    """(run folder, callbacks) -> the started policy."""

    server: Callable[[], str] = lambda: ""
    """Return the endpoints, or the command line of the vLLM that would be started; for people."""

    missing: UserError | None = None
    """The error if no server answers. A run with episodes left raises it instead of calling `open`."""

    @property
    def address(self) -> str | None:
        """The endpoint's URL if its server does not say which model it serves: then only the URL distinguishes two
        models of the same name. None otherwise."""
        return self.identity.get("url")


def no_policy(folder: Path, reports: Reports) -> AbstractAsyncContextManager[Opened]:
    """Never called: the `open` of a policy whose `missing` is set."""
    raise AssertionError("nothing answers")
