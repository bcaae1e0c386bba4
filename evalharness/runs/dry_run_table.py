"""What `run --dry-run` shows."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console
from rich.table import Table

from evalharness.base.text import duration
from evalharness.runs.dry_run import FamilyPlan, Plan

_KINDS = 6
"""At most so many kinds of a family are named."""


def print_plan(console: Console, plan: Plan, titles: Mapping[str, str]) -> None:
    for family in plan.families:
        if not family.messages:
            continue
        console.print(
            f"=== {titles.get(family.family, family.family)}: the first prompt, of {family.first_task}",
            style="bold",
        )
        for message in family.messages:
            console.print(f"--- {message['role']}", style="dim")
            console.print(str(message["content"]), soft_wrap=True)
        console.print()
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column("family", no_wrap=True)
    for name in ("tasks", "episodes", "to play"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("kinds", overflow="fold")
    for family in plan.families:
        counts = (family.tasks, family.episodes, family.left)
        table.add_row(titles.get(family.family, family.family), *map(str, counts), _kinds(family))
    console.print(table)
    for line in ["", f"server: {plan.server}", folder_line(plan), estimate_line(plan)]:
        console.print(line, soft_wrap=True)


def _kinds(family: FamilyPlan) -> str:
    names = [
        f"{kind} {count}"
        for kind, count in sorted(family.kinds.items(), key=lambda pair: (-pair[1], pair[0]))
    ]
    more = f" and {len(names) - _KINDS} more" if len(names) > _KINDS else ""
    return ", ".join(names[:_KINDS]) + more


def folder_line(plan: Plan) -> str:
    left, episodes = (sum(getattr(family, name) for family in plan.families) for name in ("left", "episodes"))
    if not plan.folder_is_certain:
        return f"run folder: {plan.folder}, or another one: that depends on what the server says of its model"
    if plan.refused:
        return (
            f"run folder: {plan.folder} holds another run, and this one would be refused:\n  "
            + "\n  ".join(plan.refused)
        )
    if plan.there:
        return f"run folder: {plan.folder} is there; {episodes - left} of {episodes} episodes finished, {left} to play"
    return f"run folder: {plan.folder}, new"


def estimate_line(*plans: Plan) -> str:
    """Of all of them together."""
    families = [family for plan in plans for family in plan.families]
    turns, prompt, completion = (
        sum(getattr(family, name) for family in families)
        for name in ("turns", "prompt_tokens", "completion_tokens")
    )
    if not turns:
        return "nothing is left to play"
    if not prompt:
        return f"estimate: at most {turns:,.0f} turns; no tokens"
    base = (
        "as in earlier runs on this machine"
        if all(family.measured for family in families)
        else ("a guess: every episode to its end, 4 characters a token")
    )
    times = [plan.seconds for plan in plans if plan.seconds is not None]
    time = (
        f"about {duration(sum(times))}"
        if len(times) == len(plans)
        else "time not known before this model has played here"
    )
    costs = [plan.cost for plan in plans if plan.cost is not None]
    cost = f", cost {sum(costs):.4g}" if costs else ""
    return (
        f"estimate ({base}): {turns:,.0f} turns, "
        f"{_about(prompt)} prompt and {_about(completion)} new tokens, {time}{cost}"
    )


def _about(tokens: float) -> str:
    """`1.25 M`, `12,300`, `840`: three figures."""
    if tokens >= 999_500:
        return f"{tokens / 1e6:.2f} M"
    return f"{float(f'{tokens:.3g}'):,.0f}"
