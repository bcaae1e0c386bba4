"""Where a run's time went, how near it came to the fastest it could have been, and what to do about it. Pure.

Efficiency = bound / wall. The bound is the largest of three times, none of which a run can beat:

* model: the time its requests took, if every slot at it had been taken all the time;
* environments: the CPU time of the simulators, spread over all cores;
* the longest single episode, at the speed of the quickest replies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from evalharness.base.timing import FamilyTimes
from evalharness.play.sizing import WORKERS_PER_CORE
from evalharness.records.summary import Bound, Concurrency, Event, Performance, Server

GOOD = 0.8
"""From this efficiency on there is nothing to advise."""
_SHORT = 60.0
"""Seconds: below that nothing that could be gained is worth reading about."""


@dataclass(frozen=True)
class Measured:
    """What one start of a run measured. Times in seconds."""

    wall_s: float
    cores: int
    families: Mapping[str, FamilyTimes]
    environment_cpu_s: Mapping[str, float]
    """CPU time of each family's workers, their start included."""
    workers: Mapping[str, int]
    client_cpu_s: float
    """CPU time of the harness's own process."""
    longest_episode_s: float
    allowed_slot_s: float
    """Slots at the model times seconds."""
    concurrency: int
    """Episodes in flight allowed at the end."""
    highest_concurrency: int
    pinned: bool
    given_workers: Mapping[str, int] = field(default_factory=dict)
    """`--workers`."""
    down_s: float = 0.0
    """The model's server was being started again."""
    server: Server | None = None
    """What the model's server said of itself (`ServerInsight.summary`)."""
    recycled_workers: int = 0
    lost_workers: int = 0
    overloads: int = 0
    events: Sequence[Event] = ()


def report(run: Measured, titles: Mapping[str, str]) -> Performance:
    bounds = _bounds(run)
    holding = max(bounds, key=lambda name: bounds[name])
    efficiency = min(1.0, bounds[holding] / run.wall_s) if run.wall_s > 0 else None
    return Performance(
        efficiency=efficiency,
        bound=holding,
        bounds_s=dict(bounds),
        time=_shares(run),
        episode_s=sum(times.wall_s for times in run.families.values()),
        families={family: _shares(run, family) for family in run.families},
        client_cpu_s_per_turn=run.client_cpu_s / turns if (turns := _turns(run)) else None,
        environment_cpu_s=dict(run.environment_cpu_s),
        workers=dict(run.workers),
        concurrency=Concurrency(final=run.concurrency, highest=run.highest_concurrency, pinned=run.pinned),
        server=run.server,
        advice=_advice(run, efficiency, bounds, titles),
        recycled_workers=run.recycled_workers,
        lost_workers=run.lost_workers,
        overloads=run.overloads,
        events=list(run.events),
    )


def _turns(run: Measured) -> int:
    return sum(times.turns for times in run.families.values())


def _bounds(run: Measured) -> dict[Bound, float]:
    model_s = sum(times.model_s for times in run.families.values())
    if run.server and 0 < (run.server.requests_s or 0) < model_s:
        model_s = run.server.requests_s or 0.0  # the server's own clock: our delays are not in it
    mean_slots = run.allowed_slot_s / run.wall_s if run.wall_s > 0 else 0.0
    return {
        "model": model_s / mean_slots if mean_slots else 0.0,
        "environments": sum(run.environment_cpu_s.values()) / run.cores,
        "longest_episode": run.longest_episode_s,
    }


def _shares(run: Measured, family: str | None = None) -> dict[str, float]:
    """Shares of the episodes' time, together 1."""
    chosen = [times for name, times in run.families.items() if family in (None, name)]
    parts = {
        "model": sum(times.model_s for times in chosen),
        "waiting_for_model": sum(times.slot_s for times in chosen),
        "environment": sum(times.environment_s for times in chosen),
        "starting_workers": sum(times.start_s for times in chosen),
        "waiting_for_worker": sum(times.worker_s for times in chosen),
        "client": sum(times.client_s for times in chosen),
    }
    whole = sum(parts.values())
    return {name: seconds / whole if whole else 0.0 for name, seconds in parts.items()}


def _advice(
    run: Measured, efficiency: float | None, bounds: Mapping[Bound, float], titles: Mapping[str, str]
) -> str | None:
    """One line, or None when the run was near its bound or too short to say."""
    if efficiency is None or run.wall_s < _SHORT:
        return None
    return _server_advice(run) if efficiency >= GOOD else _low_advice(run, bounds, titles)


def _server_advice(run: Measured) -> str | None:
    """A run at its bound may still be held back by what the server does with its memory."""
    server = run.server
    if not server:
        return None
    hits = server.prefix_cache_hit_rate
    if (server.preemptions or 0) > 0.02 * _turns(run):
        return (
            f"the server threw {server.preemptions} requests out of its full key-value cache: give it more "
            'memory (GPU: --vllm-args "--gpu-memory-utilization 0.95"; CPU: VLLM_CPU_KVCACHE_SPACE), or '
            f"--concurrency {max(1, run.concurrency // 2)}"
        )
    if hits is not None and hits < 0.5 and server.kv_cache_usage_peak > 0.9:
        return (
            f"only {hits:.0%} of the prompt tokens came from the prefix cache, which was full: give the server more "
            f"memory, or --concurrency {max(1, run.concurrency // 2)}"
        )
    return None


def _low_advice(run: Measured, bounds: Mapping[Bound, float], titles: Mapping[str, str]) -> str | None:
    if run.down_s > 0.2 * run.wall_s:
        return (
            f"the server was down for {run.down_s:.0f} s: it died and was started again; server.log says why"
        )
    shares = _shares(run)
    if run.pinned and shares["waiting_for_model"] > 0.25:
        return (
            f"waiting {shares['waiting_for_model']:.0%} for a slot at the model: "
            f"raise --concurrency {2 * run.concurrency}, or leave it out"
        )
    in_environments = shares["environment"] + shares["waiting_for_worker"]
    busy_s = bounds["environments"] + run.client_cpu_s / run.cores
    if in_environments < 0.25 or busy_s > 0.8 * run.wall_s:
        return None
    slow = max(run.families, key=lambda f: (run.families[f].worker_s + run.families[f].environment_s, f))
    own = run.families[slow]
    share = (own.worker_s + own.environment_s) / max(sum(t.wall_s for t in run.families.values()), 1e-9)
    given, most = run.given_workers.get(slow), WORKERS_PER_CORE * run.cores
    if given is None or given >= most:
        return None  # there were as many as idle cores could use
    return f"waiting {share:.0%} on {titles.get(slow, slow)} workers: leave out --workers {slow}={given} (up to {most})"
