"""Compare a run's evaluation protocol (agent, suite, labels, turns) with the protocol of the paper's rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evalharness.base.grouping import group_by_key
from evalharness.results.deviations import deviations
from evalharness.results.leaderboard.standing_rows import Benchmark
from evalharness.results.scored_run import ScoredRun

AGENT = "react"
"""The agent of the published rows: a thought and an action as lines of text."""


@dataclass(frozen=True)
class Aspect:
    """One aspect in which protocols can differ."""

    name: str
    value: str
    published: str | None
    """The value in the published rows; None if the paper does not state it, or if it does not apply to them."""

    @property
    def differs(self) -> bool:
        return self.published is not None and self.value != self.published

    def __str__(self) -> str:
        return f"{self.name} {self.value}" + (f" (published: {self.published})" if self.differs else "")


def list_aspects(run: ScoredRun, benchmark: Benchmark, *, perturbation: bool = True) -> list[Aspect]:
    """Return the agent, suite, origin of labels and turn limit of the run, and all else that differs from the defaults.

    `perturbation`: pass False for a table whose columns are perturbations.
    """
    listed = [
        Aspect("agent", run.agent, AGENT),
        Aspect("suite", run.suite, run.suite if run.suite in benchmark.suites else benchmark.suite),
        Aspect("labels", _describe_labels(run.task_labels, run.titles), "official"),
        Aspect("turns", str(run.max_turns), str(benchmark.max_turns)),
    ]
    if perturbation and run.perturbation:
        listed.append(Aspect("perturbation", run.perturbation, "none"))
    parts = deviations(run.identity, benchmark.prompts, run.titles, run.scores)
    listed += [Aspect("with", part, "") for part in parts]
    if missing := run.incomplete:
        listed.append(Aspect("only", missing, None))
    return listed


def _describe_labels(labels: Mapping[str, str], titles: Mapping[str, str]) -> str:
    """Return whose progress labels the run uses: `official`, or `official, ours for Jericho`."""
    whose = group_by_key((label, titles.get(family, family)) for family, label in labels.items())
    if len(whose) == 1:
        return next(iter(whose))
    parts = [f"{label} for {', '.join(names)}" for label, names in whose.items() if label != "official"]
    return ", ".join((["official"] if "official" in whose else []) + parts)


def describe_aspects(aspects: Sequence[Aspect]) -> tuple[str, ...]:
    """Return the aspects as texts for a legend."""
    return tuple(each.value if each.name == "with" else str(each) for each in aspects)


def differ(aspects: Sequence[Aspect]) -> bool:
    """Return whether the run's protocol differs from the published rows'. Missing tasks are no difference."""
    return any(each.differs for each in aspects)
