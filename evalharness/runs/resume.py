"""Decide how a run continues, in this order (`runs.evaluation.evaluate` calls the functions):

* The options name the folder, so the same command finds its run (`RunConfig.folder`).
* If no server answers and no episodes are left, the stored scores are shown (`prepare_or_stored`).
* An endpoint that named its model when the run began must still name it (`require_named_model`).
* A folder of other files, or of a run that is being played, is refused (`RunStore.__enter__`).
* A run is continued if its identity is the same, and refused otherwise (`RunStore.load_or_refuse`). More samples may
  join, and more tasks (`identity_of_fewer_tasks`).
* Finished episodes are kept, including failed ones; every other episode is played (`jobs_left`).
* A finished run carries out `--repeat-check` only once (`check_left`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from evalharness.base.errors import UserError
from evalharness.base.redaction import redact
from evalharness.config import RunConfig
from evalharness.envs.base import EnvSpec, Task
from evalharness.models.base import Policy
from evalharness.models.opened import Prepared, no_policy
from evalharness.models.resolve import prepare
from evalharness.models.served import UnreachableError
from evalharness.models.serving.model_server import SharedServers
from evalharness.play.scheduler import PendingEpisode
from evalharness.records.identity import make_identity
from evalharness.records.manifest import Manifest
from evalharness.records.store import EpisodeKey, find_manifest
from evalharness.runs.selected import selected_tasks
from evalharness.suites.selection import load_existing_tasks


def prepare_or_stored(
    config: RunConfig,
    specs: Mapping[str, EnvSpec],
    on_status: Callable[[str], None],
    serve: SharedServers | None = None,
    person: Policy | None = None,
) -> Prepared:
    """Prepare the model. If no server answers, use the model named in the run's folder, to show the stored results."""
    try:
        prepared = prepare(
            config.policy, specs, on_status, agent=config.agent, outside=config.outside,
            serve=serve, person=person,
        )  # fmt: skip
    except UnreachableError as error:
        for folder, manifest in _read_stored_runs(config, config.policy.model.rstrip("/")):
            left = UserError(
                f"{error}\nepisodes are left to play; to show the finished ones: evalharness show {folder}"
            )
            return Prepared(manifest.identity.model, no_policy, missing=left)
        raise
    require_named_model(config, prepared)
    return prepared


def require_named_model(config: RunConfig, prepared: Prepared) -> None:
    """Raise UserError if the endpoint named its model when the run began, and does not name a model now."""
    if not config.policy.is_endpoint or "served" in prepared.identity:
        return
    for folder, manifest in _read_stored_runs(config, prepared.address):
        served = manifest.identity.model.get("served")
        same_server = any(
            set(map(redact, config.policy.endpoints)) & set(session.operation.endpoints)
            for session in manifest.sessions
        )
        if served and (same_server or config.execution.output is not None):
            raise UserError(
                f"{', '.join(config.policy.endpoints)} has no list of models that can be read, and {folder} holds a "
                f"run of {json.dumps(served)}: the server may serve another model now; "
                "make the list (GET /models) readable again, or choose another folder with -o DIR"
            )


def _read_stored_runs(config: RunConfig, address: str | None) -> Iterator[tuple[Path, Manifest]]:
    """Yield the existing folders that the run can have, with their manifests. A folder's name can contain `address`."""
    for folder in (config.folder(), config.folder(address)):
        if (manifest := find_manifest(folder)) is not None:
            yield folder, manifest


def identity_of_fewer_tasks(
    config: RunConfig,
    earlier: Manifest | None,
    specs: Mapping[str, EnvSpec],
    tasks: Mapping[str, Sequence[Task]],
    manifest: Manifest,
    data: Path | None,
) -> dict[str, Any] | None:
    """Return the identity of this run restricted to the tasks of the `earlier` run (`--tasks`, `--limit`, `--draw`). If
    the earlier run has this identity, it is continued with more tasks. Return None if no restriction is needed, or if
    the earlier run has a task that this run does not have."""
    if earlier is None:
        return None
    options = earlier.config
    changed = config.with_options(tasks=options.tasks or "all", limit=options.limit, draw=options.sample)
    if changed.selection == config.selection:
        return None
    try:
        fewer, _ = selected_tasks(specs, changed.selection, data, load_existing_tasks)
    except UserError:  # for example, a family is not installed, or a suite has not been generated here
        return None
    if not all({t.id for t in own} <= {t.id for t in tasks.get(family, ())} for family, own in fewer.items()):
        return None
    identity = manifest.identity
    prompts = {family: sha256 for family, sha256 in identity.prompts_sha256.items() if family in fewer}
    limits = {family: changed.agent.turn_limit(specs[family]) for family in fewer}
    return make_identity(changed.identity(), fewer, limits, prompts, identity.model)


def jobs_left(
    tasks: Mapping[str, Sequence[Task]],
    samples: int,
    turn_limits: Mapping[str, int],
    done: Collection[EpisodeKey],
) -> list[PendingEpisode]:
    return [
        PendingEpisode(task, sample, float(turn_limits[family]))
        for family, own in tasks.items()
        for task in own
        for sample in range(samples)
        if (task.id, sample) not in done
    ]


def check_left(config: RunConfig, earlier: Manifest | None, prepared: Prepared) -> bool:
    """Return whether the earlier run must still carry out `--repeat-check`, and a server answers."""
    if not config.repeat_turns or prepared.missing or earlier is None:
        return False
    return earlier.repeat_check is None
