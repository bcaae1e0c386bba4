"""A model under several agents, or under several seeds, for a terminal 80 columns wide."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from evalharness.base.terminal import plain_table, remark
from evalharness.base.text import printable
from evalharness.results.agent_study import AgentStudy
from evalharness.results.html.document import percent
from evalharness.results.report.comparison import print_comparison, print_head, print_method, print_runs
from evalharness.results.score import HELD_OUT, MEASURES
from evalharness.results.seeds import SeedRow, SeedStudy


def print_agent_study(console: Console, study: AgentStudy) -> None:
    agents = list(dict.fromkeys(row.agent for row in study.agents))
    about = f"suite {study.suite}, at most {study.max_turns} turns"
    print_head(console, f"{study.model}, {len(agents)} agents", about)
    for number, family in enumerate(dict.fromkeys(row.family for row in study.agents)):
        if number:
            console.print()
        title = printable(study.titles.get(family, family), single_line=True)
        table = plain_table(title, "n", "success % [95 %]", "progress % [95 %]", "turns", "calls", "tokens")
        for row in study.agents:
            if row.family == family:
                table.add_row(
                    Text(f"  {printable(row.agent, single_line=True)}"),
                    str(row.tasks) if row.tasks == row.selected else f"{row.tasks}/{row.selected}",
                    percent(row.success, row.success_ci95),
                    percent(row.progress, row.progress_ci95),
                    f"{row.turns:.1f}",
                    f"{row.calls:.1f}",
                    f"{row.prompt_tokens + row.completion_tokens:,.0f}",
                )
        console.print(table)
    remark(console, "turns, model calls and tokens (read and written): of an episode, mean")
    if study.comparisons:
        console.print()
        print_runs(console, study.comparisons)
        for comparison in study.comparisons:
            print_comparison(console, comparison)
            console.print()
        print_method(console, study.comparisons)


_MOST_COLUMNS = 5
"""Seeds with a column each; of more, lowest and highest."""


def _cells(study: SeedStudy, row: SeedRow) -> list[str]:
    each = (
        [percent(rate) for rate in row.rates]
        if len(study.seeds) <= _MOST_COLUMNS
        else [percent(min(row.rates)), percent(max(row.rates))]
    )
    title = "held-out" if row.family == HELD_OUT else study.titles.get(row.family, row.family)
    spread = "-" if row.sd is None else f"{100 * row.sd:.1f}"
    return [f"  {title}", str(row.tasks), *each, percent(row.mean, row.ci95), spread]


def print_seed_study(console: Console, study: SeedStudy) -> None:
    about = f"suite {study.suite}, at most {study.max_turns} turns"
    print_head(console, f"{study.model}, {len(study.seeds)} seeds", about, study.notes)
    few = len(study.seeds) <= _MOST_COLUMNS
    each = [f"seed {seed}" for seed in study.seeds] if few else ["lowest", "highest"]
    table = plain_table("", "n", *each, "mean [95 % CI]", "SD")
    for measure in MEASURES:
        table.add_row(Text(f"{measure} %", style="bold"))
        for row in study.rows:
            if row.measure == measure:
                table.add_row(*_cells(study, row))
    console.print(table)
    remark(
        console,
        "SD: of the seeds' rates, how far another seed moves. The interval is of the mean, over tasks.",
    )
