"""The server's life: from the options to Ctrl-C."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web
from aiohttp.http_exceptions import BadHttpMessage

from evalharness.base.errors import UserError, nearest
from evalharness.envs.base import MAX_TURNS, EnvSpec, Suite
from evalharness.protocol.perturb import surfaces
from evalharness.protocol.prompt import load_prompts
from evalharness.suites.selection import families_of_all
from evalharness.training.envserver.application import Door, application, is_loopback
from evalharness.training.envserver.gate import Gate
from evalharness.training.envserver.pools import Pools
from evalharness.training.envserver.service import Service
from evalharness.training.envserver.session import Reward, Rules
from evalharness.training.envserver.tasks import Note, TaskTable, Wanted, load_table

TOKEN = "EVALHARNESS_ENV_TOKEN"
"""Variable with the token; without it one is made where one is needed."""


@dataclass(frozen=True)
class ServeOptions:
    """What `evalharness env serve` can be given."""

    families: str
    suite: Suite = "open"
    train_seeds: Sequence[int] = (1,)
    validation_seeds: Sequence[int] = (1001,)
    allow_eval_tasks: bool = False
    reward: Reward = "success"
    max_turns: int | None = None
    perturb: str | None = None
    prompts: Path | None = None
    keep_thinking: bool = False
    sessions: int = 256
    waiting: int = 64
    host: str = "127.0.0.1"
    port: int = 8000


@dataclass(frozen=True)
class Ready:
    """What a client needs."""

    url: str
    token: str | None
    table: TaskTable


def chosen_families(specs: Mapping[str, EnvSpec], name: str, suite: Suite) -> list[EnvSpec]:
    """Those that a name or `all` means. Raises UserError."""
    known = {family: spec for family, spec in specs.items() if spec.suites.expected.get("open")}
    if name == "all":
        return [known[family] for family in families_of_all(known, suite)]
    if name not in known:
        raise UserError(f"unknown family {name!r}{nearest(name, [*sorted(known), 'all'])}")
    return [known[name]]


def needed_token(host: str) -> str | None:
    """The one of the environment variable; a new one where others than this machine can connect."""
    given = os.environ.get(TOKEN, "").strip()
    if given and len(given) < 16:
        raise UserError(f"{TOKEN} has {len(given)} characters; give at least 16, or none and one is made")
    return given or (None if is_loopback(host) else secrets.token_urlsafe(24))


def make_service(options: ServeOptions, specs: Mapping[str, EnvSpec], data: Path, note: Note) -> Service:
    """Everything that can be wrong is found here, before anything is started. Raises UserError."""
    families = chosen_families(specs, options.families, options.suite)
    names = [spec.family for spec in families]
    prompts = load_prompts(families, options.prompts)
    spoken = surfaces(specs, names, options.perturb)
    wanted = Wanted(
        families, options.train_seeds, options.validation_seeds, options.suite, options.allow_eval_tasks
    )
    table = load_table(wanted, data, note)
    rules = Rules(
        {spec.family: spec for spec in families},
        prompts,
        spoken,
        {spec.family: options.max_turns or min(spec.own.max_turns, MAX_TURNS) for spec in families},
        options.keep_thinking,
    )
    pools = Pools(families, options.sessions, data)
    return Service(options.families, table, pools, rules, options.reward)


def _http_log() -> logging.Logger:
    """What is no HTTP was answered with status 400; a stranger must not fill the log with it."""
    log = logging.getLogger("evalharness.http")
    log.filters = [lambda record: not (record.exc_info and isinstance(record.exc_info[1], BadHttpMessage))]
    return log


async def serve(service: Service, options: ServeOptions, ready: Callable[[Ready], None]) -> None:
    """Until cancelled; `ready` hears of the address. Raises UserError when the port is taken."""
    token = needed_token(options.host)
    door = Door(Gate(options.sessions, options.waiting), token)
    runner = web.AppRunner(
        application(service, door), access_log=None, logger=_http_log(), shutdown_timeout=5.0
    )
    await runner.setup()
    try:
        # As many as may wait may also knock at the same moment.
        backlog = options.sessions + options.waiting
        await web.TCPSite(runner, options.host, options.port, backlog=backlog).start()
        host = f"[{options.host}]" if ":" in options.host else options.host
        warming = asyncio.ensure_future(service.pools.warm_up())
        ready(Ready(f"http://{host}:{runner.addresses[0][1]}", token, service.table))
        try:
            await asyncio.Event().wait()
        finally:
            warming.cancel()
    except OSError as error:
        raise UserError(
            f"cannot listen on {options.host}:{options.port}: {error.strerror}; choose another --port or --host"
        ) from None
    finally:
        await runner.cleanup()
        await service.pools.close()
