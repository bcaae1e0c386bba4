"""Tables of judgements and agreement for a terminal, 80 columns wide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType

from evalharness.base.terminal import line, plain_table, words
from evalharness.base.text import printable
from evalharness.judge.agreement import ALL, Agreement, Share, find_comparable_agreement
from evalharness.judge.mtbench_scores import Score
from evalharness.stats import Interval, wilson


def _interval(interval: Interval | None) -> str:
    return "" if interval is None else f"[{interval[0]:.2f},{interval[1]:.2f}]"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _share(share: Share) -> str:
    return f"{_number(share.value)} {_interval(share.interval)}".rstrip()


def judgement_table(summary: Mapping[str, Any]) -> RenderableType:
    """Show the numbers of right, wrong and unreadable judgements."""
    n = summary["judged"]
    lines = [
        f"{n} turns judged: {summary['right']} right, {summary['wrong']} wrong, {summary['unread']} no verdict"
    ]
    if n:
        low, high = wilson(summary["unread"], n)
        lines.append(f"no verdict: {100 * summary['unread'] / n:.1f} % [{100 * low:.1f},{100 * high:.1f}]")
    lines += [f"  {count} because: {why}" for why, count in summary["unread_because"].items()]
    if summary["kinds"]:
        lines.append("kinds of error: " + ", ".join(f"{kind} {n}" for kind, n in summary["kinds"].items()))
    tokens = summary["tokens"]
    lines.append(f"tokens: {tokens['prompt']:,} in, {tokens['completion']:,} out")
    return Group(*map(line, lines))


def _counts_table(row: Agreement) -> RenderableType:
    counts = row.counts
    table = plain_table(printable(f"{row.first} \\ {row.second}", single_line=True), "right", "wrong")
    table.add_row("right", str(counts.right_right), str(counts.right_wrong))
    table.add_row("wrong", str(counts.wrong_right), str(counts.wrong_wrong))
    return table


def _figures_table(rows: Sequence[Agreement], titles: Mapping[str, str]) -> RenderableType:
    table = plain_table("", "n", "accuracy", "kappa", "precision", "recall", "bias p")
    for row in rows:
        name = "all" if row.family == ALL else titles.get(row.family, row.family)
        kappa = f"{_number(row.kappa)} {_interval(row.kappa_interval)}".rstrip()
        cells = [_share(row.accuracy), kappa, _share(row.precision), _share(row.recall)]
        table.add_row(line(name), str(row.counts.n), *cells, f"{row.mcnemar_p:.3f}")
    return table


def agreement_table(rows: Sequence[Agreement], titles: Mapping[str, str]) -> RenderableType:
    """Show the first rater against each other rater. The published table follows if it is comparable."""
    parts: list[RenderableType] = []
    for first, second in dict.fromkeys((row.first, row.second) for row in rows):
        mine = [row for row in rows if (row.first, row.second) == (first, second)]
        parts += [_counts_table(mine[0]), "", _figures_table(mine, titles)]
        if mine[0].left_out:
            parts.append(line(f"{mine[0].left_out} turns are left out: no verdict could be read", "yellow"))
        parts.append("")
    published = find_comparable_agreement(rows)
    for row in published:
        parts += [_counts_table(row), "", _figures_table([row], {})]
    if not published:
        text = "published kappa: of 50 turns called right and 50 called wrong by the judge; judge label --balanced"
        parts.append(line(text, "dim"))
    parts += [
        line(
            "precision and recall are of 'wrong', with the first rater as the reference; 95 % intervals",
            "dim",
        ),
        line("bias p: McNemar's exact test that both call as many turns wrong", "dim"),
    ]
    return Group(*parts)


def mtbench_table(scores: Sequence[Score], summary: Mapping[str, Any]) -> RenderableType:
    """Show the MT-bench scores (1 to 10), and below them the published ones."""
    table = plain_table(words(""), "answers", "score [95% CI]")
    for score in scores:
        cell = f"{_number(score.mean)} {_interval(score.interval)}".rstrip()
        table.add_row(line(score.name), str(score.graded), cell)
    parts: list[RenderableType] = [
        line(f"{summary['model']}, graded by {summary['judge']} with {summary['graded_by']}", "bold"),
        table,
        "",
    ]
    if summary["unread"]:
        parts.append(line(f"{summary['unread']} answers without a grade:", "yellow"))
        parts += [line(f"  {count} because: {why}") for why, count in summary["unread_because"].items()]
    listed = ", ".join(f"{row['method']} {row['mt_bench']}" for row in summary["published"])
    parts.append(line(f"published (MT-bench's own questions, judge gpt-4o-2024-05-13): {listed}", "dim"))
    return Group(*parts)
