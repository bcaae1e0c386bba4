"""Define a policy before its start (`Prepared`) and after its start (`Opened`)."""

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
    """Called with one line about an event of a server (death, restart, end of restarts); the run stores the line."""
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
    """Return why the policy can never answer again; None while the policy can answer."""
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
    """Return the endpoints, or the command line of the vLLM that `open` starts, as text for the user."""

    missing: UserError | None = None
    """Error if no server answers. A run with unplayed episodes raises this error instead of calling `open`."""

    @property
    def address(self) -> str | None:
        """URL of an endpoint whose server does not report which model it serves; None for other models. Only the URL
        distinguishes two such models of the same name."""
        return self.identity.get("url")


def no_policy(folder: Path, reports: Reports) -> AbstractAsyncContextManager[Opened]:
    """Never called: the `open` of a policy whose `missing` is set."""
    raise AssertionError("nothing answers")
