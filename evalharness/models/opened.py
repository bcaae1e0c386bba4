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
    """Who hears what happens while a policy works."""

    status: Status = lambda text: None
    """One line on what goes on."""
    event: Status = lambda text: None
    """A server died, came back, was given up: to be kept."""
    overload: Callable[[], None] = lambda: None
    """A request was refused with 429 or 503."""
    retry: Callable[[], None] = lambda: None
    """A request that failed is asked again."""


SILENT = Reports()
"""Nobody hears it."""


@dataclass(frozen=True)
class Opened:
    """A policy at work."""

    policy: Policy
    failure: Callable[[], str | None] = lambda: None
    """Why the policy can never answer again; None while it can."""
    facts: Mapping[str, Any] | None = None
    """What is only known once it runs: the server's version and arguments."""
    metrics: Callable[[], Sequence[str]] = lambda: ()
    """Where the servers that are up now tell how busy they are."""


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
