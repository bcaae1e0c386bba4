"""Run the server from its options until Ctrl-C."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from evalharness.base.errors import UserError, nearest
from evalharness.door.door import Door, is_loopback, is_one_of, listen, require_address
from evalharness.envs.base import MAX_TURNS, EnvSpec, Suite
from evalharness.models.event_loop import run_to_end
from evalharness.protocol.drawn import drop_random_name
from evalharness.protocol.perturb import surfaces
from evalharness.protocol.perturbation_names import RANDOM
from evalharness.protocol.prompt import load_prompts
from evalharness.rl.server.application import application
from evalharness.rl.server.gate import Gate
from evalharness.rl.server.pools import Pools
from evalharness.rl.server.service import Service
from evalharness.rl.server.session import EpisodeRules, Reward
from evalharness.rl.server.tasks import Note, RequestedTasks, TaskTable, load_table
from evalharness.suites.selection import families_of_all

TOKEN = "EVALHARNESS_ENV_TOKEN"
"""Environment variable with the token. If it is not set and the host is not local, a token is created."""
_FLAGS = "--port or --host"


@dataclass(frozen=True)
class ServeOptions:
    """The options of `evalharness env serve`."""

    name: str
    """The environment's name in URL paths, such as `/NAME/tasks`."""
    tasks: RequestedTasks
    reward: Reward = "success"
    max_turns: int | None = None
    perturb: str | None = None
    """Name of a rewording of actions; `random` means a new rewording for each episode of `train`."""
    seed: int = 0
    """Seed of the random wordings."""
    prompts: Path | None = None
    keep_thinking: bool = False
    sessions: int = 256
    waiting: int = 64
    host: str = "127.0.0.1"
    port: int = 8000


@dataclass(frozen=True)
class RunningServer:
    """What a client needs to connect."""

    url: str
    token: str | None
    table: TaskTable


def select_families(specs: Mapping[str, EnvSpec], name: str, suite: Suite) -> list[EnvSpec]:
    """Return the family called `name`, or all families for `all`. Raises UserError for an unknown name."""
    known = {family: spec for family, spec in specs.items() if spec.suites.expected.get("open")}
    if name == "all":
        return [known[family] for family in families_of_all(known, suite)]
    if name not in known:
        raise UserError(f"unknown family {name!r}{nearest(name, [*sorted(known), 'all'])}")
    return [known[name]]


def serve(
    options: ServeOptions,
    specs: Mapping[str, EnvSpec],
    data: Path,
    note: Note,
    ready: Callable[[RunningServer], None],
) -> None:
    """Serve until Ctrl-C; call `ready` with the address. Raises UserError, KeyboardInterrupt."""
    token = _make_token(needed=not is_loopback(options.host))
    require_address(options.host, options.port, _FLAGS)
    run_to_end(_serve(_service(options, specs, data, note), options, token, ready))


def _service(options: ServeOptions, specs: Mapping[str, EnvSpec], data: Path, note: Note) -> Service:
    """Load the tasks and make the service. Raises UserError before any environment is started."""
    families = options.tasks.families
    if options.tasks.allow_eval_tasks and options.perturb == RANDOM:
        raise UserError("--perturb random is only for training tasks; remove --allow-eval-tasks")
    names = [spec.family for spec in families]
    prompts = load_prompts(families, options.prompts)
    spoken = surfaces(specs, names, drop_random_name(options.perturb))
    table = load_table(options.tasks, data, note, options.seed)
    rules = EpisodeRules(
        {spec.family: spec for spec in families},
        prompts,
        spoken,
        {spec.family: options.max_turns or min(spec.own.max_turns, MAX_TURNS) for spec in families},
        options.keep_thinking,
        options.seed if options.perturb == RANDOM else None,
    )
    pools = Pools(families, options.sessions, data)
    return Service(options.name, table, pools, rules, options.reward)


async def _serve(
    service: Service, options: ServeOptions, token: str | None, ready: Callable[[RunningServer], None]
) -> None:
    """Serve until cancelled. Raises UserError if the port is taken."""
    door = Door() if token is None else Door(lambda given: is_one_of(given, [token]))
    gate = Gate(options.sessions, options.waiting)
    # All clients, waiting ones included, may connect at the same moment.
    backlog = options.sessions + options.waiting
    try:
        async with listen(
            application(service, door, gate),
            options.host,
            options.port,
            backlog=backlog,
            flags=_FLAGS,
            cancel_when_gone=True,
        ) as url:
            warming = asyncio.ensure_future(service.pools.warm_up())
            ready(RunningServer(url, token, service.table))
            try:
                await asyncio.Event().wait()
            finally:
                warming.cancel()
    finally:
        await service.pools.close()


def _make_token(*, needed: bool) -> str | None:
    """Return the token of the environment variable, or a new one if one is needed. Raises UserError."""
    given = os.environ.get(TOKEN, "").strip()
    if given and len(given) < 16:
        raise UserError(
            f"{TOKEN} has {len(given)} characters; give at least 16, or unset it to get a random token"
        )
    return given or (secrets.token_urlsafe(24) if needed else None)
