"""The first line of every screen and page: one number that answers the question, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from evalharness.results.completeness import Played
from evalharness.results.difference import SIGNIFICANT, Difference, headline
from evalharness.results.html.document import percent
from evalharness.results.score import ESTIMATED, HELD_OUT, POOLED

if TYPE_CHECKING:
    from evalharness.records.summary import Estimate, Scores, Summary
    from evalharness.results.comparison import Comparison
    from evalharness.results.sweep import Sweep

TOTALS = {HELD_OUT: "held-out", ESTIMATED: "held-out, estimated", POOLED: "pooled"}
"""The scores over several families, as tables and sentences call them."""


def p_value(p: float) -> str:
    """Three decimals, in five characters."""
    return "<.001" if p < 0.001 else f"{p:.3f}"


def rate_in_words(score: Scores | Estimate) -> str:
    """`36.5 % [31.2, 42.1]`"""
    rate, _, limits = percent(score.success_rate, score.success_rate_ci95).partition(" ")
    return f"{rate} % {limits}"


def answer_of_run(summary: Summary, titles: Mapping[str, str]) -> str:
    """The success of the held-out score, else of what stands for it, else of each family."""
    if score := summary.held_out:
        return f"held-out success {rate_in_words(score)}, {score.n} tasks"
    if estimate := summary.held_out_estimate:
        return (
            f"held-out success {rate_in_words(estimate)}, estimated from {estimate.n} of "
            f"{estimate.stands_for} tasks"
        )
    if pooled := summary.pooled:
        families = len(summary.families) - len(summary.scores or {})
        return (
            f"success {rate_in_words(pooled)}, {pooled.n} tasks of {families} families pooled; "
            "this is not the held-out score"
        )
    done, wanted = (
        sum(getattr(row, name) for row in summary.families.values())
        for name in ("episodes", "episodes_selected")
    )
    if done < wanted and (len(summary.families) > 1 or not done):
        return f"no score yet: {done} of {wanted} episodes are played"
    said = []
    for family, row in summary.families.items():
        names = (summary.scores or {}).get(family)
        tasks = Played(row.n, row.expected, row.episodes, summary.samples).described
        said.append(
            f"{titles.get(family, family)} {names.success if names else 'success'} {rate_in_words(row)}, {tasks}"
        )
    return "; ".join(said) + (f"; {wanted - done} episodes are still to play" if done < wanted else "")


def difference_in_words(d: Difference, titles: Mapping[str, str]) -> str:
    """`held-out success +8.2 points [3.1, 13.2]`"""
    change, _, limits = d.points.partition(" ")
    name, _, how = (TOTALS.get(d.family) or titles.get(d.family, d.family)).partition(", ")
    return f"{name} {d.measure}{f' ({how})' if how else ''} {change} points {limits}"


def what_would_show(d: Difference, comparisons: int = 1) -> str:
    """Of a difference that is not significant: how much evidence is missing."""
    if d.p < SIGNIFICANT:
        return f"p {p_value(d.p)} alone, {p_value(d.p_holm)} by Holm among {comparisons} comparisons"
    if (needed := d.tasks_needed) is not None:
        return f"about {int(float(f'{needed:.2g}')):,} tasks would be needed"
    if d.detectable is not None:
        return f"{100 * d.detectable:.1f} points or more would have been seen"
    return f"p {p_value(d.p)}"


def headline_of(differences: Sequence[Difference]) -> Difference:
    """The test that a comparison is about: success of `headline`."""
    name = headline(differences)
    return next(d for d in differences if d.family == name)


def answer_of_comparison(
    comparison: Comparison, labels: tuple[str, str], titles: Mapping[str, str], comparisons: int = 1
) -> str:
    """Which of two runs is better. `labels`: of the baseline and the run; `comparisons`: made at once."""
    d = headline_of(comparison.differences)
    if comparison.of_losses:
        return _answer_of_losses(d, labels, comparisons)
    said = difference_in_words(d, titles)
    if d.p_holm >= SIGNIFICANT:
        missing = what_would_show(d, comparisons)
        return f"no difference between {labels[1]} and {labels[0]} can be seen: {said}; {missing}"
    verdict = "better" if d.difference > 0 else "worse"
    return f"{labels[1]} is {verdict} than {labels[0]}: {said}, {_p_in_words(d, comparisons)}"


def _p_in_words(d: Difference, comparisons: int) -> str:
    return f"p {p_value(d.p_holm)}" + (f" (Holm, {comparisons} comparisons)" if comparisons > 1 else "")


def _answer_of_losses(d: Difference, labels: tuple[str, str], comparisons: int) -> str:
    """Which of two models loses less under perturbation."""
    change, _, limits = d.points.partition(" ")
    said = (
        f"{d.measure} {100 * d.run:+.1f} against {100 * d.baseline:+.1f} points, difference {change} {limits}"
    )
    if d.p_holm >= SIGNIFICANT:
        missing = what_would_show(d, comparisons)
        return f"{labels[1]} and {labels[0]} lose alike under perturbation, as far as can be seen: {said}; {missing}"
    verdict = "less" if d.difference > 0 else "more"
    return f"{labels[1]} loses {verdict} under perturbation than {labels[0]}: {said}, {_p_in_words(d, comparisons)}"


def answer_of_sweep(sweep: Sweep) -> str:
    """What a model loses under perturbation."""
    if (d := sweep.change) is None:
        return f"{sweep.model} on {sweep.title}: no perturbation is played yet"
    change, _, limits = d.points.partition(" ")
    said = f"success {100 * d.baseline:.1f} -> {100 * d.run:.1f} %, {change} points {limits}"
    if d.p >= SIGNIFICANT:
        return f"no effect of perturbation on {sweep.model} can be seen: {said}; {what_would_show(d)}"
    verb = "loses" if d.difference < 0 else "gains"
    return f"{sweep.model} {verb} under perturbation: {said}, p {p_value(d.p)}"
