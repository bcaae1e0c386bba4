"""One model under several agents: scores with intervals, what they cost, and each against the first, paired by task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from evalharness import stats
from evalharness.records.store import read_episodes
from evalharness.results.comparison import Comparison, compare_runs
from evalharness.results.difference import columns_of
from evalharness.results.score import MEASURES
from evalharness.results.scored_run import ScoredRun

SCHEMA = 1


@dataclass(frozen=True)
class AgentRow:
    """An agent on a family. Rates are fractions 0..1."""

    agent: str
    family: str
    tasks: int
    """Played; means over samples first."""
    selected: int
    success: float
    success_ci95: tuple[float, float]
    progress: float
    progress_ci95: tuple[float, float]
    turns: float
    """Of an episode, mean; of an agent with several trials those of all."""
    calls: float
    """Of the model, an episode: one a turn, and what the agent asked besides."""
    prompt_tokens: float
    """An episode; of all calls, as the server counts."""
    completion_tokens: float


@dataclass(frozen=True)
class AgentStudy:
    model: str
    suite: str
    max_turns: int
    titles: dict[str, str]
    agents: tuple[AgentRow, ...]
    comparisons: tuple[Comparison, ...]
    """Of each agent with the first; Holm's correction is over all of them."""

    def rows(self) -> list[dict[str, Any]]:
        """A flat row an agent and family, the paired differences beside."""
        found = {
            (comparison.run.agent, d.family, d.measure): d
            for comparison in self.comparisons
            for d in comparison.differences
        }
        rows = []
        for agent in self.agents:
            row = asdict(agent)
            for measure in MEASURES:
                row[f"{measure}_ci95_low"], row[f"{measure}_ci95_high"] = row.pop(f"{measure}_ci95")
                row |= columns_of(measure, found.get((agent.agent, agent.family, measure)))
            rows.append(row)
        return rows

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "model": self.model,
            "suite": self.suite,
            "max_turns": self.max_turns,
            "agents": [asdict(row) for row in self.agents],
            "comparisons": [comparison.to_json() for comparison in self.comparisons],
        }


def agent_study(runs: Sequence[ScoredRun]) -> AgentStudy:
    """The first run is the baseline. Raises UserError where the runs are not of one protocol."""
    first = runs[0]
    return AgentStudy(
        model=first.name,
        suite=first.suite,
        max_turns=first.max_turns,
        titles=dict(first.titles),
        agents=tuple(row for run in runs for row in _rows(run)),
        comparisons=tuple(compare_runs(runs)) if len(runs) > 1 else (),
    )


def _rows(run: ScoredRun) -> list[AgentRow]:
    played: dict[str, list[tuple[float, ...]]] = {}
    for episode in read_episodes(run.folder):
        calls = sum(1 for _ in episode.model_calls)
        cost = (len(episode.all_turns), calls, episode.prompt_tokens, episode.completion_tokens)
        played.setdefault(episode.family, []).append(cost)
    rows = []
    for family, costs in played.items():
        if not (tasks := run.family_tasks.get(family)):
            continue
        values = {measure: [getattr(task, measure) for task in tasks] for measure in MEASURES}
        turns, asked, prompt, completion = (fmean(column) for column in zip(*costs, strict=True))
        rows.append(
            AgentRow(
                agent=run.agent,
                family=family,
                tasks=len(tasks),
                selected=run.manifest.counts.get(family, 0),
                success=fmean(values["success"]),
                success_ci95=stats.rate_interval(values["success"], binary=True),
                progress=fmean(values["progress"]),
                progress_ci95=stats.rate_interval(values["progress"], binary=False),
                turns=turns,
                calls=asked,
                prompt_tokens=prompt,
                completion_tokens=completion,
            )
        )
    return rows
