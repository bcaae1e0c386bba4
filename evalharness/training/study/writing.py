"""What is left to have written by models, and what that takes as far as this study has seen it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalharness.base.errors import UserError
from evalharness.training.study.jobs import StudyProgress
from evalharness.training.study.plan import Job
from evalharness.training.synthesis.outcome import summarize

_KINDS = ("scripts", "trajectories")


@dataclass(frozen=True)
class Writing:
    """Of all scripts and trajectories of a study that are not finished."""

    left: Mapping[str, int]
    """Kind -> how many."""
    unseen: tuple[str, ...]
    """Kinds of which this study has none yet: the figures below leave them out."""
    prompt_tokens: float
    completion_tokens: float
    cost: float | None
    """In the currency of `prices`; None where a model has none."""

    def line(self) -> str:
        what = " and ".join(f"{number:,} {kind}" for kind, number in self.left.items() if number)
        if not what:
            return "synthesis: all is written"
        if set(self.unseen) == {kind for kind, number in self.left.items() if number}:
            return f"synthesis: {what} to write; tokens and cost are not known before the first"
        cost = "no prices given" if self.cost is None else f"cost {self.cost:,.2f}"
        more = f"; without {' and '.join(self.unseen)}, of which none is there yet" if self.unseen else ""
        return (
            f"synthesis: {what} to write, about {self.prompt_tokens / 1e6:,.2f} million prompt and "
            f"{self.completion_tokens / 1e6:,.2f} million completion tokens, {cost}{more}"
        )


def writing_left(progress: StudyProgress) -> Writing | None:
    """None where the study has nothing written. The mean of what is finished stands for what is not, of the same
    folder where it has begun, else of the study's others."""
    jobs = [job for job in progress.plan.jobs.values() if _kind(job)]
    if not jobs:
        return None
    seen = {job.name: found for job in jobs if (found := _summary(job.makes))}
    left = dict.fromkeys(_KINDS, 0)
    tokens, cost, unseen = {"prompt": 0.0, "completion": 0.0}, 0.0 if seen else None, set[str]()
    for job in jobs:
        kind, own = _kind(job), seen.get(job.name)
        todo = 0 if progress.states[job.name].status == "done" else _wanted(job, progress)
        todo = max(0, todo - (own["finished"] if own else 0))
        left[kind] += todo
        if not todo:
            continue
        known = (
            [own]
            if own
            else [seen[other.name] for other in jobs if _kind(other) == kind and other.name in seen]
        )
        count = sum(each["finished"] for each in known)
        if not count:
            unseen.add(kind)
            continue
        for name in tokens:
            tokens[name] += todo * sum(each["tokens"][name] for each in known) / count
        prices = [each["cost"] for each in known]
        cost = None if cost is None or None in prices else cost + todo * sum(prices) / count
    return Writing(left, tuple(sorted(unseen)), tokens["prompt"], tokens["completion"], cost)


def _kind(job: Job) -> str:
    return job.words[1] if job.words[0] == "refine" and job.words[1] in _KINDS else ""


def _wanted(job: Job, progress: StudyProgress) -> int:
    """A trajectory a script, where no number is given."""
    if "-n" in job.words:
        return int(job.words[job.words.index("-n") + 1])
    before = (progress.plan.jobs[name] for name in job.needs)
    return sum(_wanted(each, progress) for each in before if _kind(each))


def _summary(folder: Path) -> Mapping[str, Any] | None:
    """None before anything is finished there."""
    try:
        found = summarize(folder)
    except UserError:
        return None
    return found if found["finished"] else None
