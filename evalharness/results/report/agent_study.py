"""A model under several agents, for a terminal 80 columns wide."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from evalharness.base.terminal import plain_table
from evalharness.base.text import printable
from evalharness.results.agent_study import AgentStudy
from evalharness.results.report.comparison import print_comparison, print_method, print_runs


def _rate(value: float, ci95: tuple[float, float]) -> str:
    low, high = (100 * end for end in ci95)
    return f"{100 * value:.1f} [{low:.1f}, {high:.1f}]"


def print_agent_study(console: Console, study: AgentStudy) -> None:
    agents = list(dict.fromkeys(row.agent for row in study.agents))
    name = printable(study.model, single_line=True)
    console.print(Text(f"{name}, {len(agents)} agents", style="bold"), soft_wrap=True)
    console.print(Text(f"suite {study.suite}, at most {study.max_turns} turns", style="dim"))
    for family in dict.fromkeys(row.family for row in study.agents):
        console.print()
        title = printable(study.titles.get(family, family), single_line=True)
        table = plain_table(title, "n", "success % [95 %]", "progress % [95 %]", "turns", "calls", "tokens")
        for row in study.agents:
            if row.family == family:
                table.add_row(
                    Text(f"  {printable(row.agent, single_line=True)}"),
                    str(row.tasks) if row.tasks == row.selected else f"{row.tasks}/{row.selected}",
                    _rate(row.success, row.success_ci95),
                    _rate(row.progress, row.progress_ci95),
                    f"{row.turns:.1f}",
                    f"{row.calls:.1f}",
                    f"{row.prompt_tokens + row.completion_tokens:,.0f}",
                )
        console.print(table)
    console.print(
        Text("turns, model calls and tokens (read and written): of an episode, mean", style="dim"),
    )
    if study.comparisons:
        console.print()
        print_runs(console, study.comparisons)
        for comparison in study.comparisons:
            print_comparison(console, comparison)
            console.print()
        print_method(console, study.comparisons)
