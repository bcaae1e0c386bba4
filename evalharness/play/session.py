"""Play one session of a run (`sessions` in manifest.json): open the policy, play the jobs, store the episodes."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from evalharness.base.errors import InfrastructureError
from evalharness.base.machine import usable_cores
from evalharness.models.opened import Opened, Prepared, Reports
from evalharness.models.replicas import Replicas
from evalharness.models.serving.metrics import ServerInsight
from evalharness.models.tries import AbortedError
from evalharness.play.efficiency import Measured, report
from evalharness.play.episodes import Episodes, Work
from evalharness.play.progress import Progress
from evalharness.play.repeat_check import check_repeats
from evalharness.play.scheduler import PendingEpisode, Scheduler
from evalharness.play.sizing import make_pools, request_slots
from evalharness.records.episode import Episode
from evalharness.records.files import CONFIG
from evalharness.records.manifest import Manifest
from evalharness.records.store import RunStore, read_manifest, write_atomically
from evalharness.records.summary import Event, Timing

_LOG = logging.getLogger("evalharness")


@dataclass(frozen=True)
class SessionResult:
    """The result of a session."""

    stopped: str | None
    """Why the session ended before every episode was tried; None if all were tried."""
    timing: Timing


class RunSession:
    """A session of a run. `__init__` makes the slots and the pools; `play` opens the policy and is called once."""

    def __init__(self, work: Work, store: RunStore, progress: Progress) -> None:
        self.work = work
        self.store = store
        self.progress = progress
        self.cores = usable_cores()
        workers = work.execution.workers
        self.slots = request_slots(work.policy, sum(workers.values()), len(work.jobs), self.cores)
        self.pools = make_pools(
            workers, work.specs, work.jobs, self.cores,
            scripted=work.policy.is_scripted, data=work.data, log=store.folder / "workers.log",
        )  # fmt: skip
        self.events: list[Event] = []
        """Deaths and restarts of servers."""

    async def play(
        self, prepared: Prepared, manifest: Manifest, on_folder: Callable[[Path], None]
    ) -> SessionResult:
        """Play all jobs. `on_folder` is called with the run's folder after its manifest is written. Raises UserError,
        StoreError, and InfrastructureError if the policy cannot be opened."""
        async with self._open_policy(prepared) as opened:
            self.store.begin(manifest.with_model_facts(opened.facts or {}).to_json())
            write_atomically(self.store.folder / CONFIG, self.work.resolved)
            on_folder(self.store.folder)
            sessions = len(read_manifest(self.store.folder).sessions)
            stopped, measured = await self._play_jobs(opened)
            if self.work.repeat_turns and stopped is None and isinstance(opened.policy, Replicas):
                self.progress.status = "asking turns again (--repeat-check)"
                self.store.note_repeat_check(await check_repeats(self.work, self.store.folder, opened.policy))
        # `pool.cpu_s` is final now: the last measurement was made when the pools were closed.
        cpu_s = {family: pool.cpu_s for family, pool in self.pools.items()}
        return SessionResult(stopped, self._timing(replace(measured, environment_cpu_s=cpu_s), sessions))

    @asynccontextmanager
    async def _open_policy(self, prepared: Prepared) -> AsyncIterator[Opened]:
        """Open the policy; at the end, close the policy and the pools."""
        reports = Reports(
            status=self._set_status,
            event=self._note_event,
            overload=self._note_overload,
            retry=self._note_retry,
        )
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._close_pools)
            if not self.work.policy.is_scripted and not self.work.policy.is_endpoint:
                # Start the workers while vLLM loads the model.
                imports = asyncio.gather(*(pool.warm_up() for pool in self.pools.values()))
                stack.callback(imports.cancel)
            try:
                opened = await stack.enter_async_context(prepared.open(self.store.folder, reports))
            finally:
                self.progress.status = ""
            yield opened

    async def _close_pools(self) -> None:
        await asyncio.gather(*(pool.close() for pool in self.pools.values()))

    async def _play_jobs(self, opened: Opened) -> tuple[str | None, Measured]:
        """Return why the session ended before every job was tried (or None), and the measurements. The time counts from
        the start of the first episode to the end of the last episode."""
        work, progress, pools = self.work, self.progress, self.pools
        insight = ServerInsight(
            opened.metrics,
            on_preempted=self.slots.note_preemption,
            on_cache=self.slots.set_cache,
        )
        episodes = Episodes(work, opened, self.slots, progress, on_notice=self._notice)
        scheduler = Scheduler(
            pools=pools,
            play=episodes.play,
            on_episode=self._keep,
            on_failure=self._note_failure,
            slots=self.slots,
            tries=work.limits.tries,
            cores=self.cores,
            policy_alive=opened.failure,
            stop_reason=work.clock.stop_reason,
        )
        progress.started, allowed_before = time.monotonic(), self.slots.allowed_slot_s()
        progress.turns_left = {job.key: job.expected_turns for job in work.jobs}
        progress.engine = lambda: self._line(insight)
        cpu_before, stopped = time.process_time(), None
        watching = asyncio.create_task(insight.watch())
        try:
            await scheduler.run(work.jobs)
        except AbortedError as error:
            stopped = str(error)
        finally:
            wall_s, cpu_s = progress.elapsed, time.process_time() - cpu_before
            allowed_s = self.slots.allowed_slot_s() - allowed_before
            watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watching
        return stopped, Measured(
            wall_s=wall_s,
            cores=self.cores,
            families={family: pool.times for family, pool in pools.items()},
            environment_cpu_s={},
            workers={family: pool.size for family, pool in pools.items()},
            client_cpu_s=cpu_s,
            longest_episode_s=episodes.longest_s,
            allowed_slot_s=allowed_s,
            concurrency=self.slots.limit,
            highest_concurrency=self.slots.most,
            pinned=self.slots.pinned,
            server=insight.summary(wall_s),
            recycled_workers=sum(pool.recycled for pool in pools.values()),
            lost_workers=sum(pool.lost_workers for pool in pools.values()),
            overloads=self.slots.overloads,
            events=self.events,
        )

    def _keep(self, episode: Episode) -> None:
        self.store.append(episode)
        self.progress.finish(episode)

    def _notice(self, text: str) -> None:
        _LOG.warning(text)
        self.store.notice(text)

    def _set_status(self, text: str) -> None:
        self.progress.status = text

    def _note_overload(self) -> None:
        self.progress.refusals += 1
        self.slots.count_overload()

    def _note_retry(self) -> None:
        self.progress.retries += 1

    def _note_event(self, text: str) -> None:
        self.events.append(Event(at_s=round(self.progress.elapsed, 1), event=text))

    def _note_failure(
        self, job: PendingEpisode, number: int, error: InfrastructureError, final: bool
    ) -> None:
        about = {"task_id": job.task.id, "sample": job.sample}
        self.store.append_failure(about, number, error, final)
        self.progress.status = f"{job.task.id}, try {number}: {str(error).splitlines()[0]}"
        if final:
            self.progress.give_up(job.task.family, job.task.id, job.sample)

    def _line(self, insight: ServerInsight) -> str:
        """Return the line of the live view that shows the requests in flight and the load of the server."""
        slots = self.slots
        parts = [f"{slots.episodes} episode{'' if slots.episodes == 1 else 's'} in flight"]
        if not self.work.policy.is_scripted:
            parts = [f"{slots.busy} of {slots.limit} slots at the model taken"]
        if (now := insight.now) is not None:
            server = f"server {now.running:.0f} running, {now.waiting:.0f} waiting, KV {now.kv_usage:.0%}"
            if (hits := insight.prefix_hit_rate) is not None:
                server += f", prefix cache {hits:.0%}"
            parts += [server, f"{insight.prompt_rate:.0f}+{insight.generation_rate:.0f} tokens/s"]
        return " · ".join(parts)

    def _timing(self, measured: Measured, sessions: int) -> Timing:
        performance = report(measured)
        return Timing(
            wall_s=measured.wall_s,
            sessions=sessions,
            efficiency=performance.efficiency,
            performance=performance,
        )
