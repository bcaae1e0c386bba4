"""A policy before it is started, and at work."""

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
    """A policy at work."""

    policy: Policy
    failure: Callable[[], str | None] = lambda: None
    """Why the policy can never answer again; None while it can."""
    facts: Mapping[str, Any] | None = None
    """Facts known only after the start: the server's version and arguments."""
    metrics: Callable[[], Sequence[str]] = lambda: ()
    """Return the URLs of the metrics pages of the servers that are up."""


@dataclass(frozen=True)
class Prepared:
    """All that could be checked about a policy before anything is started or written."""

    identity: Mapping[str, Any]
    """Tells models apart in the manifest; never holds a key."""
    open: Callable[[Path, Reports], AbstractAsyncContextManager[Opened]]
    """(run folder, who hears what happens) -> the policy, started."""

    server: Callable[[], str] = lambda: ""
    """Who is asked, or the command line of the vLLM that would be started; for people."""

    missing: UserError | None = None
    """No server answers: it cannot be opened, and what a run with episodes left ends in."""

    @property
    def address(self) -> str | None:
        """The endpoint's URL, where its server does not say which model it serves: then nothing else tells two models
        of one name apart. None everywhere else."""
        return self.identity.get("url")


def no_policy(folder: Path, reports: Reports) -> AbstractAsyncContextManager[Opened]:
    """`open` of what is `missing`."""
    raise AssertionError("nothing answers")
