"""Compute how a run's time was spent, and compare the run's duration with a lower bound.

Efficiency = bound / duration. The bound is the largest of these three times, because no run can be faster:

* model: the total time of its requests, divided by the number of slots;
* environments: the CPU time of the simulators, divided by the number of cores;
* the longest single episode, at the speed of the fastest replies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evalharness.base.timing import FamilyTimes
from evalharness.records.summary import Bound, Concurrency, Event, Performance, Server


@dataclass(frozen=True)
class Measured:
    """The measurements of one session of a run. Times are in seconds."""

    wall_s: float
    cores: int
    families: Mapping[str, FamilyTimes]
    environment_cpu_s: Mapping[str, float]
    """CPU time of each family's workers, including their start."""
    workers: Mapping[str, int]
    client_cpu_s: float
    """CPU time of the main process, which sends the requests."""
    longest_episode_s: float
    allowed_slot_s: float
    """Mean number of slots at the model, multiplied by the session's seconds."""
    concurrency: int
    """Maximum number of episodes in flight at the end of the session."""
    highest_concurrency: int
    pinned: bool
    server: Server | None = None
    """Metrics of the model's server (`ServerInsight.summary`)."""
    recycled_workers: int = 0
    lost_workers: int = 0
    overloads: int = 0
    events: Sequence[Event] = ()


def report(run: Measured) -> Performance:
    bounds = _bounds(run)
    largest = max(bounds, key=lambda name: bounds[name])
    efficiency = min(1.0, bounds[largest] / run.wall_s) if run.wall_s > 0 else None
    return Performance(
        efficiency=efficiency,
        bound=largest,
        bounds_s=dict(bounds),
        time=_shares(run),
        episode_s=sum(times.wall_s for times in run.families.values()),
        families={family: _shares(run, family) for family in run.families},
        client_cpu_s_per_turn=run.client_cpu_s / turns if (turns := _turns(run)) else None,
        environment_cpu_s=dict(run.environment_cpu_s),
        workers=dict(run.workers),
        concurrency=Concurrency(final=run.concurrency, highest=run.highest_concurrency, pinned=run.pinned),
        server=run.server,
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
        model_s = run.server.requests_s or 0.0  # without the delays that the client adds
    mean_slots = run.allowed_slot_s / run.wall_s if run.wall_s > 0 else 0.0
    return {
        "model": model_s / mean_slots if mean_slots else 0.0,
        "environments": sum(run.environment_cpu_s.values()) / run.cores,
        "longest_episode": run.longest_episode_s,
    }


def _shares(run: Measured, family: str | None = None) -> dict[str, float]:
    """Return the share of each activity in the episodes' time. The shares add up to 1."""
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
